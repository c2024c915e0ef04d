// One transaction, opened: why it ended, what the commit took, who wrote what, who was late, what was said.

import { $, h, measure } from "./dom.js";
import { clock, count, duration, plural, short, size } from "./format.js";
import { isOpen, parts, state, why } from "./transactions.js";

const WRITERS_MAX = 24;
const RANGES_MAX = 200;
const AGAIN_MS = 2_000;

const NOW = {
  collecting: "Records are being collected, and written into files.",
  "closing files": "Workers close their files.",
  committing: "All files are there: the table commits them.",
};

let url = "";
let words = {};
let shown = null;
let neighbours = () => [null, null];

/** `around`: the ids before and after one. */
export function start(theWords, around) {
  words = theWords;
  neighbours = around;
  const dialog = $("story");
  dialog.addEventListener("close", () => {
    shown = null;
    if (location.hash) history.replaceState(null, "", location.pathname);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 0, ArrowRight: 1 }[event.key];
    if (step === undefined || event.target.closest("[tabindex], input")) return;
    const to = shown && neighbours(shown)[step];
    if (to) open(to);
  });
}

export function turn(index) {
  url = `/api/p/${index}/transactions/`;
  if ($("story").open) $("story").close();
}

export async function open(id) {
  shown = id;
  const dialog = $("story");
  if (!dialog.open) {
    dialog.replaceChildren(head(`Transaction ${short(id)}`, null), h("p", {}, "asking …"));
    dialog.showModal();
  }
  history.replaceState(null, "", `#t=${encodeURIComponent(id)}`);
  await load(id);
}

async function load(id) {
  let told = null;
  let problem = "";
  try {
    const answer = await fetch(url + encodeURIComponent(id), { cache: "no-store" });
    told = await answer.json();
    if (!answer.ok) problem = told.error ?? `status ${answer.status}`;
  } catch (error) {
    problem = "Nobody answers: try again once the page does.";
  }
  if (shown !== id) return;
  const dialog = $("story");
  const held = dialog.querySelector(":focus")?.dataset.hold;
  const down = dialog.scrollTop;
  if (problem) dialog.replaceChildren(head(`Transaction ${short(id)}`, null), h("p", {}, problem));
  else dialog.replaceChildren(...whole(told));
  dialog.scrollTop = down;
  dialog.querySelector(held ? `[data-hold="${held}"]` : "[data-hold=close]")?.focus();
  if (!problem && isOpen(told)) setTimeout(() => shown === id && load(id), AGAIN_MS);
}

function head(title, told) {
  const close = h("button", { type: "button", class: "plain", "data-hold": "close" }, "Close");
  close.addEventListener("click", () => $("story").close());
  const steps = [];
  if (told) {
    const around = neighbours(told.id);
    for (const [at, text, hold] of [[0, "← earlier", "earlier"], [1, "later →", "later"]]) {
      const button = h("button", { type: "button", class: "plain", "data-hold": hold, disabled: !around[at] }, text);
      button.addEventListener("click", () => open(around[at]));
      steps.push(button);
    }
  }
  return h("header", { class: "story-head" }, h("h2", { id: "story-title" }, title), h("span", { class: "grow" }), ...steps, close);
}

/** Who has reported, and who has not. */
function everybody(told) {
  const there = new Set(told.writers.map((one) => one.name));
  const late = told.phase === "aborted" && told.late ? told.late.split(", ").filter((name) => !name.endsWith(" more")) : [];
  const absent = [...(told.missing ?? []), ...late].filter((name) => !there.has(name));
  const nothing = { incarnation: "", answered_ms: 0, records: 0, files: 0, bytes: 0, ranges: [] };
  return [...told.writers, ...absent.map((name) => ({ name, ...nothing }))];
}

function whole(said) {
  const told = { ...said, writers: everybody(said) };
  const summary = told.phase === "aborted"
    ? `given up after ${duration(parts(told).total)}`
    : told.undecided ? "its run is gone"
    : isOpen(told) ? `open since ${clock(told.started_ms)}`
    : `${plural(told.records, "record")} in ${plural(told.files, "file")}, ${size(told.bytes)}`;
  return [
    head(`Transaction ${short(told.id)}`, told),
    h("p", { class: "story-sum" }, h("span", { class: "chip", "data-phase": told.phase }, state(told)), ` ${summary} · epoch ${count(told.epoch)} · instant ${told.instant || "none"}`),
    lanes(told),
    h("ol", { class: "steps" }, ...steps(told)),
    ...commitParts(told),
    ...writers(told),
    ...messages(told),
    h("p", { class: "more" }, "In a terminal: ", h("code", {}, `lockstep events -c … --transaction ${short(told.id)}`)),
  ];
}

// --- in words ---------------------------------------------------------------------------------

function steps(told) {
  const { collected, closed, committed, total } = parts(told);
  const said = [[told.started_ms, "START", `${plural(told.workers, "worker")} ${told.workers === 1 ? "was" : "were"} told from which offsets to write.`]];
  if (told.end_ms) said.push([told.end_ms, "END", `After ${duration(collected)}: ${why({ ...told, phase: "committed" }) || "it was to end"}.`]);
  if (told.written_ms) said.push([told.written_ms, "WRITE_STATUS", `All files were there ${duration(closed)} later${told.late ? `; ${told.late} was the last${told.late_by_ms ? `, by ${duration(told.late_by_ms)}` : ""}` : ""}.`]);
  if (told.phase === "committed") said.push([told.ended_ms, "ACK", `Committed in ${duration(committed)}: files and offsets became visible together, as instant ${told.instant}.`]);
  if (told.phase === "aborted") {
    said.push([told.ended_ms, "ABORT", `Given up after ${duration(total)}, because ${why(told) || "it could not be completed"}.${told.reason ? ` ${told.reason}` : ""}`]);
    if (told.late) said.push([0, "", `Missing: ${told.late}.`]);
    said.push([0, "", "Nothing of it is in the table; the same records are read again, by the next transaction."]);
  }
  if (told.undecided) said.push([0, "", "Its run is gone, and nobody has decided yet what became of it: the next run reads the table, and does."]);
  if (isOpen(told)) said.push([0, "", NOW[state(told)] + (told.end_ms && told.late ? ` ${told.late} has not answered.` : "")]);
  return said.map(([time, kind, text]) => h("li", {}, h("time", {}, time ? clock(time, { millis: true }) : ""), h("b", {}, kind), h("span", {}, text)));
}

const KINDS = { answered: "wrote", "did not answer": "silent", "was not asked yet": "unasked", "is asked": "unasked" };

const isLate = (told, one) => (told.late ?? "").split(", ").includes(one.name);
const number = (one, value) => (one.answered_ms ? value : "–");

/** How a writer stands: before END nobody is asked, and only whoever is missed has failed to answer. */
function standing(told, one) {
  if (one.answered_ms) return "answered";
  if (isLate(told, one) && !isOpen(told)) return "did not answer";
  return told.end_ms ? (isOpen(told) ? "is asked" : "did not answer") : "was not asked yet";
}

// --- as a picture -----------------------------------------------------------------------------

function lanes(told) {
  const { collected, closed, committed, total } = parts(told);
  const share = (ms) => (total ? (100 * ms) / total : 0);
  const bar = (kind, from, ms, text) => {
    const node = h("i", { class: kind }, text ? h("span", {}, text) : null);
    measure(node, "--from", share(from));
    measure(node, "--share", share(ms));
    return node;
  };
  const named = (ms, text) => (share(ms) > 14 ? `${text} ${duration(ms)}` : "");
  const lane = (name, ...bars) => h("div", { class: "lane" }, h("span", { class: "lane-name" }, name), h("span", { class: "lane-bars" }, ...bars));
  const made = [lane("all", bar("collect", 0, collected, named(collected, "collect")), bar("close", collected, closed, named(closed, "close")),
    bar("commit", collected + closed, committed, named(committed, "commit")))];
  for (const one of told.writers.slice(0, WRITERS_MAX)) {
    const took = Math.min(total, one.answered_ms ? one.answered_ms - told.started_ms : total);
    made.push(lane(one.name, bar(KINDS[standing(told, one)], 0, took, one.answered_ms ? named(took, "answered after") : standing(told, one))));
  }
  const label = `Collected for ${duration(collected)}, closed files for ${duration(closed)}, committed for ${duration(committed)}`;
  return h("div", { class: "lanes", role: "img", "aria-label": label, "data-phase": told.phase }, ...made);
}

function commitParts(told) {
  const names = Object.keys(words.commit_parts).filter((name) => name in (told.took_ms ?? {}));
  if (!names.length) return [];
  const total = names.reduce((sum, name) => sum + told.took_ms[name], 0);
  const rows = names.map((name) => {
    const meter = h("span", { class: "part" }, h("i"));
    measure(meter, "--share", total ? (100 * told.took_ms[name]) / total : 0);
    return h("tr", {}, h("th", { scope: "row", class: "short" }, name), h("td", { class: "n" }, duration(told.took_ms[name])), h("td", { class: "wide-bar" }, meter), h("td", { class: "more" }, words.commit_parts[name] ?? ""));
  });
  return [h("h3", {}, "What the commit took"), table(["part", "took", "", ""], rows, "What the commit took")];
}

function writers(told) {
  if (!told.writers.length) return [];
  const rows = told.writers.map((one) => {
    const late = isLate(told, one);
    const answered = one.answered_ms ? `after ${duration(one.answered_ms - told.started_ms)}` : standing(told, one);
    return h("tr", { "data-late": late || answered === "did not answer" },
      h("th", { scope: "row" }, one.name, h("span", { class: "more" }, ` ${short(one.incarnation)}`)),
      h("td", {}, answered + (late && one.answered_ms ? ", the last" : "")),
      ...[count(one.records), count(one.files), size(one.bytes)].map((text) => h("td", { class: "n" }, number(one, text))),
      h("td", {}, ranges(one.ranges)));
  });
  return [h("h3", {}, "Who wrote what"), table(["worker", "answered", "records", "files", "size", "offsets"], rows, "Who wrote what")];
}

function ranges(some) {
  if (!some.length) return h("span", { class: "more" }, "–");
  const text = (one) => `${one.topic}:${one.partition} [${count(one.start)}, ${count(one.next)})`;
  if (some.length <= 2) return h("span", {}, ...some.flatMap((one) => [text(one), h("br")]).slice(0, -1));
  const list = some.slice(0, RANGES_MAX).map((one) => h("li", {}, text(one)));
  return h("details", {}, h("summary", {}, plural(some.length, "range")), h("ul", { class: "ranges" }, ...list));
}

function messages(told) {
  if (!told.messages.length) return [h("p", { class: "more" }, "Its messages on the control topic are not at hand any more.")];
  const rows = told.messages.map((one) => h("tr", { "data-type": one.type },
    h("td", { class: "more" }, clock(one.time_ms, { millis: true })), h("td", { class: "n more" }, count(one.offset)),
    h("th", { scope: "row" }, one.type), h("td", {}, one.sender), h("td", { class: "said" }, one.text)));
  return [h("h3", {}, "What was said on the control topic"), table(["time", "offset", "message", "by", "content"], rows, "What was said on the control topic")];
}

function table(columns, rows, label) {
  const right = (name) => (["took", "records", "files", "size", "offset"].includes(name) ? "n" : null);
  const heads = columns.map((name) => h(name ? "th" : "td", { scope: name ? "col" : null, class: right(name) }, name));
  return h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)));
}
