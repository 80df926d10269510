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
      plot.peers.delete(plot.twin);
      plot.twin = null;
      plot.startFrom(plot.own);
      return;
    }
    if (!plot || !twin.plot || !showsTheSame(plot, twin.plot)) return;
    const both = [plot, twin.plot];
    const home = { x: union(both, "x"), y: union(both, "y") };
    both.forEach((one, at) => {
      one.twin = both[1 - at];
      one.peers.add(one.twin);
      one.startFrom(home);
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

/** Whether two plots show the same, so that one range suits both. */
function showsTheSame(one, other) {
  return ["x", "y"].every((axis) => ["law", "title"].every((what) => one.axes[axis][what] === other.axes[axis][what]));
}

/** Whether two plots of a figure stand over the same axis across. */
function sharesX(one, other) {
  const [a, b] = [one.axes.x, other.axes.x];
  return a.title === b.title && a.law === b.law && one.home.x.every((end, at) => end === other.home.x[at]);
}

/** From the least to the largest value that some of the plots show at first. */
function union(plots, axis) {
  const ends = plots.map(({ own }) => own[axis]);
  return [Math.min(...ends.map(([low]) => low)), Math.max(...ends.map(([, high]) => high))];
}
