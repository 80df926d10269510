// Figures: panels that share a legend, whose entries show and hide, and a cursor, where they share an axis.

/** A panel, whose plot is built when it comes near the view. */
class Panel {
  plot = null;
  #isBroken = false;
  #twin = null;

  constructor(element, source, figure) {
    Object.assign(this, { element, source, figure });
  }

  /** Replaces the static drawing by a plot, once. Where the data does not decode the drawing stays. */
  build() {
    if (this.plot || this.#isBroken) return this.plot;
    try {
      this.plot = new Plot(this.element, this.source.textContent, this.figure.hidden);
    } catch (error) {
      this.#isBroken = true;
      console.error("kendall: a plot stays as it was drawn", error);
      return null;
    }
    this.element.append(toolsOf(this.plot));
    this.figure.join(this.plot);
    if (this.#twin) this.pair(this.#twin);
    return this.plot;
  }

  /** Lets two panels show the same ranges and share a cursor, as soon as both are built; null: no more. */
  pair(twin) {
    const before = this.#twin;
    this.#twin = twin;
    const { plot } = this;
    if (!twin) {
      if (!before || !plot) return;
      plot.peers.delete(before.plot);
      plot.twin = null;
      plot.startFrom(plot.own);
      return;
    }
    if (!plot || !twin.plot) return;
    const both = [plot, twin.plot];
    const [sharesAcross, sharesUp] = ["x", "y"].map((axis) => isOneAxis(both, axis));
    const homes = { x: commonRanges(both, "x"), y: commonRanges(both, "y") };
    both.forEach((one, at) => {
      const other = both[1 - at];
      if (sharesAcross) one.peers.add(other);
      one.twin = sharesAcross && sharesUp ? other : null;
      one.startFrom({ x: homes.x[at], y: homes.y[at] });
    });
  }
}

/** A figure with its panels and its legend. */
class Figure {
  /** Labels that are not shown. */
  hidden = new Set();
  #plots = [];

  constructor(element) {
    this.element = element;
    const panels = [...element.querySelectorAll(".panel > script.plot")];
    this.panels = panels.map((source) => new Panel(source.parentElement, source, this));
  }

  /** A plot is there: the legend can work, and plots along the same axis go together. */
  join(plot) {
    plot.own = plot.home;
    if (this.#plots.length === 0) this.#legend();
    for (const other of this.#plots.filter((one) => sharesX(one, plot))) {
      other.peers.add(plot);
      plot.peers.add(other);
    }
    this.#plots.push(plot);
  }

  /** Entries of the legend become buttons. */
  #legend() {
    for (const entry of this.element.querySelectorAll(".legend > li")) {
      const label = entry.lastChild.textContent.trim();
      const button = made("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "show or hide";
      button.append(...entry.childNodes);
      button.addEventListener("click", () => {
        const isShown = this.hidden.has(label);
        if (isShown) this.hidden.delete(label);
        else this.hidden.add(label);
        button.setAttribute("aria-pressed", String(isShown));
        for (const plot of this.#plots) plot.redraw();
      });
      entry.append(button);
    }
  }

  restyle() {
    for (const plot of this.#plots) plot.restyle();
  }
}

/** Whether two plots of a figure stand over the same axis across. */
function sharesX(one, other) {
  const [a, b] = [one.axes.x, other.axes.x];
  return a.title === b.title && a.law === b.law && one.home.x.every((end, at) => end === other.home.x[at]);
}

/** Whether both plots show the same quantity along an axis, by the same law. */
function isSame([one, other], axis) {
  const [a, b] = [one.axes[axis], other.axes[axis]];
  return a.title === b.title && a.law === b.law && !a.names?.length && !b.names?.length;
}

/** Whether one range suits both plots: they show the same, and what they show overlaps. */
function isOneAxis(both, axis) {
  const [[a0, a1], [b0, b1]] = both.map(({ own }) => own[axis]);
  return isSame(both, axis) && a0 < b1 && b0 < a1;
}

/** The ranges that two plots begin with: one for both; of one length where they lie apart; their own where they are different. */
function commonRanges(both, axis) {
  const ends = both.map(({ own }) => own[axis]);
  const [lows, highs] = [ends.map(([low]) => low), ends.map(([, high]) => high)];
  if (isOneAxis(both, axis)) return both.map(() => [Math.min(...lows), Math.max(...highs)]);
  if (!isSame(both, axis) || both[0].axes[axis].law !== "linear") return ends;
  const length = Math.max(...ends.map(([low, high]) => high - low));
  return lows.map((low) => [low, low + length]);
}
