// Numbers for people, in the words of `lockstep status`.

let ahead = 0;

/** What the server's clock says: this one may be off. */
export const now = () => Date.now() + ahead;

/** The server said what time it is. */
export function hearTime(serverMs) {
  ahead = serverMs - Date.now();
}

export const known = (value) => value !== null && value !== undefined;

export function count(value) {
  return known(value) ? Math.round(value).toLocaleString("en-US") : "–";
}

const large = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];

/** `61.2 M`: of numbers that nobody reads to the last figure. */
export function roughly(value) {
  if (!known(value)) return "–";
  for (const [unit, name] of large) {
    if (value >= unit) {
      const size = value / (name === "k" ? 1e3 : unit);
      return `${size >= 100 ? Math.round(size) : size.toFixed(1)} ${name}`;
    }
  }
  return count(value);
}

export function size(bytes) {
  if (!known(bytes)) return "–";
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 999.5) return unit === "B" || value >= 99.95 ? `${Math.round(value)} ${unit}` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

const two = (value) => String(value).padStart(2, "0");

export function duration(ms) {
  if (!known(ms)) return "–";
  const whole = Math.max(0, ms);
  if (whole < 1000) return `${Math.round(whole)} ms`;
  if (whole < 59_950) return `${(whole / 1000).toFixed(1)} s`;
  return long(Math.round(whole / 1000));
}

/** How long ago, counted in whole seconds: a figure that does not flicker. */
export function ago(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : long(seconds);
}

function long(seconds) {
  for (const [unit, name, inner, innerName] of [[86_400, "d", 3_600, "h"], [3_600, "h", 60, "m"], [60, "m", 1, "s"]]) {
    if (seconds >= unit) return `${Math.floor(seconds / unit)} ${name} ${two(Math.floor((seconds % unit) / inner))} ${innerName}`;
  }
  return `${seconds} s`;
}

/** `03:12:44` of this machine; with `millis`, to the thousandth. */
export function clock(ms, { millis = false } = {}) {
  const at = new Date(ms);
  if (!ms || Number.isNaN(at.getTime())) return "–";
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return millis ? `${text}.${String(at.getMilliseconds()).padStart(3, "0")}` : text;
}

/** With the day, where that is not today. */
export function moment(ms) {
  const at = new Date(ms);
  const sameDay = at.toDateString() === new Date(now()).toDateString();
  return sameDay ? clock(ms) : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

export const short = (id) => String(id).slice(0, 8);

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
