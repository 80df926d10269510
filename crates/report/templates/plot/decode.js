// What a page holds of a plot: JSON whose lists of numbers are base64.

const LISTS = ["x", "y", "low", "high", "from", "to", "lane", "x_edges", "y_edges", "counts"];

/** What a page holds of a plot, decoded. Throws where it does not hold together. */
function decodedPlot(text) {
  const plot = JSON.parse(text);
  for (const axis of [plot.x, plot.y]) {
    if (!LAWS[axis.law]) throw new Error(`no law of an axis: ${axis.law}`);
  }
  for (const layer of plot.layers) {
    if (!PAINT[layer.mark]) throw new Error(`no mark: ${layer.mark}`);
    layer.classes = layer.class;
    for (const list of LISTS) if (typeof layer[list] === "string") layer[list] = decoded(layer[list]);
    // What has no end is written as null.
    if (layer.mark === "area") Object.assign(layer, { from: layer.from ?? -Infinity, to: layer.to ?? Infinity });
    if (layer.mark === "rule") layer.at ??= NaN;
    const lengths = LISTS.filter((list) => layer[list]?.length !== undefined).map((list) => layer[list].length);
    const isWhole = layer.mark === "heat"
      ? layer.counts.length === (layer.x_edges.length - 1) * (layer.y_edges.length - 1)
      : lengths.every((length) => length === lengths[0]);
    if (!isWhole) throw new Error(`lists of "${layer.label}" (${layer.mark}) differ in length`);
    layer.isAscending = layer.x?.length !== undefined && isAscending(layer.x);
    if (layer.mark === "heat") layer.most = layer.counts.reduce((most, count) => Math.max(most, count), 0);
  }
  return plot;
}
