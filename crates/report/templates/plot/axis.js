// Axes: laws by which values are spread, ranges, ticks at round values, and how a value of an axis reads.

/** What equal lengths of an axis are equal differences of, and back. */
const LAWS = {
  linear: { to: (value) => value, from: (place) => place },
  log: { to: (value) => (value > 0 ? Math.log(value) : NaN), from: Math.exp },
  tail: { to: (share) => (share < 1 ? -Math.log1p(-share) : NaN), from: (place) => -Math.expm1(-place) },
};
const QUANTILES = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
const LETTER = 6.7;

/** A range that the law of the axis can show, whatever was asked for. */
function soundRange({ law, range: [low, high] }) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0.1, 1];
  if (law === "log") {
    if (high <= 0) [low, high] = [0.1, 1];
    if (low <= 0) low = high / 1e3;
    return low < high ? [low, high] : [low / 2, high * 2];
  }
  if (law === "tail") return [Math.min(Math.max(low, 0), 0.9), Math.min(Math.max(high, 0.9), 1 - 1e-9)];
  const room = 0.5 * Math.max(Math.abs(low), 1);
  return low < high ? [low, high] : [low - room, low + room];
}

/** Ticks within a range that is so many pixels long; one without a label is a mark between others. */
function ticksOf(axis, range, pixels) {
  if (axis.names?.length) return namedTicks(axis, range, pixels);
  const per = axis.quantity === "time" ? unitFor(Math.max(Math.abs(range[0]), Math.abs(range[1]))) : ["", 1];
  if (axis.law === "tail") {
    const named = QUANTILES.map((name) => ({ value: Number(name) / 100, label: `p${name}` }));
    const inside = named.filter(({ value }) => value >= range[0] && value <= range[1]);
    if (inside.length > 1) return inside;
    return linearTicks(range, 100, pixels).map(({ value, shown }) => ({ value, label: `p${shown}` }));
  }
  if (axis.law === "log") {
    for (const digits of [[1], [1, 2, 5]]) {
      const ticks = logTicks(axis, range, pixels, digits);
      if (ticks.filter(({ label }) => label).length > 1) return ticks;
    }
    const suffix = axis.quantity === "share" ? " %" : per[0] && ` ${per[0]}`;
    return linearTicks(range, axis.quantity === "share" ? 100 : per[1], pixels)
      .map(({ value, shown }) => ({ value, label: shown + suffix }));
  }
  const isShare = axis.quantity === "share";
  return linearTicks(range, isShare ? 100 : per[1], pixels)
    .map(({ value, shown }) => ({ value, label: isShare ? `${shown} %` : shown }));
}

function namedTicks({ names, isUpright }, range, pixels) {
  const inside = names.filter(([value]) => value >= range[0] && value <= range[1]).sort(([a], [b]) => a - b);
  const longest = inside.reduce((most, [, name]) => Math.max(most, name.length), 0);
  const room = isUpright ? 16 : LETTER * longest + 6;
  const isDense = inside.length * 5 > pixels;
  let last = -Infinity;
  const ticks = inside.map(([value, name]) => {
    const at = (value - range[0]) / (range[1] - range[0]) * pixels;
    if (at - last < room) return { value, label: null };
    last = at;
    return { value, label: name };
  });
  return isDense ? ticks.filter(({ label }) => label) : ticks;
}

/** About one tick every 70 pixels, at 1, 2 or 5 times a power of ten. */
function linearTicks(range, per, pixels) {
  const [low, high] = range.map((value) => value * per);
  const wanted = Math.min(Math.max(pixels / 70, 3), 9);
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= 0.7 * rough) ?? 10 * power;
  const decimals = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 12);
  const ticks = [];
  const last = Math.floor(high / step + 1e-9);
  for (let at = Math.ceil(low / step - 1e-9); at <= last && ticks.length < 20; at++) {
    ticks.push({ value: at * step / per, shown: (at * step).toFixed(decimals) });
  }
  return ticks;
}

/** Every power of ten, or these digits of it, and 2 and 5 times it where there is room; marks between. */
function logTicks({ quantity, isUpright }, [low, high], pixels, digits) {
  const decade = pixels / Math.log10(high / low);
  const labelled = decade > (isUpright ? 75 : 150) ? [1, 2, 5] : digits;
  const every = Math.ceil(Math.max(34 / decade, 1));
  const ticks = [];
  for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.ceil(Math.log10(high)); exponent++) {
    for (let digit = 1; digit < (decade > 12 ? 10 : 2); digit++) {
      const value = Number(`${digit}e${exponent}`);
      if (value < low || value > high) continue;
      const isNamed = labelled.includes(digit) && exponent % every === 0;
      ticks.push({ value, label: isNamed ? logLabel(value, quantity) : null });
    }
  }
  return ticks;
}

function logLabel(value, quantity) {
  if (quantity === "time") return time(value * (1 + 1e-9), 1);
  return quantity === "share" ? `${significant(100 * value, 1)} %` : significant(value, 1);
}

/** The title of an axis, with the unit where its ticks do not carry one. */
function titleOf(axis, range) {
  if (axis.quantity !== "time" || axis.law !== "linear" || !axis.title || axis.names?.length) return axis.title;
  return `${axis.title} [${unitFor(Math.max(Math.abs(range[0]), Math.abs(range[1])))[0]}]`;
}

/** A value as it reads beside others; `pixel` is how much of the axis a pixel is there. */
function valueOf(axis, value, pixel) {
  if (!Number.isFinite(value)) return NONE;
  const named = axis.names?.find(([at]) => Math.abs(at - value) <= 1e-9 * Math.max(Math.abs(at), 1));
  if (named) return named[1];
  const digits = digitsFor(value, pixel);
  if (axis.law === "tail") return `p${Number(significant(100 * value, Math.max(digits, 4)))}`;
  if (axis.quantity === "time") return time(value, digits);
  if (axis.quantity === "share") return percent(value, digits);
  const unit = /\[([^\]]+)\]$/.exec(axis.title)?.[1];
  const text = Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : significant(value, digits);
  return unit ? text + (unit.startsWith("1/") ? unit.slice(1) : ` ${unit}`) : text;
}
