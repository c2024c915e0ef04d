// What operators have ordered of the run, and, where this page takes orders, the buttons that give some.

import { $, h, keyed, say, set } from "./dom.js";
import { count, duration, moment, size } from "./format.js";

const NAMES = { commit: "Commit now", pause: "Pause", resume: "Resume", set: "Set", stop: "Stop the run" };
const STATES = { done: "done", open: "not done yet", "given up": "given up" };
const ANSWER_MS = 20_000;
const NONE = "none"; // said of a schedule and an alignment that are not, and typed to have none

let words = {};
let index = 0;
let takes = false;
let latest = null;
let action = "";
let sending = false;
let run = ""; // the one that was shown when the dialog was opened
let shownRun = "";

export function start(told) {
  words = told;
  for (const button of $("order-buttons").children) button.addEventListener("click", () => begin(button.dataset.action));
  $("order-no").addEventListener("click", () => $("order").close());
  $("order-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  $("order-who").value = sessionStorage.getItem("who") ?? "";
}

/** From now on of another pipeline. */
export function turn(to, name) {
  index = to;
  takes = words.takes_orders.includes(name);
  latest = null;
  $("order").close();
  say($("order-told"), "");
}

export function show(page) {
  latest = page.control;
  shownRun = page.run ?? "";
  const all = latest?.orders ?? [];
  set($("orders-card"), "hidden", !takes && !all.length);
  set($("order-buttons"), "hidden", !takes);
  for (const button of $("order-buttons").children) set(button, "disabled", !may(button.dataset.action));
  say($("orders-sum"), sum(all));
  const make = () => h("li", {}, h("time"), h("b"), h("span"), h("span", { class: "order-state" }));
  keyed($("orders"), all, (one) => one.number, make, (node, one) => {
    const [time, what, who, state] = node.children;
    say(time, moment(one.time_ms));
    say(what, [one.action, ...Object.entries(one.settings).map(spelled)].join(" "));
    say(who, `${one.who}${one.why ? `: ${one.why}` : ""}`);
    say(state, STATES[one.state] ?? one.state);
    set(node, "data-state", one.state);
  });
}

function sum(all) {
  if (!latest) return "The driver tells of them, and does not answer here.";
  const changed = latest.changed.map((name) => spelled([name, latest.settings[name]]));
  const lasting = changed.length ? `${changed.join(", ")} until the run ends` : "";
  const paused = latest.paused ? "paused" : "";
  return [paused, lasting].filter(Boolean).join(" · ") || (all.length ? "the newest first" : "none so far");
}

function spelled([name, value]) {
  const text = typeof value === "string" ? value || NONE : name.endsWith("align") ? (value ? duration(value) : NONE) : /interval|timeout/.test(name) ? duration(value) : value === 0 ? "no limit" : name.endsWith("bytes") ? size(value) : count(value);
  return `${name} = ${text}`;
}

function may(wanted) {
  if (!latest) return false;
  return wanted === "pause" ? !latest.paused : wanted === "resume" ? latest.paused : true;
}

// --- giving one -------------------------------------------------------------------------------

function begin(wanted) {
  action = wanted;
  run = shownRun;
  say($("order-title"), NAMES[action]);
  const meaning = words.actions[action];
  say($("order-meaning"), `${meaning[0].toUpperCase()}${meaning.slice(1)}.`);
  say($("order-yes"), NAMES[action]);
  set($("order-yes"), "data-action", action);
  say($("order-refused"), "");
  set($("order-settings"), "hidden", action !== "set");
  const settings = action === "set" ? Object.entries(latest.settings) : [];
  const make = ([name]) => h("label", {}, h("span", {}, name), h("input", { name, type: "text", autocomplete: "off", spellcheck: "false", maxlength: "200" }));
  keyed($("order-fields"), settings, ([name]) => name, make, (node, entry) => set(node.lastChild, "placeholder", `now ${spelled(entry).split(" = ")[1]}`));
  for (const input of $("order-fields").querySelectorAll("input")) input.value = "";
  $("order-why").value = "";
  $("order").showModal();
}

async function send() {
  if (sending) return;
  const filled = [...$("order-fields").querySelectorAll("input")].filter((input) => input.value.trim());
  const settings = action === "set" ? Object.fromEntries(filled.map(({ name, value }) => [name, /schedule|align/.test(name) && value.trim() === NONE ? "" : value.trim()])) : {};
  const who = $("order-who").value.trim();
  sessionStorage.setItem("who", who);
  sending = true;
  set($("order-yes"), "disabled", true);
  say($("order-refused"), "");
  const refused = await give({ action, settings, who, why: $("order-why").value.trim(), run });
  sending = false;
  set($("order-yes"), "disabled", false);
  if (refused) say($("order-refused"), refused);
  else $("order").close();
}

/** Why it was not taken; empty where it was. The token is kept where it was typed, as long as this page is open. */
async function give(order) {
  const token = $("order-token").value.trim();
  try {
    const answer = await fetch(`/api/p/${index}/orders`, {
      method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body: JSON.stringify(order), signal: AbortSignal.timeout(ANSWER_MS),
    });
    const told = await answer.json();
    if (!answer.ok) return told.error;
    say($("order-told"), `Order ${count(told.number)} is taken: ${order.action}.`);
    return "";
  } catch (error) {
    return "No answer: whether the order was taken is not known. The list of orders says so, once it is there again.";
  }
}
