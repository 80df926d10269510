// What is read out: a box beside the cursor, and rings about the data that it names.

/** Readings that fit beside a cursor. */
const MOST_LINES = 12;

class Readout {
  #plot;
  #box = made("div", "plot-readout");
  #rings = [];

  constructor(plot) {
    this.#plot = plot;
    this.#box.hidden = true;
    plot.root.append(this.#box);
  }

  /** Shows what is known of a place beside it. */
  tell({ lead, lines }, px, py) {
    if (!lead) {
      this.clear();
      return;
    }
    const { space, axes } = this.#plot;
    const head = made("b", "", valueOf(axes.x, lead.x, space.pixelX(lead.x)));
    const rows = lines.slice(0, MOST_LINES).map(({ label, words, where }) => {
      const row = made("span");
      if (label) row.append(made("i", "", label), " ");
      row.append(words, where);
      return row;
    });
    const more = lines.length > MOST_LINES ? [made("span", "", `and ${lines.length - MOST_LINES} more`)] : [];
    this.#box.replaceChildren(...(saysWhere(lead.layer) ? [] : [head]), ...rows, ...more);
    this.#box.hidden = false;
    this.#place(px, py);
    this.#ring(lines);
  }

  /** Puts the readout beside the cursor, on the side that has room. */
  #place(px, py) {
    const { over, u, root } = this.#plot;
    const [width, height] = [this.#box.offsetWidth, this.#box.offsetHeight];
    const [x, y] = [over.offsetLeft + px, u.root.offsetTop + over.offsetTop + py];
    const room = root.clientWidth;
    const left = x + 14 + width <= room ? x + 14 : x - 14 - width >= 0 ? x - 14 - width : Math.max(0, room - width);
    const top = Math.max(Math.min(y - height / 2, root.clientHeight - height), 0);
    this.#box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  /** Rings about what is read out. */
  #ring(lines) {
    const at = lines.map((line) => line.at).filter(([x, y]) => y !== null && this.#isInside(x, y)).slice(0, MOST_LINES);
    while (this.#rings.length < at.length) this.#rings.push(this.#plot.over.appendChild(made("div", "plot-ring")));
    this.#rings.forEach((ring, place) => {
      ring.hidden = place >= at.length;
      if (!ring.hidden) ring.style.transform = `translate(${at[place][0]}px, ${at[place][1]}px)`;
    });
  }

  #isInside(px, py) {
    return px >= 0 && px <= this.#plot.over.clientWidth && py >= 0 && py <= this.#plot.over.clientHeight;
  }

  clear() {
    this.#box.hidden = true;
    for (const ring of this.#rings) ring.hidden = true;
  }

  /** Where across it is, in words. */
  get head() {
    return this.#box.querySelector("b")?.textContent;
  }
}
