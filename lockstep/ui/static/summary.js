// The first thing that is read: one word, what to do, how far behind, how long ago.

import { $, h, keyed, s, say, sayTicked, set } from "./dom.js";
import { ago, clock, count, duration, known, moment, now, plural, roughly, short, size } from "./format.js";
import { rate } from "./transactions.js";

const KINDS = {
  running: "good", idle: "good", starting: "warn", stopped: "warn", never: "calm", stalled: "bad", halted: "bad", unknown: "bad",
};

// Each a shape of its own: colour alone says nothing to some.
const SIGNS = {
  running: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20Zm-1.4 14.3-4-4 1.7-1.7 2.3 2.4 5.2-5.3 1.7 1.7-6.9 6.9Z",
  idle: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20Zm-1.4 14.3-4-4 1.7-1.7 2.3 2.4 5.2-5.3 1.7 1.7-6.9 6.9Z",
  starting: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20Zm-1.2 4h2.4v5.5l3.6 3.6-1.7 1.7-4.3-4.3V6Z",
  stopped: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20ZM8 8h8v8H8V8Z",
  never: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20Zm0 2.4a7.6 7.6 0 1 1 0 15.2 7.6 7.6 0 0 1 0-15.2Z",
  stalled: "M12 2.2 1.2 21h21.6L12 2.2Zm-1.2 6.6h2.4v6h-2.4v-6Zm0 7.4h2.4v2.4h-2.4v-2.4Z",
  halted: "M7.9 2h8.2L22 7.9v8.2L16.1 22H7.9L2 16.1V7.9L7.9 2Zm-.6 6.7L10.6 12l-3.3 3.3 1.4 1.4 3.3-3.3 3.3 3.3 1.4-1.4-3.3-3.3 3.3-3.3-1.4-1.4-3.3 3.3-3.3-3.3-1.4 1.4Z",
  unknown: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20Zm-1 12.8V13c0-1.6 2.9-2.2 2.9-3.9 0-1-.8-1.6-1.9-1.6-1.2 0-2 .7-2.2 1.9l-2.2-.5C8 6.700 9.600 5.400 12 5.400c2.500 0 4.300 1.400 4.300 3.600 0 2.700-3 3.200-3 4.900v.9H11Zm0 1.500h2.400v2.300H11v-2.300Z",
};

let page = null;
let sign = "";

export function show(next) {
  page = next;
  document.title = `${page.headline} · ${page.pipeline} · Lockstep`;
  say($("pipeline"), page.pipeline);
  say($("headline"), page.headline);
  set($("stand"), "data-kind", KINDS[page.state] ?? "bad");
  if (sign !== page.state) {
    sign = page.state;
    $("sign").replaceChildren(s("svg", { viewBox: "0 0 24 24", width: "1em", height: "1em", focusable: "false" },
      s("path", { d: SIGNS[page.state] ?? SIGNS.unknown, "fill-rule": "evenodd" })));
  }
  set($("halt"), "hidden", !page.halted);
  say($("halt"), page.halted ? `${page.halted.reason} (${moment(page.halted.time_ms)})` : "");
  keyed($("advice"), page.advice, (line) => line, () => h("li"), sayTicked);
  spark();
  tick();
}

/** What grows older by itself. */
export function tick() {
  if (!page) return;
  const { lag, last_commit: last } = page;
  set($("behind"), "data-kind", lag.records === 0 ? "good" : null);
  say($("behind"), lag.records === 0 ? "up to date" : known(lag.records) ? roughly(lag.records) : "not known");
  say($("behind-more"), behind(lag));
  say($("last"), last ? `${ago(now() - last.completed_ms)} ago` : "none yet");
  say($("last-more"), last ? `${count(last.rows)} rows, instant ${last.instant}` : "");
  say($("rate"), roughly(rate(page)));
  say($("fresh"), known(page.freshness_ms) ? (page.freshness_ms ? duration(page.freshness_ms) : "none waits") : "not known");
  say($("fresh-more"), page.settings ? `a transaction each ${duration(page.settings.interval_ms).replace(".0 ", " ")}` : "");
  facts();
  for (const node of document.querySelectorAll("[data-since]")) say(node, `${ago(now() - Number(node.dataset.since))} ago`);
}

/** What the large figure leaves out. */
function behind(lag) {
  if (!lag.records) return "";
  const exact = lag.records < 10_000 ? plural(lag.records, "record").replace(/^\S+ /, "") : `${count(lag.records)} records`;
  return known(lag.seconds) ? `${exact}, ${duration(lag.seconds * 1000)}` : exact;
}

function facts() {
  const { totals, table } = page;
  const some = [
    ["run", page.run ? `${short(page.run)}${page.run_ms ? `, since ${moment(page.run_ms)}` : ""}` : ""],
    ["epoch", page.epoch ? count(page.epoch) : ""],
    ["coordinator", page.coordinator ?? ""],
    ["mode", page.mode && page.mode !== "RUN" ? page.mode.toLowerCase() : ""],
    ["this run", totals.commits || totals.aborts
      ? `${roughly(totals.records)} records, ${size(totals.bytes)} in ${plural(totals.files, "file")}${totals.late ? `, ${roughly(totals.late)} late` : ""}` : ""],
    ["next end", nextEnd()],
    ["complete", complete()],
    ["producers", openTransactions()],
    ["table", `${table.path}${table.mode ? `, ${table.mode}s` : ""}`],
    ["busy with", known(page.sources.driver_ms) ? table.busy_with || "nothing" : ""],
  ].filter(([, text]) => text);
  keyed($("facts"), some, ([name]) => name, ([name]) => h("div", {}, h("dt", {}, name), h("dd")), (node, [, text]) => say(node.lastChild, text));
}

/** By the clock of the configuration's zone, which need not be this browser's. */
function nextEnd() {
  const end = page.next_end;
  if (!end) return "";
  const left = end.time_ms - now();
  return `at ${end.shown} by transaction.${end.reason}${left > 0 ? `, in ${ago(left)}` : ""}`;
}

/** Producers' transactions in Kafka, which a read-committed consumer does not pass. */
function openTransactions() {
  const { records, seconds } = page.producer_transactions;
  if (!records) return "";
  const age = known(seconds) ? `, the oldest for ${duration(seconds * 1000)}` : "";
  return `${plural(records, "record")} in open transactions${age}`;
}

/** By event time, and what it waits for. */
function complete() {
  const mark = page.watermark;
  if (!mark) return "";
  const through = known(mark.at_ms) ? `through ${moment(mark.at_ms)} by ${mark.of}` : `nobody knows yet how far by ${mark.of}`;
  if (!mark.held_by) return `${through}; every source partition is idle`;
  return `${through}; waits for ${mark.held_by}${mark.idle ? `, ${count(mark.idle)} of ${count(mark.source_partitions)} are idle` : ""}`;
}

let sparked = "";

const MINUTES_MIN = 15;
const PART_MS = 10_000; // of a minute that has just begun nothing is said

/** Records a second by minute, over the last hour or since the run began; of minutes that are partly over, by their part. */
function perMinute() {
  const { from_ms: from, step_ms: step, records } = page.rates;
  const began = page.run_ms || 0;
  const values = records.map((count, at) => {
    const begin = from + at * step;
    const since = began < begin + step && !records.slice(0, at).some(Boolean) ? Math.max(begin, began) : begin;
    const ms = Math.min(begin + step, page.at_ms) - since;
    return ms < PART_MS ? null : (1000 * count) / ms;
  });
  const first = records.findIndex(Boolean);
  return values.slice(Math.min(first < 0 ? 0 : first, Math.max(0, values.length - MINUTES_MIN))).filter((value) => value !== null);
}

function spark() {
  const values = perMinute();
  const state = values.map(Math.round).join();
  if (state === sparked || values.length < 2) return;
  sparked = state;
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${((at * 100) / Math.max(1, values.length - 1)).toFixed(2)},${(27 - (25 * value) / most).toFixed(2)}`);
  const perSecond = roughly;
  const label = `Records committed a second, by minute, over the last ${values.length} minutes: at most ${perSecond(most)}, lately ${perSecond(values.at(-1))}`;
  $("spark").replaceChildren(
    s("svg", { viewBox: "0 0 100 28", preserveAspectRatio: "none", role: "img", "aria-label": label },
      s("path", { class: "area", d: `M0,28 L${points.join(" L")} L100,28 Z` }),
      s("path", { class: "edge", d: `M${points.join(" L")}` })),
    h("span", {}, `${values.length < 55 ? `${values.length} minutes` : "the last hour"}, at most ${perSecond(most)}`),
  );
}

// --- how old it is ----------------------------------------------------------------------------

// The observer looks at a quiet table each 30 s, and at what is slow to answer each minute.
const OLD_MS = { driver_ms: 10_000, topic_ms: 30_000, broker_ms: 90_000, table_ms: 90_000 };
const NAMES = { driver_ms: "the driver", topic_ms: "the control topic", broker_ms: "the broker", table_ms: "the table" };
const TELLS = {
  topic_ms: "what is said of transactions and coordinators is from then",
  broker_ms: "ends and lag are from then",
  table_ms: "what is said of the last commit is from then",
};
const OVER = new Set(["stopped", "halted", "never"]);

/** Sentences on what is shown and not fresh; `lostMs`: nobody answers this page since then. */
export function old(speaker, lostMs) {
  const found = [];
  if (lostMs) found.push(`${speaker} does not answer since ${moment(lostMs)}: what is shown is from then. This page goes on by itself once it is back.`);
  if (!page || lostMs) return found;
  for (const [name, limit] of Object.entries(OLD_MS)) {
    const at = page.sources[name];
    if (!known(at) || now() - at <= limit) continue;
    if (name === "driver_ms") {
      if (!OVER.has(page.state)) found.push(`The driver does not answer since ${moment(at)}: what only it knows is from then.`);
    } else found.push(`${NAMES[name][0].toUpperCase()}${NAMES[name].slice(1)} was last read at ${moment(at)}: ${TELLS[name]}.`);
  }
  return found;
}

/** When each was read. */
export function sources() {
  if (!page) return "";
  const said = Object.entries(NAMES).map(([name, what]) =>
    known(page.sources[name]) ? `${what} ${ago(now() - page.sources[name])} ago` : `${what}: ${name === "driver_ms" ? "does not answer here" : "not yet"}`);
  return `Read: ${said.join(" · ")}. Times are this browser's, ${clock(now())}.`;
}
