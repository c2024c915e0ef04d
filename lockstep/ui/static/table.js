// What the table is made of: files, how small they are, where those are, and its columns.

import { $, h, keyed, say, set } from "./dom.js";
import { ago, count, known, moment, now, plural, size } from "./format.js";

const MANY_SHARE = 0.5;
const MANY_FILES = 100; // of few files most are small, and nobody minds; of upserts the buckets decide
const UNCHANGED_MS = 60_000;

export function show(page) {
  const { files, schema, mode } = page.table;
  counted(files);
  figures(files, mode);
  worst(files);
  columns(schema);
}

function counted(files) {
  const place = $("table-sum");
  const parts = files ? 3 : 1;
  if (place.childElementCount !== parts) place.replaceChildren(...Array.from({ length: parts }, () => h("span")));
  const [first, age, rest] = place.children;
  if (!files) {
    say(first, "not counted yet");
    return;
  }
  say(first, "counted ");
  set(age, "data-since", files.counted_ms);
  say(age, `${ago(now() - files.counted_ms)} ago`);
  const unchanged = files.checked_ms - files.counted_ms > UNCHANGED_MS ? `, unchanged until ${moment(files.checked_ms)}` : "";
  say(rest, `${unchanged}${files.at_least ? "; there are too many files to count them all: each figure is a least" : ""}`);
}

function figures(files, mode) {
  const some = files ? figuresOf(files, mode) : [];
  const make = ({ name }) => h("div", {}, h("dt", {}, name), h("dd"), h("dd", { class: "more" }));
  keyed($("table-figures"), some, ({ name }) => name, make, (node, one) => {
    set(node, "data-kind", one.many ? "warn" : null);
    say(node.children[1], one.value);
    say(node.children[2], one.more);
  });
}

function figuresOf(files, mode) {
  const least = files.at_least ? "at least " : "";
  const share = files.files ? files.small_files / files.files : 0;
  const partitions = files.table_partitions > 1 ? `in ${plural(files.table_partitions, "table partition")}` : "";
  const found = [
    { name: "Files", value: `${least}${count(files.files)}`, more: partitions },
    { name: "Size", value: `${least}${size(files.bytes)}`, more: "" },
    { name: "Mean size", value: files.files ? size(files.bytes / files.files) : "–", more: "" },
    {
      name: "Small files",
      value: files.files ? percent(share) : "–",
      more: `${count(files.small_files)} below ${size(files.small_below_bytes)}`,
      many: mode !== "upsert" && share > MANY_SHARE && files.small_files >= MANY_FILES,
    },
  ];
  if (mode === "upsert" || files.log_files) {
    found.push({ name: "Log files", value: `${least}${count(files.log_files)}`, more: `${size(files.log_bytes)}, not compacted yet` });
  }
  return found;
}

/** Whole, but neither 0 % of some nor 100 % of not all. */
function percent(share) {
  const whole = Math.round(100 * share);
  if (share > 0 && whole === 0) return "< 1 %";
  if (share < 1 && whole === 100) return "> 99 %";
  return `${whole} %`;
}

function worst(files) {
  const some = files && (files.table_partitions > 1 || files.worst.some((one) => one.path)) ? files.worst : [];
  set($("worst-part"), "hidden", !some.length);
  const make = () => h("tr", {}, h("th", { scope: "row" }), h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "n wide" }));
  keyed($("worst"), some, (one) => one.path, make, (node, one) => {
    const [path, small, all, bytes] = node.children;
    say(path, one.path || "(of no value)");
    say(small, count(one.small_files));
    say(all, count(one.files));
    say(bytes, size(one.bytes));
  });
}

// --- columns ----------------------------------------------------------------------------------

function columns(schema) {
  set($("schema-part"), "hidden", !schema);
  if (!schema) return;
  say($("schema-sum"), `${plural(schema.columns_total, "column")} now`);
  keyed($("schema"), schema.columns, (one) => one.name, () => h("li", {}, h("b"), h("span")), (node, one) => {
    say(node.firstChild, one.name);
    say(node.lastChild, `${one.type}${one.nullable ? "" : " NOT NULL"}`);
  });
  say($("schema-rest"), more(schema.columns_total - schema.columns.length));
  const make = () => h("li", {}, h("time"), h("span"), h("span", { class: "more" }));
  keyed($("schema-changes"), schema.changes, (one) => one.instant, make, (node, one) => {
    const [time, said, instant] = node.children;
    say(time, moment(one.completed_ms));
    const rest = more(one.columns_total - one.columns.length);
    say(said, [...one.columns.map(change), ...(rest ? [rest] : [])].join("; "));
    say(instant, `instant ${one.instant}`);
  });
  say($("schema-since"), since(schema));
}

const change = ({ name, was, now: is }) => (!known(was) ? `${name} added, ${is}` : !known(is) ? `${name} gone, was ${was}` : `${name} is ${is}, was ${was}`);

const more = (number) => (number > 0 ? `and ${count(number)} more` : "");

/** How far back that is: what is older is archived, and not read. */
function since(schema) {
  if (!schema.since_instant) return "";
  const hidden = more(schema.changes_total - schema.changes.length);
  const what = hidden || (schema.changes.length ? "all changes" : "no change");
  return `${what} since instant ${schema.since_instant} (${moment(schema.since_ms)}); what was before is not looked at`;
}
