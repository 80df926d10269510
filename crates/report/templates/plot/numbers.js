// The numbers of plots, and how numbers read on the page: as everywhere in kendall, by significant digits and a unit that fits.

const NONE = "–";
const UNITS = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]];

/** "f32:" or "f64:" and little-endian bytes in base64. Throws where the text is anything else. */
function decoded(text) {
  const [, kind, base64] = /^(f32|f64):([A-Za-z0-9+/]*=*)$/.exec(text) ?? [];
  if (!kind) throw new Error("numbers are f32: or f64: and base64");
  const bytes = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(base64)
    : Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return kind === "f32" ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}

/** Plain decimals with so many significant digits; whole digits are never dropped. */
function significant(value, digits) {
  if (!Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  const exponent = Number(value.toExponential(digits - 1).split("e")[1]);
  return value.toFixed(Math.min(Math.max(digits - 1 - exponent, 0), 12));
}

/** The largest unit in which a time is at least 1: its symbol, and how many of it make a second. */
function unitFor(time_s) {
  const size = Math.abs(time_s);
  return size === 0 ? UNITS[0] : UNITS.find(([, per_s]) => size * per_s >= 1) ?? UNITS[3];
}

function time(time_s, digits = 3) {
  const [symbol, per_s] = unitFor(time_s);
  return `${significant(time_s * per_s, digits)} ${symbol}`;
}

function percent(share, digits = 2) {
  return Number.isFinite(share) ? `${significant(share * 100, digits)} %` : NONE;
}

/** As many digits as tell two neighbouring pixels apart, and no more than a reader can use. */
function digitsFor(value, pixel) {
  const needed = Math.ceil(Math.log10(Math.abs(value) / Math.abs(pixel)));
  return Number.isFinite(needed) ? Math.min(Math.max(needed, 3), 9) : 3;
}

/** The first place of an ascending list whose number is not below `value`. */
function firstFrom(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of the nearest number of an ascending list. */
function nearestPlace(sorted, value) {
  const after = firstFrom(sorted, value);
  if (after === 0) return 0;
  if (after === sorted.length) return after - 1;
  return value - sorted[after - 1] <= sorted[after] - value ? after - 1 : after;
}

function isAscending(numbers) {
  for (let place = 1; place < numbers.length; place++) if (!(numbers[place] >= numbers[place - 1])) return false;
  return true;
}
