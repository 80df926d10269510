// Saves a plot as a file: its drawing as SVG or PNG, its data as CSV.

/** What a drawing needs of the style sheet to look alone as it does in the page. */
const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap",
  "paint-order", "font-family", "font-size", "font-style", "font-weight",
];
const COLUMNS = ["x", "y", "low", "high", "from", "to", "lane"];

/** The static drawing with its styles written into it, on paper. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const known = new Map();
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, at) => {
    const original = originals[at];
    const key = `${original.tagName} ${original.getAttribute("class")}`;
    if (!known.has(key)) {
      const style = getComputedStyle(original);
      known.set(key, STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    }
    if (element.tagName !== "title" && element.tagName !== "style") element.setAttribute("style", known.get(key));
  });
  const paper = document.createElementNS(SVG, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.querySelector("title")?.after(paper);
  copy.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(copy);
}

/** The drawing in twice its size. */
async function picture(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await image.decode();
  const { width, height } = svg.viewBox.baseVal;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture")))));
}

/** All data of a plot, a row a datum; only the columns that some layer has. */
function csvOf({ layers, axes }) {
  const rows = layers.flatMap((layer) => [...rowsOf(layer)]);
  const used = [...COLUMNS, "count", "note"].filter((column) => rows.some((row) => row[column] !== undefined));
  const unit = (axis) => (axis.quantity === "time" ? " [s]" : "");
  const [across, up] = [axes.x.title + unit(axes.x), axes.y.title + unit(axes.y)];
  const titles = { x: across, from: across, to: across, y: up, low: up, high: up };
  const head = ["layer", "mark", ...used.map((column) => (titles[column] ? `${column}: ${titles[column]}` : column))];
  const lines = rows.map((row) => [row.layer, row.mark, ...used.map((column) => row[column] ?? "")]);
  return [head, ...lines].map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

function* rowsOf(layer) {
  const { label, mark } = layer;
  if (mark === "rule") yield { layer: label, mark, [layer.axis]: layer.at, note: layer.note };
  else if (mark === "area") yield { layer: label, mark, from: exact([layer.from], 0), to: exact([layer.to], 0), note: layer.note };
  else if (mark === "heat") yield* cellsOf(layer);
  else {
    const lists = COLUMNS.filter((column) => layer[column]?.length !== undefined);
    for (let place = 0; place < layer[lists[0]].length; place++) {
      const row = { layer: label, mark };
      for (const list of lists) row[list] = exact(layer[list], place);
      yield row;
    }
  }
}

/** The cells of a heat map that are not empty: from and to across, low and high upwards. */
function* cellsOf({ label, mark, x_edges, y_edges, counts }) {
  const columns = x_edges.length - 1;
  for (let place = 0; place < counts.length; place++) {
    if (!(counts[place] > 0)) continue;
    const [column, row] = [place % columns, Math.floor(place / columns)];
    yield {
      layer: label, mark, from: exact(x_edges, column), to: exact(x_edges, column + 1),
      low: exact(y_edges, row), high: exact(y_edges, row + 1), count: counts[place],
    };
  }
}

/** A number with as many digits as were kept of it; nothing for what is none. */
function exact(list, place) {
  const value = list[place];
  if (!Number.isFinite(value)) return "";
  return list instanceof Float32Array ? Number(value.toPrecision(8)) : value;
}

function quoted(cell) {
  const text = String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Hands a file to the reader. */
function handOut(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser needs the address until it has begun to save.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file name of a title. */
function fileName(title, ending) {
  const name = title.toLowerCase().replace(/[^a-z0-9.%=+]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 80);
  return `${name || "plot"}.${ending}`;
}

/** The buttons below a plot. */
function toolsOf(plot) {
  const save = {
    SVG: async () => new Blob([standalone(plot.svg)], { type: "image/svg+xml" }),
    PNG: () => picture(plot.svg),
    CSV: async () => new Blob([csvOf(plot)], { type: "text/csv" }),
  };
  const tools = made("div", "plot-tools");
  const all = made("button", "plot-reset", "show all");
  all.type = "button";
  all.addEventListener("click", () => plot.reset());
  tools.append(made("span", "plot-hint", "drag to zoom"), all, made("span", "", "save as"));
  for (const [kind, make] of Object.entries(save)) {
    const button = made("button", "", kind);
    button.type = "button";
    button.setAttribute("aria-label", `Save “${plot.title}” as ${kind}`);
    button.addEventListener("click", async () => {
      try {
        handOut(fileName(plot.title, kind.toLowerCase()), await make());
      } catch (error) {
        console.error(`kendall: cannot save "${plot.title}" as ${kind}`, error);
        plot.say(`This plot could not be saved as ${kind}.`);
      }
    });
    tools.append(button);
  }
  return tools;
}
