// What is under the cursor: of each layer the datum that is nearest, and how it reads.

/** Further away than so many pixels, a marker of many is not what the reader points at. */
const REACH = 30;
/** With no more marks than this, the nearest across is meant, however high it stands. */
const FEW = 200;
/** So near to one of few marks, lines are read where it stands. */
const SNAP = 12;

/** The place of the datum of a layer that a cursor at (px, py) means; -1 for none. Without `py`, by x alone. */
function nearestOf(layer, px, py, space) {
  return NEAREST[layer.mark]?.(layer, px, py, space) ?? -1;
}

/** By x: the nearest datum, unless it is an eighth of the plot away. */
function byX({ x }, px, space) {
  if (!x.length) return -1;
  const place = nearestPlace(x, space.valueX(px));
  return Math.abs(space.x(x[place]) - px) <= space.width / 8 ? place : -1;
}

const NEAREST = {
  line: (layer, px, py, space) => byX(layer, px, space),
  band: (layer, px, py, space) => byX(layer, px, space),
  intervals: (layer, px, py, space) => (layer.isAscending ? byX(layer, px, space) : nearestPoint(layer, px, py, space)),
  step: ({ x }, px, py, space) => firstFrom(x, space.valueX(px + 0.5)) - 1,
  points(layer, px, py, space) {
    if (layer.isAscending && (layer.x.length <= FEW || py === null)) return byX(layer, px, space);
    return nearestPoint(layer, px, py, space);
  },
  bars({ from, to }, px, py, space) {
    const value = space.valueX(px);
    return from.findIndex((start, place) => start <= value && value < to[place]);
  },
  heat({ x_edges, y_edges, counts }, px, py, space) {
    if (py === null) return -1;
    const column = cellOf(x_edges, space.valueX(px));
    const row = cellOf(y_edges, space.valueY(py));
    if (column < 0 || row < 0) return -1;
    const place = row * (x_edges.length - 1) + column;
    return counts[place] > 0 ? place : -1;
  },
  spans({ lane, from, to }, px, py, space) {
    if (py === null) return -1;
    let nearest = -1;
    let least = 4;
    for (let place = 0; place < lane.length; place++) {
      const up = Math.max(space.y(lane[place] + 0.9) - py, py - space.y(lane[place] + 0.1), 0);
      if (up >= least) continue;
      const across = Math.max(space.x(from[place]) - px, px - space.x(to[place]), 0);
      if (up + across < least) {
        nearest = place;
        least = up + across;
      }
    }
    return nearest;
  },
};

function nearestPoint(layer, px, py, space) {
  if (py === null) return -1;
  const [x, y] = [layer.x, layer.y ?? layer.high];
  let nearest = -1;
  let least = REACH ** 2;
  for (let place = 0; place < x.length; place++) {
    const across = space.x(x[place]) - px;
    if (!(across * across < least)) continue;
    const distance = across * across + (space.y(y[place]) - py) ** 2;
    if (distance < least) {
      nearest = place;
      least = distance;
    }
  }
  return nearest;
}

/** The cell between ascending edges in which a value lies; -1 beyond them. */
function cellOf(edges, value) {
  const after = firstFrom(edges, value);
  if (after < edges.length && edges[after] === value) return after < edges.length - 1 ? after : -1;
  return after > 0 && after < edges.length ? after - 1 : -1;
}

/** Where a datum is marked: its x and its y; its y is null where it has none of its own. */
function placeOf(layer, place) {
  switch (layer.mark) {
    case "line": case "step": case "points": return [layer.x[place], layer.y[place]];
    case "intervals": case "band": return [layer.x[place], null];
    case "bars": return [(layer.from[place] + layer.to[place]) / 2, layer.y[place]];
    case "spans": return [layer.from[place], layer.lane[place] + 0.5];
    case "heat": {
      const columns = layer.x_edges.length - 1;
      const [column, row] = [place % columns, Math.floor(place / columns)];
      return [
        (layer.x_edges[column] + layer.x_edges[column + 1]) / 2,
        (layer.y_edges[row] + layer.y_edges[row + 1]) / 2,
      ];
    }
    default: return [NaN, null];
  }
}

/** How a datum reads, its x apart. */
function wordsOf(layer, place, { x, y }, space) {
  const [atX, atY] = placeOf(layer, place);
  const up = (value) => valueOf(y, value, space.pixelY(value));
  const across = (value) => valueOf(x, value, space.pixelX(value));
  switch (layer.mark) {
    case "intervals": return `[${up(layer.low[place])}, ${up(layer.high[place])}]`;
    case "band": return `${up(layer.low[place])} to ${up(layer.high[place])}`;
    case "bars": return `${up(atY)} from ${across(layer.from[place])} to ${across(layer.to[place])}`;
    case "spans": {
      const length = layer.to[place] - layer.from[place];
      const row = y.names?.find(([at]) => at === layer.lane[place] + 0.5);
      return `${valueOf(x, length, length / 100)}, from ${across(layer.from[place])} on` + (row ? `, ${y.title} ${row[1]}` : "");
    }
    case "heat": {
      const columns = layer.x_edges.length - 1;
      const row = Math.floor(place / columns);
      const column = place % columns;
      return `${layer.counts[place]} between ${up(layer.y_edges[row])} and ${up(layer.y_edges[row + 1])}, ` +
        `${across(layer.x_edges[column])} to ${across(layer.x_edges[column + 1])}`;
    }
    default: return Number.isFinite(atX) ? up(atY) : NONE;
  }
}

/** Whether the words of a datum say where across it is. */
function saysWhere({ mark }) {
  return mark === "bars" || mark === "spans" || mark === "heat";
}

/**
 * What is said of a cursor: the x of the nearest datum, and for each label the words of its layers, nearest datum first in
 * `lead`. A datum elsewhere says where.
 */
function readingsAt(plot, px, py) {
  const { space, axes } = plot;
  const found = [];
  // Intervals come after the points that they belong to.
  const layers = plot.shown().sort((a, b) => (a.mark === "intervals") - (b.mark === "intervals"));
  const anchor = anchorOf(layers, px, space);
  for (const layer of layers) {
    const place = nearestOf(layer, anchor, py, space);
    if (place < 0) continue;
    const [x, y] = placeOf(layer, place);
    const words = wordsOf(layer, place, axes, space);
    if (words === NONE || saysNothing(layer, place)) continue;
    const at = [space.x(x), y === null ? null : space.y(y)];
    const up = py === null || at[1] === null ? 0 : at[1] - py;
    found.push({ layer, place, x, at, words, distance: Math.hypot(at[0] - anchor, up) });
  }
  const lead = found.reduce((best, one) => (best && best.distance <= one.distance ? best : one), null);
  const lines = new Map();
  for (const one of found) {
    const label = one.layer.label;
    const isElsewhere = !saysWhere(one.layer) && Math.abs(one.at[0] - lead.at[0]) > 1;
    const where = isElsewhere ? ` at ${valueOf(axes.x, one.x, space.pixelX(one.x))}` : "";
    const known = lines.get(label);
    if (known) known.words += ` ${one.words}`;
    else lines.set(label, { label, words: one.words, where, at: one.at, layer: one.layer });
  }
  return { lead, lines: [...lines.values()] };
}

/** The pixel across that a cursor means: that of the nearest of few marks, where one is near. */
function anchorOf(layers, px, space) {
  let anchor = px;
  let least = SNAP;
  for (const layer of layers) {
    if (layer.mark !== "points" || layer.x.length > FEW || !layer.isAscending) continue;
    const place = byX(layer, px, space);
    const at = place < 0 ? NaN : space.x(layer.x[place]);
    if (Math.abs(at - px) < least) {
      least = Math.abs(at - px);
      anchor = at;
    }
  }
  return anchor;
}

/** A datum of a line that is no number. */
function saysNothing(layer, place) {
  return layer.y !== undefined && Number.isNaN(layer.y[place]);
}
