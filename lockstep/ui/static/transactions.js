// The strip of the last transactions, the newest as rows, and what one is made of.

import { $, h, keyed, measure, roving, say, set, stopAt } from "./dom.js";
import { ago, clock, count, duration, now, plural, short, size } from "./format.js";

const STRIP_MAX = 300;
const BAR_PX = 4; // the narrowest that a bar can be and still be seen
const ROWS_MAX = 8;
const GAP_FACTOR = 3;
const STEPS = [1, 2, 5];

let words = { end_reasons: {}, abort_causes: {}, commit_parts: {} };
let open = () => {};
let page = null;
let shown = [];
let fits = STRIP_MAX;
let intervalMs = 1000;

/** `opened` is called with the id of a transaction that somebody wants to read. */
export function start(theWords, opened) {
  words = theWords;
  open = opened;
  roving($("strip"), { horizontal: true });
  roving($("rows"), { horizontal: false });
  $("strip").addEventListener("mouseleave", () => caption(null));
  new ResizeObserver(([entry]) => {
    const room = Math.min(STRIP_MAX, Math.floor(entry.contentRect.width / BAR_PX));
    if (room === fits || room < 1) return;
    fits = room;
    if (page) show(page);
  }).observe($("strip"));
}

/** Where its time went, in milliseconds. */
export function parts(one) {
  const over = one.ended_ms || (one.undecided ? Math.max(one.started_ms, one.end_ms, one.written_ms) : now());
  const collected = Math.max(0, (one.end_ms || over) - one.started_ms);
  const closed = one.end_ms ? Math.max(0, (one.written_ms || over) - one.end_ms) : 0;
  const committed = one.written_ms ? Math.max(0, over - one.written_ms) : 0;
  return { collected, closed, committed, total: Math.max(0, over - one.started_ms) };
}

export const isOpen = (one) => (one.phase === "writing" || one.phase === "ending") && !one.undecided;

/** What it is now, in a word. */
export function state(one) {
  if (one.undecided) return "undecided";
  if (!isOpen(one)) return one.phase;
  return one.phase === "writing" ? "collecting" : one.written_ms ? "committing" : "closing files";
}

/** Why it ended, for people. */
export function why(one) {
  if (one.phase === "aborted") return words.abort_causes[one.cause] ?? one.reason ?? "";
  return words.end_reasons[one.end_reason] ?? one.end_reason ?? "";
}

/** The same in as few words as a column has room for. */
function briefly(one) {
  if (one.undecided) return "undecided";
  if (isOpen(one)) return `${state(one)} …`;
  const word = one.phase === "aborted" ? one.cause || "aborted" : one.end_reason;
  return (word ?? "").replaceAll("_", " ");
}

function sentence(one) {
  const { collected, closed, committed, total } = parts(one);
  const name = `${clock(one.started_ms)}  ${short(one.id)}`;
  if (one.phase === "aborted") return `${name}: aborted after ${duration(total)}: ${one.reason || why(one)}`;
  if (one.undecided) return `${name}: its run is gone, and nobody has decided yet what became of it; the next run does`;
  if (isOpen(one)) return `${name}: open for ${ago(total)}, ${state(one)}${one.end_ms && one.late ? `; ${one.late} has not answered` : ""}`;
  return `${name}: ${plural(one.records, "record")} in ${plural(one.files, "file")}; collected ${duration(collected)}, closed ${duration(closed)}, committed ${duration(committed)}`;
}

// --- the whole ------------------------------------------------------------------------------

export function show(next) {
  page = next;
  shown = page.transactions.slice(-fits);
  intervalMs = page.settings?.interval_ms ?? intervalMs;
  const totals = page.totals;
  const gone = shown.filter((one) => one.phase === "aborted").length;
  say($("transactions-sum"), shown.length
    ? `${plural(totals.commits, "commit")} of this run, ${count(totals.aborts)} aborted; the last ${count(shown.length)} below${gone ? `, ${count(gone)} of them aborted` : ""}`
    : "none yet");
  draw();
}

/** What is open grows. */
export function tick() {
  if (shown.length && isOpen(shown.at(-1))) draw();
}

function draw() {
  const whole = scale(shown);
  keyed($("strip"), shown, (one) => one.id, column, (node, one, number) => {
    const before = shown[number - 1];
    const gap = before && (before.run !== one.run || pause(before, one));
    fill(node, one, whole, gap);
  });
  keyed($("rows"), shown.slice(-ROWS_MAX).reverse(), (one) => one.id, row, (node, one) => fillRow(node, one, whole));
  for (const [place, newest] of [[$("strip"), $("strip").lastElementChild], [$("rows"), $("rows").querySelector("button")]]) {
    if (!place.contains(document.activeElement) || !place.querySelector('button[tabindex="0"]')) stopAt(place, newest);
  }
  set($("rows-head"), "hidden", !shown.length);
  keyed($("scale"), shown.length ? [1, 0.5] : [], (at) => at, () => h("span"), (node, at) => say(node, duration(whole * at).replace(".0 ", " ")));
  caption(null);
}

/** Whether nothing was open for so long between two that it shows. */
function pause(before, one) {
  return before.ended_ms && one.started_ms - before.ended_ms > Math.max(GAP_FACTOR * intervalMs, 5_000);
}

/** The height of the strip, in milliseconds: outliers are cut off, so that the rest can be told apart. */
function scale(some) {
  const took = some.map((one) => parts(one).total).sort((a, b) => a - b);
  if (!took.length) return 1000;
  const wanted = Math.min(took.at(-1), 4 * took[Math.floor(took.length / 2)]);
  for (let unit = 100; ; unit *= 10) {
    for (const step of STEPS) if (step * unit >= wanted) return step * unit;
  }
}

function measureParts(node, one, whole) {
  const { collected, closed, committed, total } = parts(one);
  const fits = total > whole ? whole / total : 1;
  measure(node, "--collected", (100 * collected * fits) / whole);
  measure(node, "--closed", (100 * closed * fits) / whole);
  measure(node, "--committed", (100 * committed * fits) / whole);
  set(node, "data-cut", total > whole);
}

// --- the strip ------------------------------------------------------------------------------

function column(one) {
  const node = h("button", { type: "button", class: "bar", tabindex: "-1" },
    h("i", { class: "commit" }), h("i", { class: "close" }), h("i", { class: "collect" }));
  node.addEventListener("click", () => open(one.id));
  node.addEventListener("mouseenter", () => caption(one.id));
  node.addEventListener("focus", () => caption(one.id));
  node.addEventListener("blur", () => caption(null));
  return node;
}

const drawn = new WeakMap();

function fill(node, one, whole, gap) {
  const what = `${one.phase} ${one.undecided} ${one.started_ms} ${one.end_ms} ${one.written_ms} ${one.ended_ms} ${one.reason} ${whole} ${gap}`;
  if (!isOpen(one) && drawn.get(node) === what) return;
  drawn.set(node, what);
  set(node, "data-phase", one.undecided ? "undecided" : one.phase);
  set(node, "data-gap", gap);
  set(node, "aria-label", sentence(one));
  measureParts(node, one, whole);
}

/** What is said below the strip: of the one that is looked at, else of the newest. */
function caption(id) {
  const focused = $("strip").contains(document.activeElement) ? document.activeElement : null;
  const wanted = id ?? $("strip").dataset.at ?? null;
  if (id !== null) $("strip").dataset.at = id;
  else if (!focused) delete $("strip").dataset.at;
  const one = shown.find((some) => some.id === (id === null && !focused ? null : wanted)) ?? shown.at(-1);
  say($("caption"), one ? sentence(one) : "No transaction was seen yet: the first record begins one.");
  set($("caption"), "data-phase", one?.phase);
}

// --- rows -----------------------------------------------------------------------------------

const COLUMNS = ["began", "id", "took", "records", "files", "size", "why"];

function row(one) {
  const cell = (name) => h("span", { class: name });
  const line = h("span", { class: "line" }, h("i", { class: "collect" }), h("i", { class: "close" }), h("i", { class: "commit" }));
  const [began, id, ...rest] = COLUMNS.map(cell);
  const button = h("button", { type: "button", class: "row", tabindex: "-1" }, began, id, line, ...rest);
  button.addEventListener("click", () => open(one.id));
  return h("li", {}, button);
}

function fillRow(node, one, whole) {
  const button = node.firstElementChild;
  const { total } = parts(one);
  const reported = one.records || one.files;
  const texts = {
    began: clock(one.started_ms),
    id: short(one.id),
    took: isOpen(one) ? ago(total) : duration(total),
    records: reported ? count(one.records) : "",
    files: reported ? count(one.files) : "",
    size: reported ? size(one.bytes) : "",
    why: briefly(one),
  };
  for (const name of COLUMNS) say(button.querySelector(`.${name}`), texts[name]);
  set(button, "data-phase", one.undecided ? "undecided" : one.phase);
  set(button, "aria-label", `${sentence(one)}${why(one) && one.phase !== "aborted" ? `; ended because ${why(one)}` : ""}`);
  measureParts(button, one, whole);
}

/** Records a second, of what was committed lately. */
export function rate(page) {
  const windowMs = Math.max(60_000, 3 * page.settings.interval_ms);
  const since = page.at_ms - windowMs;
  const lately = page.transactions.filter((one) => one.phase === "committed" && one.ended_ms > since);
  if (!lately.length) return 0;
  const from = Math.max(since, Math.min(...lately.map((one) => one.started_ms)));
  return (1000 * lately.reduce((sum, one) => sum + one.records, 0)) / Math.max(1000, page.at_ms - from);
}
