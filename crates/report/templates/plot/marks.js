// Draws the marks of a layer on a canvas. Places are pixels from the upper left corner of the plotting area, `space.x` and
// `space.y` turn values into them, and the canvas is cut to the area. What an eye cannot tell apart is drawn once.

/** Dots nearer to each other than so many pixels are one to the eye. */
const APART = 1.5;
/** Above so many, markers that fall together are drawn once, too. */
const MANY = 2000;
const SHADES = 6;

/** Of an ascending list, the places that a line needs to cover the view: those within, and one to each side. */
function covering(x, [low, high]) {
  return [Math.max(firstFrom(x, low) - 1, 0), Math.min(firstFrom(x, high) + 1, x.length)];
}

/**
 * A line through the points `from` to `to`, interrupted by what is no number. Of each column of pixels it keeps the first point,
 * the lowest, the highest and the last, which draws the same pixels as all of them (Jugel and others, "M4", 2014).
 */
function trace(path, from, to, point) {
  const at = [0, 0];
  let column = NaN;
  let first, lowest, highest, last; // of this column, each [place, x, y]
  let run = 0;
  let alone = null;
  const put = ([, x, y]) => {
    if (run++ === 0) path.moveTo(x, y);
    else path.lineTo(x, y);
    alone = run === 1 ? [x, y] : null;
  };
  const flush = () => {
    if (Number.isNaN(column)) return;
    const kept = [first, lowest, highest, last].sort((a, b) => a[0] - b[0]);
    kept.forEach((one, place) => (place > 0 && one[0] === kept[place - 1][0]) || put(one));
    column = NaN;
  };
  const interrupt = () => {
    flush();
    if (alone) {
      // A point alone has no line to show it.
      path.moveTo(alone[0] - 12, alone[1]);
      path.lineTo(alone[0] + 12, alone[1]);
    }
    run = 0;
    alone = null;
  };
  for (let place = from; place < to; place++) {
    point(place, at);
    const [x, y] = at;
    if (Number.isNaN(x) || Number.isNaN(y)) {
      interrupt();
    } else if (Math.floor(x) !== column) {
      flush();
      column = Math.floor(x);
      [first, lowest, highest, last] = [[place, x, y], [place, x, y], [place, x, y], [place, x, y]];
    } else {
      if (y > lowest[2]) set(lowest, place, x, y);
      if (y < highest[2]) set(highest, place, x, y);
      set(last, place, x, y);
    }
  }
  interrupt();
}

function set(one, place, x, y) {
  one[0] = place;
  one[1] = x;
  one[2] = y;
}

/** Tells whether a place was already taken by a mark that looks the same. */
function takenPlaces({ width, height }) {
  const across = Math.ceil(width / APART) + 1;
  const taken = new Uint8Array(across * (Math.ceil(height / APART) + 1));
  return (x, y) => {
    const at = Math.floor(y / APART) * across + Math.floor(x / APART);
    const was = taken[at];
    taken[at] = 1;
    return was === 1;
  };
}

/** Very many dots: pixel by pixel, since a path of so many would keep the reader waiting. */
class Dots {
  #image;
  #pixels;
  #stamp = [];
  #ink;

  constructor({ width, height }, look) {
    const [across, down] = [width, height].map((length) => Math.max(Math.ceil(length * devicePixelRatio), 1));
    this.#image = new ImageData(across, down);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    const radius = look.width / 2 * devicePixelRatio;
    for (let dy = -Math.floor(radius); dy <= radius; dy++) {
      for (let dx = -Math.floor(radius); dx <= radius; dx++) {
        if (dx * dx + dy * dy <= radius * radius) this.#stamp.push([dx, dy]);
      }
    }
    const [red, green, blue, opacity = 1] = look.stroke.match(/[\d.]+/g).map(Number);
    this.#ink = new Uint32Array(Uint8Array.of(red, green, blue, Math.round(255 * opacity)).buffer)[0];
  }

  add(px, py) {
    const { width, height } = this.#image;
    const [x, y] = [Math.floor(px * devicePixelRatio), Math.floor(py * devicePixelRatio)];
    for (const [dx, dy] of this.#stamp) {
      if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height) this.#pixels[(y + dy) * width + x + dx] = this.#ink;
    }
  }

  draw(ctx) {
    const { width, height } = this.#image;
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext("2d").putImageData(this.#image, 0, 0);
    ctx.drawImage(canvas, 0, 0, width / devicePixelRatio, height / devicePixelRatio);
  }
}

/** Adds a marker, with the paths of SVG. */
function addMarker(path, shape, x, y) {
  const polygon = (...corners) => {
    corners.forEach(([dx, dy], at) => (at ? path.lineTo(x + dx, y + dy) : path.moveTo(x + dx, y + dy)));
    path.closePath();
  };
  switch (shape) {
    case "dot":
      path.moveTo(x, y);
      path.lineTo(x + 0.01, y);
      break;
    case "square": polygon([-5.2, -5.2], [5.2, -5.2], [5.2, 5.2], [-5.2, 5.2]); break;
    case "triangle": polygon([0, -7], [6.4, 4], [-6.4, 4]); break;
    case "diamond": polygon([0, -7], [6, 0], [0, 7], [-6, 0]); break;
    case "cross":
      path.moveTo(x - 5.5, y - 5.5);
      path.lineTo(x + 5.5, y + 5.5);
      path.moveTo(x + 5.5, y - 5.5);
      path.lineTo(x - 5.5, y + 5.5);
      break;
    default: // disc, ring, rising
      path.moveTo(x + 3.6, y);
      path.arc(x, y, 3.6, 0, 2 * Math.PI);
  }
}

/** The arrow over what was measured and would have been more in a longer run. */
function drawArrow(ctx, looks, x, y) {
  const arrow = new Path2D();
  arrow.moveTo(x, y - 4);
  arrow.lineTo(x, y - 18);
  arrow.moveTo(x - 3.5, y - 13);
  arrow.lineTo(x, y - 18);
  arrow.lineTo(x + 3.5, y - 13);
  drawPath(ctx, arrow, looks.of("rising-arrow"));
}

/**
 * A measurement beyond the range that was meant to be seen: at its edge, with its value. `before` are the pixels at which
 * such values end; one that has no room beside them stands a line further in.
 */
function drawBeyond(ctx, looks, space, x, y, text, before) {
  const isAbove = y < 0;
  const [at, edge] = isAbove ? [22, 40] : [space.height - 5, space.height - 14];
  const ring = new Path2D();
  addMarker(ring, "ring", x, at);
  if (isAbove) drawArrow(ctx, looks, x, at);
  drawPath(ctx, ring, looks.of("measured rising"));
  const look = looks.of("value", "text");
  ctx.font = look.font;
  ctx.textAlign = x > space.width - 54 ? "right" : x < 54 ? "left" : "center";
  const width = ctx.measureText(text).width + 6;
  const left = x - { right: width, center: width / 2, left: 0 }[ctx.textAlign];
  const free = before.findIndex((end) => end <= left);
  const line = free < 0 ? before.length : free;
  before[line] = left + width;
  const under = edge + (isAbove ? 15 : -15) * line;
  if (takeStroke(ctx, look)) ctx.strokeText(text, x, under);
  ctx.fillStyle = look.fill;
  ctx.fillText(text, x, under);
}

/** The shade of a cell, by equal ratios; -1 for an empty one. */
function shadeOf(count, most) {
  if (!(count > 0)) return -1;
  const along = most > 1 ? Math.log(Math.max(count, 1)) / Math.log(most) : 1;
  return Math.min(Math.floor(along * SHADES), SHADES - 1);
}

const PAINT = {
  line(ctx, { x, y, look }, space) {
    const path = new Path2D();
    trace(path, ...covering(x, space.view.x), (place, at) => {
      at[0] = space.x(x[place]);
      at[1] = space.y(y[place]);
    });
    if (takeStroke(ctx, look)) ctx.stroke(path);
  },

  step(ctx, { x, y, look }, space) {
    const path = new Path2D();
    const [from, to] = covering(x, space.view.x);
    // Two corners a datum: at its x, from the height of the one before it to its own.
    trace(path, 2 * from, 2 * to, (corner, at) => {
      const place = corner >> 1;
      at[0] = space.x(x[place]);
      at[1] = space.y(y[corner % 2 || place === from ? place : place - 1]);
    });
    if (takeStroke(ctx, look)) ctx.stroke(path);
  },

  points(ctx, { x, y, shape, look, classes }, space, { looks, home, axes }) {
    const path = new Path2D();
    const isTaken = shape === "dot" || x.length > MANY ? takenPlaces(space) : () => false;
    const isMeasured = MEASURED.test(classes) && shape !== "dot";
    const dots = shape === "dot" && x.length > MANY ? new Dots(space, look) : null;
    const beyond = [];
    for (let place = 0; place < x.length; place++) {
      const px = space.x(x[place]);
      const py = space.y(y[place]);
      if (!(px >= 0 && px <= space.width)) continue;
      if (py >= 0 && py <= space.height) {
        if (dots) {
          dots.add(px, py);
          continue;
        }
        if (isTaken(px, py)) continue;
        addMarker(path, shape, px, py);
        if (shape === "rising") drawArrow(ctx, looks, px, py);
      } else if (isMeasured && (y[place] > home.y[1] || y[place] < home.y[0]) && Number.isFinite(py)) {
        drawBeyond(ctx, looks, space, px, py, valueOf(axes.y, y[place], Infinity), beyond);
      }
    }
    if (dots) dots.draw(ctx);
    else drawPath(ctx, path, look);
  },

  intervals(ctx, { x, low, high, look }, space) {
    const path = new Path2D();
    for (let place = 0; place < x.length; place++) {
      const px = space.x(x[place]);
      const top = space.y(high[place]);
      const foot = space.y(low[place]);
      const bottom = Number.isNaN(foot) ? 1e6 : foot; // what a log axis cannot show is beyond its lower end
      if (!(px >= 0 && px <= space.width) || Number.isNaN(top) || bottom < 0 || top > space.height) continue;
      path.moveTo(px, Math.max(top, -10));
      path.lineTo(px, Math.min(bottom, space.height + 10));
      for (const end of [top, bottom]) {
        path.moveTo(px - 4, end);
        path.lineTo(px + 4, end);
      }
    }
    if (takeStroke(ctx, look)) ctx.stroke(path);
  },

  band(ctx, { x, low, high, look }, space) {
    const path = new Path2D();
    const [from, to] = covering(x, space.view.x);
    const floor = (py) => (Number.isNaN(py) ? space.height : py);
    let upper = [];
    let lower = [];
    const close = () => {
      upper.concat(lower.reverse()).forEach(([px, py], at) => (at ? path.lineTo(px, py) : path.moveTo(px, py)));
      path.closePath();
      [upper, lower] = [[], []];
    };
    for (let place = from; place < to; place++) {
      const px = space.x(x[place]);
      if (Number.isNaN(px) || Number.isNaN(low[place]) || Number.isNaN(high[place])) {
        close();
        continue;
      }
      upper.push([px, floor(space.y(high[place]))]);
      lower.push([px, floor(space.y(low[place]))]);
    }
    close();
    drawPath(ctx, path, look);
  },

  bars(ctx, { from, to, y, look }, space) {
    const path = new Path2D();
    const zero = space.y(0);
    const foot = Number.isFinite(zero) ? zero : space.height;
    for (let place = 0; place < from.length; place++) {
      const left = Math.max(space.x(from[place]), -10);
      const right = Math.min(space.x(to[place]), space.width + 10);
      const top = space.y(y[place]);
      if (left < right && Number.isFinite(top)) path.rect(left, Math.min(top, foot), right - left, Math.abs(foot - top));
    }
    drawPath(ctx, path, look);
  },

  heat(ctx, { x_edges, y_edges, counts, most, classes }, space, { looks }) {
    const paths = Array.from({ length: SHADES }, () => new Path2D());
    const columns = x_edges.length - 1;
    for (let row = 0; row + 1 < y_edges.length; row++) {
      const [bottom, top] = [space.y(y_edges[row]), space.y(y_edges[row + 1])];
      if (!(top <= space.height && bottom >= 0)) continue;
      for (let column = 0; column < columns;) {
        const start = column;
        const shade = shadeOf(counts[row * columns + column], most);
        while (column < columns && shadeOf(counts[row * columns + column], most) === shade) column++;
        if (shade < 0) continue;
        const left = Math.max(space.x(x_edges[start]), -10);
        const right = Math.min(space.x(x_edges[column]), space.width + 10);
        if (left < right) paths[shade].rect(left, top, right - left, bottom - top);
      }
    }
    paths.forEach((path, shade) => drawPath(ctx, path, looks.of(`${classes} shade${shade}`)));
  },

  spans(ctx, { lane, from, to, look }, space) {
    const path = new Path2D();
    const isTaken = takenPlaces(space);
    for (let place = 0; place < lane.length; place++) {
      const bottom = space.y(lane[place] + 0.1);
      const top = Math.min(space.y(lane[place] + 0.9), bottom - 0.5);
      if (top > space.height || bottom < 0) continue;
      const left = Math.max(space.x(from[place]), 0);
      const right = Math.min(Math.max(space.x(to[place]), left + 0.5), space.width);
      if (!(left < right)) continue;
      const isSpeck = right - left < 1 && bottom - top < 1;
      if (isSpeck && isTaken(left, Math.min(Math.max(top, 0), space.height))) continue;
      path.rect(left, top, right - left, bottom - top);
    }
    drawPath(ctx, path, look);
  },

  rule(ctx, { axis, at, look }, space) {
    // In the middle of a pixel, or the line would be two pale ones.
    const place = Math.floor(space[axis](at)) + 0.5;
    if (!(place >= 0 && place <= (axis === "x" ? space.width : space.height)) || !takeStroke(ctx, look)) return;
    ctx.beginPath();
    if (axis === "x") {
      ctx.moveTo(place, 0);
      ctx.lineTo(place, space.height);
    } else {
      ctx.moveTo(0, place);
      ctx.lineTo(space.width, place);
    }
    ctx.stroke();
  },

  area(ctx, { from, to, look }, space) {
    const left = Math.max(space.x(from) || 0, 0);
    const right = Math.min(space.x(to), space.width);
    if (!(left < right) || !look.fill) return;
    ctx.fillStyle = look.fill;
    ctx.fillRect(left, 0, right - left, space.height);
  },
};

/** The notes of rules and areas; those at the foot one above the other, since most lines rise. */
function drawNotes(ctx, layers, space, looks) {
  const look = looks.of("label", "text");
  ctx.font = look.font;
  ctx.fillStyle = look.fill;
  let line = 0;
  for (const layer of layers) {
    if (!layer.note) continue;
    if (layer.mark === "rule" && layer.axis === "y") {
      const y = space.y(layer.at);
      if (!(y >= 0 && y <= space.height)) continue;
      ctx.textAlign = "right";
      ctx.fillText(layer.note, space.width - 4, y > 18 ? y - 6 : y + 14);
      continue;
    }
    const isArea = layer.mark === "area";
    const x = isArea ? Math.max(space.x(layer.from) || 0, 0) : space.x(layer.at);
    if (!(x >= 0 && x <= space.width) || (isArea && !(space.x(layer.to) > 0))) continue;
    const hasRoom = space.width - x > ctx.measureText(layer.note).width + 8;
    ctx.textAlign = hasRoom ? "left" : "right";
    ctx.fillText(layer.note, x + (hasRoom ? 6 : -6), space.height - 8 - 16 * line++);
  }
}
