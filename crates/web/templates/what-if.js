"use strict";
// The what-if view: controls whose values are the query of the address, and answers of the server, drawn as SVG. While a control
// moves the script requests previews, one at a time; once the controls rest it requests the full answer.
(() => {
  const RESTS_MS = 400, AGAIN_MS = 1000, HEIGHT = 300, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 42;
  const byId = (id) => document.getElementById(id);
  const controls = byId("controls"), answer = byId("answer");
  const fields = [...controls.querySelectorAll("[name]")];
  const ranges = [...controls.querySelectorAll("[data-of]")];
  const field = (name) => fields.find((one) => one.name === name);
  const range = (name) => ranges.find((one) => one.dataset.of === name);
  const asked = new URLSearchParams(location.search);
  asked.delete("token");
  const values = new Map([...asked].filter(([, value]) => value !== ""));
  const run = values.get("run");
  if (!values.has("law")) values.set("law", run ? "measured" : "M");

  // ---- Controls

  const isBare = () => !run || (values.has("law") && values.get("law") !== "measured");
  const along = () => (values.has("users") ? "users" : "rate");
  const LAWS_WITH_SCV = ["LN", "H2", "Pa", "G"];
  const seconds = (text) => {
    const found = /^([0-9.eE+-]+)(ns|us|µs|ms|s|m|min|h)?$/.exec(text.trim());
    const units = { ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, m: 60, min: 60, h: 3600 };
    return found ? Number(found[1]) * units[found[2] || "s"] : NaN;
  };
  const short = (value, digits = 6) => String(Number(value.toPrecision(digits)));
  // The text of a field for the value of a parameter.
  const shownIn = (one, value) => {
    if (one.dataset.unit === "ms") return short(seconds(value) * 1000);
    if (one.name === "think" || one.name === "duration") return short(seconds(value));
    return one.type === "number" && /^[0-9.e+-]+$/i.test(value) ? short(Number(value)) : value;
  };
  const moveRange = (name) => {
    const slider = range(name), value = Number(field(name)?.value);
    if (!slider || document.activeElement === slider) return;
    if (value > Number(slider.max)) slider.max = name === "servers" || name === "users" ? 2 * value : value;
    slider.value = field(name).value || slider.min;
  };
  const showControls = () => {
    const hidden = { rate: along() !== "rate", users: along() !== "users", bare: !isBare(), measured: isBare() };
    for (const one of controls.querySelectorAll("[data-for]")) one.hidden = hidden[one.dataset.for];
    const scv = controls.querySelector("[data-scv]");
    scv.hidden ||= !LAWS_WITH_SCV.includes(values.get("law"));
    byId("load").value = along();
    for (const one of fields) {
      if (document.activeElement === one) continue;
      const value = values.get(one.name);
      one.value = value === undefined ? "" : shownIn(one, value);
    }
    for (const one of ranges) moveRange(one.dataset.of);
  };
  const set = (name, text) => {
    const unit = field(name)?.dataset.unit ?? "";
    if (text === "") values.delete(name);
    else values.set(name, text + unit);
  };
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", (event) => {
    const one = event.target;
    if (one.id === "load") {
      for (const name of ["rate", "users", "think"]) values.delete(name);
      if (one.value === "users") values.set("users", "10");
    } else if (one.dataset.of) {
      field(one.dataset.of).value = one.value;
      set(one.dataset.of, one.value);
    } else {
      if (one.type === "number" && !one.validity.valid) return;
      if (one.name === "law" && run) {
        // The measured station in place of what the other law's controls held, and the other way round.
        const bare = one.value !== "measured";
        if (bare !== isBare()) for (const name of ["service", "scv", "servers", "discipline", "delay", "more-delay"]) values.delete(name);
      }
      if (one.name === "law") values.delete("scv");
      set(one.name, one.value);
      moveRange(one.name);
    }
    changed();
  });

  // ---- Requests

  let isAsking = false, isStale = false, rests = 0, full = null, curve = null, curveOf = "", shown = null;
  const query = (more) => new URLSearchParams([...values, ...Object.entries(more)]).toString();
  // The curve does not depend on where the load is.
  const curveKey = () => [...values].filter(([name]) => name !== "rate" && name !== "users").map((pair) => pair.join("=")).sort().concat(along()).join("&");
  const fetched = async (more, signal) => {
    const reply = await fetch("/what-if/answer?" + query(more), { signal });
    const found = await reply.json();
    if (!reply.ok) throw Object.assign(new Error(found.error), { isSaid: true, isBusy: reply.status === 503 });
    return found;
  };
  const said = (error) => {
    if (error.name === "AbortError") return;
    const why = error.isSaid ? error.message : "The server does not answer; trying again …";
    byId("fault").textContent = why;
    byId("fault").hidden = false;
    answer.setAttribute("aria-busy", "false");
    if (!error.isSaid || error.isBusy) rests = setTimeout(changed, AGAIN_MS);
  };
  const take = (found, key) => {
    byId("fault").hidden = true;
    if (found.curve) [curve, curveOf] = [found.curve, key];
    shown = found;
    draw();
  };
  const preview = async () => {
    if (isAsking) return;
    isAsking = true;
    while (isStale) {
      isStale = false;
      const began = performance.now();
      let key = curveKey();
      try {
        const covers = along() === "rate" || curve?.some((point) => point.at >= Number(values.get("users")));
        const found = await fetched({ detail: "preview", curve: key === curveOf && covers ? "0" : "1" });
        if (!isStale) {
          const isKept = key === curveOf && !found.curve;
          adopt(found);
          key = curveKey();
          if (isKept) curveOf = key;
        }
        take(found, key);
        answer.dataset.detail = "preview";
        answer.dataset.previewMs = Math.round(performance.now() - began);
      } catch (error) {
        said(error);
      }
    }
    isAsking = false;
  };
  const settle = async () => {
    full = new AbortController();
    const { signal } = full;
    try {
      const key = curveKey(), found = await fetched({ detail: "full", curve: "1" }, signal);
      if (signal.aborted) return;
      adopt(found);
      take(found, curveKey());
      history.replaceState(null, "", found.address);
      byId("address").href = found.address;
      answer.dataset.detail = "full";
      answer.setAttribute("aria-busy", "false");
    } catch (error) {
      said(error);
    }
  };
  // The values of the full answer, defaults included.
  const adopt = (found) => {
    for (const [name, value] of Object.entries(found.answered)) {
      if (value === null || value === "") values.delete(name);
      else values.set(name, String(value));
    }
    const group = byId("group");
    if (group && group.options.length !== found.groups.length) {
      group.replaceChildren(...found.groups.map((name) => new Option(name, name)));
      group.parentElement.hidden = found.groups.length < 2;
    }
    const slider = range(found.axis?.along);
    if (slider && document.activeElement !== slider) setRange(slider, found.axis);
    showControls();
  };
  const setRange = (slider, { along, most }) => {
    const step = along === "users" ? 1 : 10 ** Math.floor(Math.log10(most / 200));
    slider.min = step;
    slider.step = step;
    slider.max = along === "users" ? Math.ceil(most) : Math.ceil(most / step) * step;
  };
  function changed() {
    full?.abort();
    clearTimeout(rests);
    showControls();
    history.replaceState(null, "", "/what-if?" + query({}));
    byId("address").href = location.href;
    isStale = true;
    answer.setAttribute("aria-busy", "true");
    preview();
    rests = setTimeout(settle, RESTS_MS);
  }

  // ---- Words

  const time = (s) => {
    if (!Number.isFinite(s)) return "–";
    const [scale, unit] = s >= 1 || s === 0 ? [1, "s"] : s >= 1e-3 ? [1e3, "ms"] : s >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
    const value = s * scale;
    return `${value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} ${unit}`;
  };
  const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const words = () => {
    const { rows, columns, notes, no_answer: missing, effort, command, unstable } = shown;
    byId("unstable").hidden = !unstable;
    byId("unstable").textContent = unstable ? `Unstable: there is no steady state. ${unstable}.` : "";
    const head = element("tr", "");
    head.append(...["", ...(rows.length ? columns : [])].map((name) => element("th", name)));
    byId("numbers").tHead.replaceChildren(head);
    byId("numbers").tBodies[0].replaceChildren(...rows.map(({ name, cells }) => {
      const row = element("tr", "");
      const first = element("th", name);
      first.scope = "row";
      first.className = "left";
      row.append(first, ...cells.map((cell) => element("td", cell)));
      return row;
    }));
    byId("notes").replaceChildren(...[...missing, ...notes].map((note) => element("li", note)));
    byId("effort").textContent = effort.join(" ");
    byId("command").textContent = command;
  };

  // ---- Drawing

  const SVG = "http://www.w3.org/2000/svg";
  const node = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const ticks = (most, count) => {
    const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
    return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
  };
  // A plot with its axes; returns the scales.
  const plot = (id, { most, top, xTitle, xText, yText, label }) => {
    const canvas = document.querySelector(`#${id} .canvas`);
    const width = Math.max(280, canvas.clientWidth);
    const svg = node("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": label });
    const x = (value) => LEFT + (value / most) * (width - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - (Math.min(value, 1.5 * top) / top) * (HEIGHT - TOP - BOTTOM);
    const clip = `${id}-clip`;
    const defined = node("clipPath", { id: clip });
    defined.append(node("rect", { x: LEFT, y: TOP, width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }));
    svg.append(defined);
    for (const tick of ticks(most, width < 420 ? 4 : 7)) {
      svg.append(node("text", { x: x(tick), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, xText(tick)));
    }
    for (const tick of ticks(top, 5)) {
      svg.append(node("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }));
      svg.append(node("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, yText(tick)));
    }
    svg.append(node("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(0), y2: y(0) }));
    svg.append(node("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle", class: "title" }, xTitle));
    const inside = node("g", { "clip-path": `url(#${clip})` });
    svg.append(inside);
    canvas.replaceChildren(svg);
    return { svg, inside, x, y, width };
  };
  const path = (points) => points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const band = (low, high) => path([...low, ...high.reverse()]) + "Z";
  // The end of the axis while the marker is dragged.
  let dragMost = null;
  const QUANTITIES = ["p99", "p50", "mean"];
  const measuredAt = (load, name) => (name === "mean" ? load.mean_s : load.quantiles.find(([p]) => p === Number(name.slice(1)) / 100)?.[1]);
  const here = () => {
    const of = (p) => shown.distribution.find(([share]) => share === p) ?? shown.simulated.find(([share]) => share === p);
    return { mean: shown.mean, p50: of(0.5)?.[1], p99: of(0.99)?.[1] };
  };

  const drawResponse = () => {
    const { axis } = shown, isUsers = axis.along === "users";
    const drawn = curve ?? [];
    const measured = shown.measured.filter((load) => (load.users !== null) === isUsers);
    const place = (load) => (isUsers ? load.users : load.rate_per_s);
    const most = dragMost ?? Math.max(axis.most, ...measured.map(place));
    const calm = drawn.filter((point) => !axis.capacity || point.at <= 0.92 * axis.capacity);
    const now = here();
    const heights = [
      ...calm.map((point) => point.p99?.value ?? point.mean.value),
      ...measured.map((load) => measuredAt(load, "p99") ?? load.mean_s),
      now.p99?.value ?? 0,
    ].filter(Number.isFinite);
    const top = 1.12 * Math.max(1e-9, ...heights);
    const title = isUsers ? "users" : "rate [1/s]";
    const label = `Response time against ${title}, at ${short(axis.here, 4)}: mean ${time(now.mean?.value)}, p50 ${time(now.p50?.value)}, p99 ${time(now.p99?.value)}`;
    const { svg, inside, x, y } = plot("response", { most, top, xTitle: title, xText: (value) => short(value, 3), yText: time, label });
    if (axis.capacity && axis.capacity < most) {
      inside.append(node("rect", { class: "overload", x: x(axis.capacity), y: TOP, width: x(most) - x(axis.capacity), height: HEIGHT - TOP - BOTTOM }));
      inside.append(node("line", { class: "capacity", x1: x(axis.capacity), x2: x(axis.capacity), y1: TOP, y2: y(0) }));
    }
    for (const name of QUANTITIES) {
      const known = drawn.filter((point) => Number.isFinite(point[name]?.value));
      const wide = known.filter((point) => point[name].interval);
      if (wide.length > 1) {
        const end = (at) => wide.map((point) => [x(point.at), y(point[name].interval[at] ?? 2 * top)]);
        inside.append(node("path", { class: `span ${name}`, d: band(end(0), end(1)) }));
      }
      inside.append(node("path", { class: `line ${name}`, d: path(known.map((point) => [x(point.at), y(point[name].value)])) }));
      for (const load of measured) {
        const value = measuredAt(load, name);
        if (value === undefined) continue;
        const dot = node("circle", { class: `seen ${name}`, cx: x(place(load)), cy: y(value), r: 4.5 });
        dot.append(node("title", {}, `${load.name}: ${name} ${time(value)}`));
        inside.append(dot);
      }
    }
    const marker = node("g", { class: "marker", id: "marker" });
    marker.append(node("line", { x1: x(axis.here), x2: x(axis.here), y1: TOP, y2: y(0) }));
    for (const name of QUANTITIES) {
      if (Number.isFinite(now[name]?.value)) marker.append(node("circle", { class: name, cx: x(axis.here), cy: y(now[name].value), r: 5.5 }));
    }
    inside.append(marker);
    svg.dataset.most = most;
    document.querySelector("#response .seen").hidden = measured.length === 0;
    byId("response-title").textContent = `Response time against ${isUsers ? "the number of users" : "the rate"}`;
  };

  const drawDistribution = () => {
    const { axis } = shown, isUsers = axis.along === "users";
    const main = shown.distribution.length ? shown.distribution : shown.simulated;
    const around = shown.simulated.length ? shown.simulated : shown.distribution;
    const same = shown.measured.filter((load) => (load.users !== null) === isUsers && load.quantiles.length > 0);
    const distance = (load) => Math.abs((isUsers ? load.users : load.rate_per_s) - axis.here);
    const nearest = same.sort((a, b) => distance(a) - distance(b))[0];
    const ends = [
      ...main.filter(([p]) => p <= 0.99).map(([, value]) => value.value),
      ...around.filter(([p]) => p <= 0.99).map(([, value]) => value.interval?.[1] ?? value.value),
      ...(nearest?.quantiles.filter(([p]) => p <= 0.99).map(([, value]) => value) ?? []),
    ].filter(Number.isFinite);
    const most = 1.05 * Math.max(1e-9, ...ends);
    const now = here();
    const label = main.length ? `Distribution of the response time: half of the requests take at most ${time(now.p50?.value)}, 99 % at most ${time(now.p99?.value)}` : "No distribution";
    const { inside, x, y } = plot("distribution", { most, top: 1, xTitle: "response time", xText: time, yText: (share) => `${Math.round(100 * share)} %`, label });
    const wide = around.filter(([, value]) => value.interval);
    if (wide.length > 1) {
      const end = (at) => wide.map(([p, value]) => [x(value.interval[at] ?? 2 * most), y(p)]);
      inside.append(node("path", { class: "span mean", d: band(end(0), end(1)) }));
    }
    const known = main.filter(([, value]) => Number.isFinite(value.value));
    inside.append(node("path", { class: "line mean", d: path(known.map(([p, value]) => [x(value.value), y(p)])) }));
    for (const [p, value] of nearest?.quantiles ?? []) inside.append(node("circle", { class: "seen mean", cx: x(value), cy: y(p), r: 4.5 }));
    byId("nearest").hidden = !nearest;
    byId("nearest").textContent = nearest ? `measured at ${isUsers ? `${nearest.users} users` : `${short(nearest.rate_per_s, 3)}/s`}` : "";
    byId("distribution-title").textContent = `Distribution at ${short(axis.here, 4)}${isUsers ? " users" : "/s"}`;
  };
  const draw = () => {
    if (!shown?.axis) return;
    drawResponse();
    drawDistribution();
    words();
    answer.dataset.drawn = Number(answer.dataset.drawn ?? 0) + 1;
  };
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) draw();
    width = innerWidth;
  });

  // ---- The marker follows the pointer

  const response = document.querySelector("#response .canvas");
  const moveTo = (event) => {
    const svg = response.firstElementChild;
    if (!svg || !shown) return;
    const box = svg.getBoundingClientRect(), scale = box.width / Number(svg.getAttribute("width"));
    const wide = Number(svg.getAttribute("width")) - LEFT - RIGHT;
    const share = ((event.clientX - box.left) / scale - LEFT) / wide;
    const name = shown.axis.along, slider = range(name), most = Number(svg.dataset.most);
    const step = Number(slider.step) || 1;
    const value = Math.max(step, Math.min(most, Math.round((share * most) / step) * step));
    set(name, short(value));
    changed();
  };
  response.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    response.setPointerCapture(event.pointerId);
    dragMost = Number(response.firstElementChild?.dataset.most) || null;
    moveTo(event);
  });
  response.addEventListener("lostpointercapture", () => (dragMost = null));
  response.addEventListener("pointermove", (event) => response.hasPointerCapture(event.pointerId) && moveTo(event));

  byId("copy").addEventListener("click", async () => {
    const button = byId("copy");
    try {
      await navigator.clipboard.writeText(byId("command").textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(byId("command"));
      button.textContent = "Selected: copy it with Ctrl-C";
    }
  });
  showControls();
  isStale = true;
  preview();
  settle();
})();
