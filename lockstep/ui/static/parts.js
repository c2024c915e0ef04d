// Troubles, coordinators, workers, services, dead letters.

import { $, h, keyed, measure, say, set } from "./dom.js";
import { ago, clock, count, duration, known, moment, now, plural, size } from "./format.js";

const TROUBLES_FIRST = 6;
const WORKERS_FIRST = 12;
const SAMPLE_FIRST = 4;
const KINDS = { abort: "aborted", death: "a worker died", coordinator: "coordinator", halt: "halted", outage: "outage", alarm: "alarm" };
const STAGES = ["wait", "consume", "decode", "derive", "encode", "upload", "dead_letters"];

let open = () => {};
let index = 0;
let latest = null;
const whole = { troubles: false, workers: false, sample: false };

export function start(opened) {
  open = opened;
  for (const name of Object.keys(whole)) {
    $(`${name}-all`).addEventListener("click", () => {
      whole[name] = !whole[name];
      show(latest);
    });
  }
}

/** From now on of another pipeline. */
export function turn(to) {
  index = to;
}

export function show(page) {
  latest = page;
  troubles(page);
  coordinators(page);
  workers(page);
  services(page);
  deadLetters(page);
}

function cut(name, items, first, what) {
  const button = $(`${name}-all`);
  set(button, "hidden", items.length <= first);
  say(button, whole[name] ? "show fewer" : `all ${count(items.length)} ${what}`);
  return whole[name] ? items : items.slice(0, first);
}

// --- troubles ---------------------------------------------------------------------------------

function troubles(page) {
  const all = page.troubles;
  say($("troubles-sum"), all.length ? "the newest first" : "none in this run");
  const aborted = new Map(page.transactions.filter((one) => one.phase === "aborted").map((one) => [one.ended_ms, one.id]));
  const make = () => {
    const node = h("li", {}, h("time"), h("b"), h("span"), h("button", { type: "button", class: "plain", hidden: true }, "its story"));
    node.lastChild.addEventListener("click", () => open(node.dataset.id));
    return node;
  };
  keyed($("troubles"), cut("troubles", all, TROUBLES_FIRST, "troubles"), (one) => `${one.time_ms} ${one.kind} ${one.text}`, make, (node, one) => {
    const [time, kind, text, button] = node.children;
    say(time, moment(one.time_ms));
    say(kind, KINDS[one.kind] ?? one.kind);
    say(text, one.text);
    set(node, "data-kind", one.kind);
    const id = one.kind === "abort" ? aborted.get(one.time_ms) : null;
    set(node, "data-id", id);
    set(button, "hidden", !id);
    set(button, "aria-label", id ? `The story of ${id.slice(0, 8)}` : null);
  });
}

function coordinators(page) {
  const make = () => h("li", {}, h("b"), h("span"), h("time"));
  keyed($("coordinators"), page.coordinators, (one) => one.epoch, make, (node, one, number) => {
    const [epoch, name, time] = node.children;
    say(epoch, `epoch ${count(one.epoch)}`);
    say(name, one.name);
    say(time, `since ${moment(one.since_ms)}`);
    set(node, "data-now", number === 0 && page.coordinator !== null);
  });
}

// --- workers ----------------------------------------------------------------------------------

const history = new Map(); // worker -> [{at, seconds}], of the last minute or so
const HISTORY_MS = 60_000;

/** Seconds by stage since about a minute ago, or since the worker's start where that is all there is. */
function lately(one, atMs) {
  const kept = (history.get(one.name) ?? []).filter((past) => atMs - past.at <= HISTORY_MS);
  const restarted = kept.some((past) => Object.entries(past.seconds).some(([stage, value]) => (one.seconds[stage] ?? 0) < value));
  const past = restarted ? [] : kept;
  if (!past.length || atMs - past.at(-1).at >= 2_000) past.push({ at: atMs, seconds: one.seconds });
  history.set(one.name, past);
  const first = atMs - past[0].at >= 10_000 ? past[0].seconds : {};
  const spent = Object.entries(one.seconds).map(([stage, value]) => [stage, Math.max(0, value - (first[stage] ?? 0))]);
  return spent.sort(([a], [b]) => STAGES.indexOf(a) - STAGES.indexOf(b));
}

const stageNumber = (stage) => (STAGES.includes(stage) ? STAGES.indexOf(stage) : STAGES.length);
const stageName = (stage) => stage.replaceAll("_", " ");

function workers(page) {
  const all = page.workers;
  const dead = all.filter((one) => one.state === "dead").length;
  const spent = new Map(all.map((one) => [one.name, lately(one, page.at_ms)]));
  const there = `${count(all.length - dead)} of ${count(all.length)} there`;
  const slow = page.lag.records > 0 ? limit([...spent.values()]) : "";
  say($("workers-sum"), all.length ? [there, slow].filter(Boolean).join("; ") : "none has reported");
  const stages = [...new Set(all.flatMap((one) => Object.keys(one.seconds)))].sort((a, b) => STAGES.indexOf(a) - STAGES.indexOf(b));
  keyed($("stages"), stages, (stage) => stage, (stage) => h("li", {}, h("i", { class: `key stage-${stageNumber(stage)}` }), stageName(stage)), () => {});
  const worst = [...all].sort((a, b) => trouble(b) - trouble(a));
  keyed($("workers"), cut("workers", worst, WORKERS_FIRST, "workers"), (one) => one.name, worker, (node, one) => fillWorker(node, one, spent.get(one.name)));
  for (const name of history.keys()) if (!all.some((one) => one.name === name)) history.delete(name);
}

const MOSTLY = 0.9;
const IDLE = ["wait", "consume"];
const BUSY = ["decode", "derive", "encode"];

/** What keeps a run that is behind from being faster, where nearly all of the workers' time says so. */
function limit(spent) {
  const sum = (some) => spent.flat().filter(([stage]) => !some || some.includes(stage)).reduce((total, [, value]) => total + value, 0);
  const total = sum(null);
  if (!total) return "";
  if (sum(IDLE) > MOSTLY * total) return "behind, and they wait for records: the broker, or the network, gives them no more";
  if (sum([...BUSY, "consume"]) > MOSTLY * total) return "behind, and they are busy: more workers on more processors would take more";
  return sum(["upload"]) > total / 2 ? "behind, and they wait for the storage" : "";
}

const trouble = (one) => (one.state === "dead" ? 2 : 0) + (one.alarms.length ? 1 : 0);

function worker() {
  return h("li", { class: "worker" },
    h("div", { class: "who" }, h("b"), h("span", { class: "state" })),
    h("p", { class: "more" }),
    h("div", { class: "meter", role: "meter", "aria-valuemin": "0" }, h("i")),
    h("p", { class: "more memory" }),
    h("div", { class: "spent", role: "img" }),
    h("p", { class: "more spent-words" }),
    h("p", { class: "restarts" }),
    h("ul", { class: "alarms" }));
}

function fillWorker(node, one, parts) {
  const [who, where, meter, memory, spent, words, restarts, alarms] = node.children;
  say(who.firstChild, one.name);
  say(who.lastChild, one.state);
  set(node, "data-state", one.state);
  say(where, `${plural(one.source_partitions, "source partition")} · process ${one.pid} on ${one.host} · heard ${ago(one.age_ms)} ago`);
  const share = one.memory_max_bytes ? one.memory_bytes / one.memory_max_bytes : 0;
  set(meter, "aria-label", `Memory of ${one.name}`);
  set(meter, "aria-valuenow", one.memory_bytes ?? 0);
  set(meter, "aria-valuemax", one.memory_max_bytes || one.memory_bytes || 1);
  set(meter, "aria-valuetext", `${size(one.memory_bytes)} of ${size(one.memory_max_bytes)}`);
  set(meter, "data-kind", share > 0.95 ? "bad" : share > 0.85 ? "warn" : null);
  measure(meter, "--share", 100 * Math.min(1, share));
  say(memory, `memory ${size(one.memory_bytes)} of ${size(one.memory_max_bytes)}, ${size(one.buffered_bytes)} of it records that wait`);
  const total = parts.reduce((sum, [, value]) => sum + value, 0);
  keyed(spent, parts, ([stage]) => stage, ([stage]) => h("i", { class: `stage-${stageNumber(stage)}` }),
    (bar, [, value]) => measure(bar, "--share", total ? (100 * value) / total : 0));
  const most = [...parts].sort(([, a], [, b]) => b - a).slice(0, 3).filter(([, value]) => value > 0);
  const text = total ? `most of its time: ${most.map(([stage, value]) => `${stageName(stage)} ${Math.round((100 * value) / total)} %`).join(", ")}` : "it has not worked yet";
  say(words, text);
  set(spent, "aria-label", `${one.name}, ${text}`);
  set(restarts, "hidden", !one.restarts);
  say(restarts, one.restarts ? `started again ${plural(one.restarts, "time")}${one.last_death ? `: ${one.last_death}` : ""}` : "");
  keyed(alarms, one.alarms, (alarm) => alarm, () => h("li"), (line, alarm) => say(line, alarm));
}

// --- services, dead letters -------------------------------------------------------------------

function services(page) {
  const make = () => h("li", {}, h("b"), h("span"), h("span", { class: "more" }), h("span", { class: "problem" }));
  keyed($("services"), page.services, (one) => one.name, make, (node, one) => {
    const [name, state, last, problem] = node.children;
    say(name, one.name);
    const due = one.mode === "off" ? "off" : `${one.mode}, ${count(one.commits)} of ${count(one.every)} commits`;
    say(state, known(one.running_ms) ? `running for ${ago(one.running_ms)}${one.doing ? ` (${one.doing})` : ""}` : due);
    const instant = one.last_instant ? `instant ${one.last_instant}, ` : "";
    say(last, known(one.last_age_ms) ? `last: ${instant}${one.last_what}, took ${duration(one.last_took_ms)}, ${ago(one.last_age_ms)} ago` : "");
    say(problem, one.problem ? `${one.failures ? `failed ${plural(one.failures, "time")}: ` : ""}${one.problem}` : "");
  });
  set($("services-none"), "hidden", page.services.length > 0);
}

function letter(one) {
  const button = h("button", { type: "button", class: "plain", hidden: true, "aria-expanded": "false", "aria-label": `The value at ${one.source_partition}@${one.offset}` }, "value");
  const value = h("pre", { class: "value", hidden: true, tabindex: "0" });
  button.addEventListener("click", async () => {
    const opens = value.hidden;
    set(value, "hidden", !opens);
    set(button, "aria-expanded", String(opens));
    if (!opens) return;
    say(value, "asking …");
    say(value, await valueOf(one));
  });
  return h("li", {}, h("b"), h("span"), h("time"), button, value);
}

/** In words where there is none, or it cannot be had. */
async function valueOf(one) {
  const at = one.source_partition.lastIndexOf(":");
  const place = `${encodeURIComponent(one.source_partition.slice(0, at))}/${one.source_partition.slice(at + 1)}/${one.offset}`;
  try {
    const answer = await fetch(`/api/p/${index}/dead_letters/${place}`, { cache: "no-store" });
    const told = await answer.json();
    if (!answer.ok) return told.error;
    if (told.text === null) return "It has no value.";
    return told.is_cut ? `${told.text} … (of ${size(told.size_bytes)})` : told.text;
  } catch (error) {
    return "Nobody answers: try again once the page does.";
  }
}

function deadLetters(page) {
  const { count: all, reasons, sample, values } = page.dead_letters;
  say($("dead-sum"), all ? `${plural(all, "record")} did not fit and went aside` : "none");
  keyed($("dead-reasons"), reasons, (one) => one.reason, () => h("li", {}, h("b"), h("span")), (node, one) => {
    say(node.firstChild, count(one.count));
    say(node.lastChild, one.reason);
  });
  keyed($("dead-sample"), cut("sample", sample, SAMPLE_FIRST, "of the sample"), (one) => `${one.source_partition} ${one.offset}`, letter, (node, one) => {
    const [place, reason, time, button] = node.children;
    set(button, "hidden", !values);
    say(place, `${one.source_partition}@${one.offset}`);
    say(reason, one.reason);
    say(time, moment(one.time_ms));
  });
}
