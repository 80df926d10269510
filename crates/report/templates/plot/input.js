// What a reader can do to a plot: with a mouse, with fingers, with keys.

const KEYS = "Left and right go from datum to datum, up and down to the next series, plus and minus zoom, 0 shows all, " +
  "Escape leaves.";
const STEP = 1.25;

/** How uPlot's cursor behaves: dragging selects what to zoom to, with shift it pans, a double click shows all again. */
function cursorOf(plot) {
  return {
    points: { show: false },
    drag: { x: true, y: true, uni: 24, dist: 4, setScale: false },
    bind: {
      mousedown: (u, target, select) => (event) => (event.shiftKey ? drag(plot, event) : select(event)),
      dblclick: () => () => plot.reset(),
    },
  };
}

function listen(plot) {
  const { over, root } = plot;
  over.addEventListener("wheel", (event) => wheel(plot, event), { passive: false });
  listenToFingers(plot);
  const walk = { layer: 0, at: -1 };
  root.addEventListener("keydown", (event) => {
    if (!event.altKey && !event.ctrlKey && !event.metaKey && key(plot, event.key, walk)) event.preventDefault();
  });
  root.addEventListener("blur", () => plot.leave());
}

/** Pans while the button is down. */
function drag(plot, event) {
  if (event.button !== 0) return;
  const ended = new AbortController();
  let last = [event.clientX, event.clientY];
  const moved = ({ clientX, clientY }) => {
    plot.pan(clientX - last[0], clientY - last[1]);
    last = [clientX, clientY];
  };
  document.addEventListener("mousemove", moved, { signal: ended.signal });
  document.addEventListener("mouseup", () => ended.abort(), { signal: ended.signal });
}

/** The wheel alone scrolls the page; with control (or two fingers on a touchpad) it zooms, with shift it pans. */
function wheel(plot, event) {
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (event.ctrlKey || event.metaKey) {
    const { left, top } = plot.over.getBoundingClientRect();
    const turned = Math.min(Math.max((event.deltaY || event.deltaX) * lines, -200), 200);
    plot.zoom(Math.exp(turned / 300), [event.clientX - left, event.clientY - top]);
  } else if (event.shiftKey) {
    plot.pan(-(event.deltaX || event.deltaY) * lines, 0);
  } else {
    return;
  }
  event.preventDefault();
}

/** Two fingers zoom and pan; one finger pans across once the plot is zoomed, and scrolls the page up and down. */
function listenToFingers(plot) {
  const fingers = new Map();
  const middle = () => {
    const [a, b = a] = fingers.values();
    return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  };
  const apart = () => {
    const [a, b] = fingers.values();
    return Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 10);
  };
  const { over } = plot;
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && fingers.size < 2) fingers.set(event.pointerId, [event.clientX, event.clientY]);
  });
  over.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = middle();
    const width = fingers.size === 2 ? apart() : 0;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    const after = middle();
    if (fingers.size === 2) {
      const { left, top } = over.getBoundingClientRect();
      plot.zoom(width / apart(), [before[0] - left, before[1] - top], [after[0] - left, after[1] - top]);
    } else if (plot.isZoomed()) {
      plot.pan(after[0] - before[0], 0);
    }
  });
  for (const end of ["pointerup", "pointercancel"]) over.addEventListener(end, ({ pointerId }) => fingers.delete(pointerId));
}

/** Whether a key meant something. `walk` is where the keyboard's cursor is. */
function key(plot, name, walk) {
  const layers = walkable(plot);
  const { left, top } = plot.u.cursor;
  const cursor = left >= 0 ? [left, top] : undefined;
  const go = (step, toEnd = false) => {
    if (!layers.length) return;
    walk.layer = Math.min(walk.layer, layers.length - 1);
    const { layer, order } = layers[walk.layer];
    const first = walk.at < 0 ? 0 : walk.at + step;
    walk.at = Math.min(Math.max(toEnd ? step * order.length : first, 0), order.length - 1);
    plot.visit(layer, order[walk.at]);
  };
  const change = (step) => {
    if (!layers.length) return;
    const from = layers[Math.min(walk.layer, layers.length - 1)];
    const x = walk.at < 0 ? -Infinity : placeOf(from.layer, from.order[Math.min(walk.at, from.order.length - 1)])[0];
    walk.layer = (walk.layer + step + layers.length) % layers.length;
    const { layer, order } = layers[walk.layer];
    const after = order.findIndex((place) => placeOf(layer, place)[0] >= x);
    walk.at = after < 0 ? order.length - 1 : after;
    plot.visit(layer, order[walk.at]);
  };
  const rescale = (changeView) => {
    changeView();
    if (walk.at >= 0) go(0);
  };
  const does = {
    ArrowRight: () => go(1),
    ArrowLeft: () => go(-1),
    Home: () => go(0, true),
    End: () => go(1, true),
    ArrowUp: () => change(-1),
    ArrowDown: () => change(1),
    "+": () => rescale(() => plot.zoom(1 / STEP, cursor)),
    "=": () => does["+"](),
    "-": () => rescale(() => plot.zoom(STEP, cursor)),
    0: () => rescale(() => plot.reset()),
    Escape: () => plot.root.blur(),
  }[name];
  does?.();
  return does !== undefined;
}

/** The layers that can be walked along, each with its data from left to right; bars of intervals go with their points. */
function walkable(plot) {
  const layers = plot.shown().filter(({ mark }) => mark !== "rule" && mark !== "area");
  const hasPoints = (label) => layers.some((one) => one.label === label && one.mark !== "intervals");
  return layers
    .filter((layer) => layer.mark !== "intervals" || !layer.label || !hasPoints(layer.label))
    .map((layer) => ({ layer, order: orderOf(layer) }))
    .filter(({ order }) => order.length > 0);
}

function orderOf(layer) {
  if (layer.order) return layer.order;
  const count = (layer.x ?? layer.from ?? layer.counts).length;
  const places = Array.from({ length: count }, (_, place) => place).filter((place) => {
    const [x, y] = placeOf(layer, place);
    return Number.isFinite(x) && (y === null || Number.isFinite(y)) && (layer.mark !== "heat" || layer.counts[place] > 0);
  });
  if (!layer.isAscending) places.sort((a, b) => placeOf(layer, a)[0] - placeOf(layer, b)[0]);
  return layer.order = places;
}
