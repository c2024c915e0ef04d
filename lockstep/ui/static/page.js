// Which pipeline is shown, what comes of it, and what is said where nobody answers.

import { $, h, keyed, say, set } from "./dom.js";
import { Feed } from "./feed.js";
import * as orders from "./orders.js";
import * as parts from "./parts.js";
import * as partitions from "./partitions.js";
import * as story from "./story.js";
import * as summary from "./summary.js";
import * as table from "./table.js";
import * as transactions from "./transactions.js";

const TICK_MS = 1_000;
const AGAIN_MS = 2_000;

const calm = matchMedia("(prefers-reduced-motion: reduce)");
let names = [];
let speaker = "The driver";
let feed = null;
let page = null;
let lostMs = 0;
let drawing = false;

async function ask(path) {
  for (;;) {
    try {
      const answer = await fetch(path, { cache: "no-store" });
      if (answer.status === 401) refused();
      if (answer.ok) return await answer.json();
    } catch (error) {
      say($("link"), "nobody answers; asked again …");
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function choose(index) {
  feed?.stop();
  page = null;
  lostMs = 0;
  sessionStorage.setItem("pipeline", names[index]);
  story.turn(index);
  partitions.turn(index);
  parts.turn(index);
  orders.turn(index, names[index]);
  tabs(index);
  set($("main"), "aria-busy", "true");
  feed = new Feed(index, { page: came, alive: () => told(0), lost: told, refused });
}

function tabs(chosen) {
  set($("tabs"), "hidden", names.length < 2);
  const make = (name) => {
    const button = h("button", { type: "button" }, name);
    button.addEventListener("click", () => choose(names.indexOf(name)));
    return button;
  };
  keyed($("tabs"), names, (name) => name, make, (node, name, number) => set(node, "aria-current", number === chosen ? "page" : null));
}

/** A document came: it is drawn once, however many come before the browser draws. */
function came(next) {
  page = next;
  if (drawing) return;
  drawing = true;
  setTimeout(() => {
    drawing = false;
    draw();
  }, 0);
}

function draw() {
  for (const one of [summary, transactions, orders, parts, partitions, table]) one.show(page);
  set($("main"), "aria-busy", null);
  set($("main"), "data-shown", page.at_ms);
  say($("problems"), page.problems.join(" "));
  notices();
}

function told(sinceMs) {
  lostMs = sinceMs;
  notices();
}

function refused() {
  lostMs = 0;
  keyed($("notices"), ["This page wants its token again: load it anew."], (line) => line, () => h("p"), (node, line) => say(node, line));
}

function notices() {
  const lines = summary.old(speaker, lostMs);
  keyed($("notices"), lines, (line) => line.replace(/\d.*/, ""), () => h("p"), (node, line) => say(node, line));
  set(document.body, "data-lost", lostMs > 0);
  set($("link"), "data-kind", lostMs ? "bad" : lines.length ? "warn" : "good");
  say($("link"), lostMs ? "no answer" : page ? (lines.length ? "live, partly old" : "live") : "connecting …");
  say($("sources"), summary.sources());
}

function tick() {
  if (!lostMs) {
    summary.tick();
    transactions.tick();
  }
  notices();
}

function around(id) {
  if (!page) return [null, null];
  const ids = page.transactions.map((one) => one.id);
  const at = ids.indexOf(id);
  return at < 0 ? [null, ids.at(-1) ?? null] : [ids[at - 1] ?? null, ids[at + 1] ?? null];
}

/** The transaction that the address names; empty where it names none that could be one. */
function named(hash) {
  const found = /^#t=(.+)$/.exec(hash);
  try {
    return found ? decodeURIComponent(found[1]) : "";
  } catch (error) {
    return "";
  }
}

async function start() {
  const [words, found] = await Promise.all([ask("/api/words"), ask("/api/pipelines")]);
  speaker = words.speaker;
  names = found;
  transactions.start(words, story.open);
  parts.start(story.open);
  partitions.start();
  orders.start(words);
  story.start(words, around);
  const wanted = names.indexOf(sessionStorage.getItem("pipeline"));
  const opened = named(location.hash);
  choose(Math.max(0, wanted));
  if (opened) story.open(opened);
  setInterval(tick, calm.matches ? 2 * TICK_MS : TICK_MS);
}

start();
