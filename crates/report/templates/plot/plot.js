// One interactive plot in place of a static drawing: uPlot keeps scales, axes, canvas and selection; layers are drawn here.

/** A plot is never narrower nor lower than this. */
const LEAST = [200, 230];
/** No view shows less than this share of what is there. */
const CLOSEST = 1e-7;

class Plot {
  /** Labels that the reader has put away. */
  #hidden;
  #title = made("div", "plot-title");
  #readout;
  #said = made("p", "plot-said");

  /** `panel` has the static drawing; `hidden` holds the labels that are not to be shown. */
  constructor(panel, text, hidden) {
    const { title, x, y, layers, size } = decodedPlot(text);
    Object.assign(this, { panel, title, layers, size, axes: { x, y } });
    y.isUpright = true;
    this.#hidden = hidden;
    this.svg = panel.querySelector(":scope > svg");
    this.looks = new Looks(this.svg);
    this.home = { x: soundRange(x), y: soundRange(y) };
    this.view = { x: [...this.home.x], y: [...this.home.y] };
    // Those that share the axis across, and the one that shows the same of another trial, which shares both.
    this.peers = new Set();
    this.twin = null;
    try {
      this.#build();
    } catch (error) {
      this.root.remove();
      panel.classList.remove("live");
      throw error;
    }
  }

  #build() {
    this.root = made("div", "plot-live");
    this.root.style.width = `${this.size[0]}px`;
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "application");
    this.root.setAttribute("aria-roledescription", "plot");
    this.root.setAttribute("aria-label", `${this.title}. ${KEYS}`);
    this.#said.setAttribute("aria-live", "polite");
    this.root.append(this.#title);
    this.svg.after(this.root);
    this.panel.classList.add("live");
    this.#read();
    new uPlot(this.#options(), [[...this.view.x], [null, null]], this.root);
    this.#readout = new Readout(this);
    this.root.append(this.#said);
    listen(this);
    // Not within the observer's own turn: a plot that grows would be observed again.
    new ResizeObserver(() => requestAnimationFrame(() => this.#resize())).observe(this.root);
  }

  #options() {
    const law = (axis) => LAWS[this.axes[axis].law];
    const scale = (axis) => ({
      time: false,
      auto: false,
      distr: this.axes[axis].law === "linear" ? 1 : 100,
      fwd: law(axis).to,
      bwd: law(axis).from,
      range: () => this.view[axis],
    });
    const look = (classes, tag) => this.looks.of(classes, tag);
    const axis = (name, others) => ({
      scale: name,
      font: "12px system-ui, sans-serif",
      stroke: () => look("tick", "text").fill,
      splits: () => (this.ticks[name] = this.#ticks(name)).map(({ value }) => value),
      filter: (u, splits) => splits,
      values: () => this.ticks[name].map(({ label }) => label),
      ticks: { size: 5, width: 1, stroke: () => look("axis").stroke, filter: (u, splits) => splits },
      ...others,
    });
    const grid = (u, splits) => splits.map((split, at) => (this.ticks.y[at].label ? split : null));
    this.ticks = { x: [], y: [] };
    return {
      ...this.#measure(),
      legend: { show: false },
      padding: [10, () => this.#overhang(), 0, 0],
      series: [{}, { paths: () => null, points: { show: false } }],
      scales: { x: scale("x"), y: scale("y") },
      axes: [
        axis("x", {
          size: 32, grid: { show: false }, border: { show: true, width: 1, stroke: () => look("axis").stroke },
          label: () => titleOf(this.axes.x, this.view.x), labelSize: 20, labelGap: 0, labelFont: "13px system-ui, sans-serif",
        }),
        axis("y", {
          size: (u, values) => (values ? this.#widest(values) : 30) + 16,
          grid: { width: 1, stroke: () => look("grid").stroke, filter: grid },
        }),
      ],
      cursor: cursorOf(this),
      hooks: {
        init: [(u) => Object.assign(this, { u, over: u.over })],
        drawClear: [() => this.#draw((layer) => layer.mark === "area")],
        draw: [() => this.#draw((layer) => layer.mark !== "area", true)],
        setCursor: [() => this.#moved()],
        setSelect: [() => this.#selected()],
      },
    };
  }

  #ticks(axis) {
    const length = axis === "x" ? this.u.bbox.width : this.u.bbox.height;
    return ticksOf(this.axes[axis], this.view[axis], Math.max(length / devicePixelRatio, 1));
  }

  #widest(values) {
    const context = this.u.ctx;
    context.save();
    context.font = "12px system-ui, sans-serif";
    const widths = values.map((label) => (label ? context.measureText(label).width : 0));
    context.restore();
    return Math.min(Math.max(30, ...widths), 0.45 * this.u.width);
  }

  /** What of the label at the right end stands beyond the plotting area. */
  #overhang() {
    const last = this.ticks.x.findLast(({ label }) => label);
    if (!last) return 16;
    const { to } = LAWS[this.axes.x.law];
    const [low, high] = this.view.x.map(to);
    const beyond = LETTER * last.label.length / 2 - (high - to(last.value)) / (high - low) * this.u.bbox.width / devicePixelRatio;
    return Math.min(Math.max(Math.ceil(beyond) + 2, 16), 60);
  }

  /** As wide as there is room; not as low as a shrunken drawing would be. */
  #measure() {
    const [full, tall] = this.size;
    const width = Math.max(Math.min(this.root.clientWidth || full, full), LEAST[0]);
    const least = Math.min(tall, LEAST[1] + 30);
    const height = Math.max(tall * width / full, least) - this.#title.offsetHeight;
    return { width, height: Math.max(height, LEAST[1] - 30) };
  }

  #resize() {
    const { width, height } = this.#measure();
    if (this.root.clientWidth > 0 && (width !== this.u.width || height !== this.u.height)) {
      this.u.setSize({ width, height });
    }
  }

  /** Looks up how everything looks. */
  #read() {
    this.looks.forget();
    this.#title.textContent = titleOf(this.axes.y, this.view.y);
    for (const layer of this.layers) layer.look = this.looks.of(layer.classes);
  }

  /** After a change of colours. */
  restyle() {
    this.#read();
    this.redraw();
  }

  redraw() {
    this.u.redraw(false, true);
    this.#forgetCursor();
  }

  /** The layers that the reader has not put away. */
  shown() {
    return this.layers.filter(({ label }) => !label || !this.#hidden.has(label));
  }

  /** From values to pixels of the plotting area and back, as it is shown now. */
  get space() {
    const { over, view, axes } = this;
    const [width, height] = [over.clientWidth, over.clientHeight];
    const along = (axis, length, isUpright) => {
      const { to, from } = LAWS[axes[axis].law];
      const [low, high] = view[axis].map(to);
      const turn = (place) => (isUpright ? length - place : place);
      return [
        (value) => turn((to(value) - low) / (high - low) * length),
        (place) => from(low + turn(place) / length * (high - low)),
      ];
    };
    const [x, valueX] = along("x", width, false);
    const [y, valueY] = along("y", height, true);
    return {
      width, height, view, x, y, valueX, valueY,
      pixelX: (value) => valueX(x(value) + 1) - value,
      pixelY: (value) => valueY(y(value) - 1) - value,
    };
  }

  #draw(isMeant, withNotes = false) {
    const { ctx, bbox } = this.u;
    const { space } = this;
    const layers = this.shown().filter(isMeant);
    ctx.save();
    ctx.translate(bbox.left, bbox.top);
    ctx.scale(devicePixelRatio, devicePixelRatio);
    ctx.beginPath();
    ctx.rect(0, 0, space.width, space.height);
    ctx.clip();
    for (const layer of layers) PAINT[layer.mark](ctx, layer, space, this);
    if (withNotes) drawNotes(ctx, this.shown(), space, this.looks);
    ctx.restore();
  }

  /** Shows these ranges, as far as they lie where something is; peers follow along x. */
  show({ x = this.view.x, y = this.view.y }, follow = true) {
    this.view = { x: this.#within("x", x), y: this.#within("y", y) };
    const [[x0, x1], [y0, y1]] = [this.view.x, this.view.y];
    this.u.batch(() => {
      this.u.setScale("x", { min: x0, max: x1 });
      this.u.setScale("y", { min: y0, max: y1 });
    });
    this.#title.textContent = titleOf(this.axes.y, this.view.y);
    this.#forgetCursor();
    this.panel.classList.toggle("zoomed", this.isZoomed());
    if (follow) for (const peer of this.peers) peer.show(peer === this.twin ? this.view : { x: this.view.x }, false);
  }

  reset() {
    this.show(this.home, false);
    for (const peer of this.peers) peer.show(peer === this.twin ? peer.home : { x: peer.home.x }, false);
  }

  isZoomed() {
    return ["x", "y"].some((axis) => this.view[axis].some((end, at) => end !== this.home[axis][at]));
  }

  /** A range within the one that is shown at first and all data, and not closer than numbers can be told apart. */
  #within(axis, [low, high]) {
    const { to, from } = LAWS[this.axes[axis].law];
    const [least, most] = this.#extent(axis).map(to);
    const width = Math.min(Math.max(to(high) - to(low), (most - least) * CLOSEST), most - least);
    const start = Math.min(Math.max(to(low), least), most - width);
    const ends = [start, start + width].map(from);
    // What comes back from logarithms is home again.
    return ends.map((end, at) => (Math.abs(end - this.home[axis][at]) <= 1e-9 * Math.abs(end) ? this.home[axis][at] : end));
  }

  #extent(axis) {
    if (this.#extents?.[axis]) return this.#extents[axis];
    const names = axis === "x" ? ["x", "from", "to", "x_edges"] : ["y", "low", "high", "y_edges"];
    const { to } = LAWS[this.axes[axis].law];
    let [low, high] = this.home[axis];
    for (const layer of this.layers) {
      if (layer.mark === "area" || layer.mark === "rule") continue;
      for (const list of names) {
        for (const value of layer[list] ?? []) {
          if (!Number.isFinite(to(value))) continue;
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
    }
    this.#extents = { ...this.#extents, [axis]: [low, high] };
    return this.#extents[axis];
  }
  #extents;

  /** Makes room for what another plot shows, too: both begin with the same ranges. */
  startFrom(home) {
    this.home = home;
    this.#extents = undefined;
    this.show(home, false);
  }

  /** Ranges `factor` times as large; what is at the pixels `from` comes to be at `to`. By default about the middle. */
  zoom(factor, from = [this.space.width / 2, this.space.height / 2], to = from) {
    const { space } = this;
    const range = (axis, value, share) => {
      const law = LAWS[this.axes[axis].law];
      const [low, high] = this.view[axis].map(law.to);
      const start = law.to(value) - share * (high - low) * factor;
      return [start, start + (high - low) * factor].map(law.from);
    };
    this.show({
      x: range("x", space.valueX(from[0]), to[0] / space.width),
      y: range("y", space.valueY(from[1]), 1 - to[1] / space.height),
    });
  }

  /** Moves what is seen by so many pixels. */
  pan(dx, dy) {
    const { space } = this;
    this.show({
      x: [space.valueX(-dx), space.valueX(space.width - dx)],
      y: [space.valueY(space.height - dy), space.valueY(-dy)],
    });
  }

  #selected() {
    const { left, top, width, height } = this.u.select;
    if (!(width > 0 || height > 0)) return;
    const { space } = this;
    this.u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.show({
      x: width > 0 ? [space.valueX(left), space.valueX(left + width)] : this.view.x,
      y: height > 0 ? [space.valueY(top + height), space.valueY(top)] : this.view.y,
    });
  }

  #moved() {
    const { left, top } = this.u.cursor;
    if (!(left >= 0 && top >= 0)) {
      this.#readout.clear();
      for (const peer of this.peers) peer.follow(null);
      return;
    }
    this.#readout.tell(readingsAt(this, left, top), left, top);
    const value = this.space.valueX(left);
    for (const peer of this.peers) peer.follow(value);
  }

  /** The cursor is at this x in another plot; null: nowhere. */
  follow(value) {
    const { space } = this;
    const px = value === null ? -10 : space.x(value);
    this.u.setCursor({ left: px >= 0 && px <= space.width ? px : -10, top: -10 }, false);
    if (px >= 0 && px <= space.width) this.#readout.tell(readingsAt(this, px, null), px, 0);
    else this.#readout.clear();
  }

  #forgetCursor() {
    this.u.setCursor({ left: -10, top: -10 }, false);
    this.#readout.clear();
  }

  /** The keyboard's cursor leaves. */
  leave() {
    this.#forgetCursor();
    for (const peer of this.peers) peer.follow(null);
    this.#said.textContent = "";
  }

  /** Goes to a datum, into view if need be, and says what it is. */
  visit(layer, place) {
    const [x, y] = placeOf(layer, place);
    const up = y ?? layer.high[place];
    this.#bring(x, up);
    const { space } = this;
    const [px, py] = [space.x(x), Math.min(Math.max(space.y(up), 0), space.height)];
    this.u.setCursor({ left: px, top: py }, false);
    const words = this.layers
      .filter((one) => one === layer || (layer.label && one.label === layer.label && one.mark === "intervals"))
      .map((one) => wordsOf(one, one === layer ? place : nearestOf(one, px, null, space), this.axes, space));
    const line = { label: layer.label, words: words.join(" "), where: "", at: [px, py], layer };
    this.#readout.tell({ lead: { layer, x }, lines: [line] }, px, py);
    for (const peer of this.peers) peer.follow(x);
    this.#said.textContent = [layer.label, this.#readout.head, line.words]
      .filter(Boolean).join(", ");
  }

  #bring(x, y) {
    const { space } = this;
    const beyond = (place, length) => (place < 0 || place > length ? length / 2 - place : 0);
    const [dx, dy] = [beyond(space.x(x), space.width), beyond(space.y(y), space.height)];
    if (Number.isFinite(dx) && Number.isFinite(dy) && (dx || dy)) this.pan(dx, dy);
  }

  /** Says something to those who listen. */
  say(words) {
    this.#said.textContent = words;
  }
}
