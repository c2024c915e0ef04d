// Source partitions: the worst first; all of them, filtered and by the page, when somebody asks.

import { $, h, keyed, say, set } from "./dom.js";
import { count, duration, known } from "./format.js";

const FIRST = 10;
const PAGE = 50;
const AGAIN_MS = 3_000;

let url = "";
let page = null;
let all = null; // every one, once somebody asked for them
let asking = false;
let askedMs = 0;
let at = 0;

export function start() {
  $("partitions-all").addEventListener("click", () => {
    all ? forget() : ask();
  });
  $("partitions-back").addEventListener("click", () => move(-PAGE));
  $("partitions-on").addEventListener("click", () => move(PAGE));
  $("filter").addEventListener("input", () => {
    at = 0;
    if (!all && page && page.source_partitions_total > page.source_partitions.length) ask();
    else draw();
  });
}

/** Another pipeline is shown. */
export function turn(index) {
  url = `/api/p/${index}/source_partitions`;
  page = null;
  $("filter").value = "";
  forget();
}

export function show(next) {
  page = next;
  if (all && Date.now() - askedMs > AGAIN_MS) ask();
  draw();
}

function forget() {
  all = null;
  at = 0;
  draw();
}

async function ask() {
  if (asking) return;
  asking = true;
  const of = url;
  try {
    const answer = await fetch(of, { cache: "no-store" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const found = await answer.json();
    if (of === url) all = found;
  } catch (error) {
    say($("partitions-page"), "They could not be had: what is shown are the worst.");
  } finally {
    asking = false;
    askedMs = Date.now();
    draw();
  }
}

function move(by) {
  at += by;
  draw();
}

function draw() {
  if (!page) return;
  const wanted = $("filter").value.trim().toLowerCase();
  const pool = all ?? page.source_partitions;
  const text = (one) => `${one.topic}:${one.partition} ${one.owner ?? ""} ${one.verdict ?? ""}`.toLowerCase();
  const found = wanted ? pool.filter((one) => text(one).includes(wanted)) : pool;
  const step = all || wanted ? PAGE : FIRST;
  at = Math.max(0, Math.min(at, Math.floor(Math.max(0, found.length - 1) / step) * step));
  const some = found.slice(at, at + step);
  const total = page.source_partitions_total;
  say($("partitions-sum"), total ? `${count(total)}, the worst first` : "not known yet");
  keyed($("partitions"), some, (one) => `${one.topic}:${one.partition}`, row, fill);
  set($("partitions-all"), "hidden", !all && total <= FIRST);
  say($("partitions-all"), all ? "only the worst" : `all ${count(total)}`);
  set($("partitions-back"), "hidden", at === 0);
  set($("partitions-on"), "hidden", at + step >= found.length || !(all || wanted));
  say($("partitions-page"), wanted || all ? (found.length ? `${count(at + 1)}–${count(at + some.length)} of ${count(found.length)}` : `none has “${wanted}”`) : "");
}

function row() {
  return h("tr", {}, h("th", { scope: "row" }), h("td", { class: "n" }), h("td", { class: "n wide" }), h("td", { class: "n" }),
    h("td", { class: "n wide" }), h("td", { class: "wide" }), h("td"));
}

function fill(node, one) {
  const [name, committed, end, lag, seconds, owner, verdict] = node.children;
  say(name, `${one.topic}:${one.partition}`);
  say(committed, count(one.committed));
  say(end, count(one.end));
  say(lag, count(one.lag));
  say(seconds, known(one.lag_ms) ? (one.lag_ms ? duration(one.lag_ms) : "0") : "–");
  say(owner, one.owner ?? "nobody");
  say(verdict, one.verdict ?? "–");
  set(node, "data-verdict", one.verdict);
}
