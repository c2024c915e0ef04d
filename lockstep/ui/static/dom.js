// Everything that is shown goes in as text: what comes from topics and tables is never markup here.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a string among these is text. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same, of an SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children.filter((one) => one !== null));
  return node;
}

export const $ = (id) => document.getElementById(id);

/** Set an attribute where it is another; null, undefined and false take it away. */
export function set(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

const said = new WeakMap();

/** Set the text of a node that has nothing else in it, where it is another. */
export function say(node, text) {
  if (said.get(node) === text) return;
  said.set(node, text);
  node.textContent = text;
}

/** The same of a sentence in which `what stands so` is a command: it is set as one. */
export function sayTicked(node, text) {
  if (said.get(node) === text) return;
  said.set(node, text);
  node.replaceChildren(...text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part)));
}

/** Set a custom property of its style: a number that the style sheet makes a length of. */
export function measure(node, name, value) {
  const text = String(Math.round(value * 1000) / 1000);
  if (node.style.getPropertyValue(name) !== text) node.style.setProperty(name, text);
}

const kept = new WeakMap();

/** Make a parent's children those of `items`, in their order; what is there already is updated, not made anew. */
export function keyed(parent, items, key, make, update) {
  const known = kept.get(parent) ?? new Map();
  const next = new Map();
  for (const [number, item] of items.entries()) {
    let name = String(key(item));
    if (next.has(name)) name += ` ${number}`;
    const node = known.get(name) ?? make(item);
    next.set(name, node);
    update(node, item, number);
  }
  for (const [name, node] of known) if (next.get(name) !== node) node.remove();
  let at = parent.firstChild;
  for (const node of next.values()) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  kept.set(parent, next);
}

/** One stop of the Tab key for all children that are buttons; arrows, Home and End move among them. */
export function roving(parent, { horizontal }) {
  const [back, on] = horizontal ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const buttons = () => [...parent.querySelectorAll("button")];
  parent.addEventListener("keydown", (event) => {
    const all = buttons();
    const at = all.indexOf(document.activeElement);
    const to = { [back]: at - 1, [on]: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    all[Math.min(Math.max(to, 0), all.length - 1)].focus();
  });
  parent.addEventListener("focusin", (event) => {
    if (event.target.tagName === "BUTTON") stopAt(parent, event.target);
  });
}

/** Where Tab stops: at the one that was there last, else at the newest. */
export function stopAt(parent, wanted) {
  const before = parent.querySelector('button[tabindex="0"]');
  if (before === wanted) return;
  if (before) set(before, "tabindex", "-1");
  if (wanted) set(wanted, "tabindex", "0");
}
