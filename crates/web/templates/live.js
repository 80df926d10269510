"use strict";
// One run as it happens: its state, its numbers just now, and plots of its last minutes, from the events that the run's own
// account of itself is sent as. A connection that is lost is taken up again; a page that nobody sees holds none.
(() => {
  const at = (id) => document.getElementById(id);
  const live = at("live");
  const MOST = 600, GAP_S = 1.6, AGAIN_MS = 2000, KINDS = ["wrong", "refused", "timed out", "unanswered"];
  const address = new URL(location.href);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);

  // ---- numbers as people read them

  const NONE = "–";
  const digits = (value, count) => {
    if (value === 0) return "0";
    const shown = Number(value.toPrecision(count));
    return Math.abs(shown) >= 1e6 ? shown.toExponential(count - 1) : shown.toLocaleString("en", { maximumSignificantDigits: count });
  };
  const time = (seconds) => {
    if (seconds == null) return NONE;
    const [unit, scale] = seconds >= 1 ? ["s", 1] : seconds >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
    return `${digits(seconds * scale, 3)} ${unit}`;
  };
  const perSecond = (value) => (value == null ? NONE : `${digits(value, 3)}/s`);
  const cores = (value) => (value == null ? NONE : `${digits(Number(value.toFixed(2)), 3)} cores`);
  const count = (value) => (value == null ? NONE : value.toLocaleString("en"));
  const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

  // ---- what is known

  let lineage = "", end = 0, mark = "", columns = null, trials = [], trial = null;

  // Appends what is new; takes all anew where it is of another process, or does not go on where this ends.
  const take = (told) => {
    const fresh = told.samples, of = `${told.process.pid}-${told.process.started_ticks}`;
    const names = Object.keys(fresh).filter((name) => name !== "first");
    const length = fresh.at_s.length;
    if (columns && of === lineage && fresh.first === end) {
      for (const name of names) columns[name] = columns[name].concat(fresh[name]).slice(-MOST);
    } else {
      columns = Object.fromEntries(names.map((name) => [name, fresh[name].slice(-MOST)]));
    }
    const changed = of !== lineage || length > 0;
    lineage = of;
    end = fresh.first + length;
    trials = told.trials;
    trial = told.trial;
    return changed;
  };

  // Columns with a hole where for a while there was nothing to see, so that no line leads across.
  const holed = (picked) => {
    const out = picked.map(() => []);
    const x = picked[0];
    x.forEach((value, i) => {
      if (i > 0 && value - x[i - 1] > GAP_S) out.forEach((column, c) => column.push(c === 0 ? x[i - 1] + GAP_S / 2 : null));
      out.forEach((column, c) => column.push(picked[c][i]));
    });
    return out;
  };

  // ---- plots

  const errorsPerSecond = () => {
    const { at_s: x, failed } = columns;
    return KINDS.map((_, kind) => failed.map((counts, i) => counts[kind] / Math.max(i > 0 ? x[i] - x[i - 1] : 0.5, 0.25)));
  };
  const fromZero = (_, low, high) => [0, high > 0 ? high * 1.08 : 1];
  const decades = (_, low, high) => (low > 0 ? uPlot.rangeLog(low, high, 10, false) : [1e-3, 1]);
  const PLOTS = [
    { id: "rate", unit: perSecond, tick: (v) => digits(v, 3), range: fromZero, title: "per second",
      lines: [["answered", "--ink", []], ["sent", "--m1", [6, 4]]],
      data: () => [columns.answered_per_s, columns.sent_per_s] },
    { id: "response", unit: time, tick: (v) => time(v), range: decades, log: true, title: "",
      lines: [["p50", "--m0", []], ["p90", "--m2", [7, 4]], ["p99", "--m1", [2, 3]]],
      data: () => [columns.p50_s, columns.p90_s, columns.p99_s] },
    { id: "inflight", unit: count, tick: (v) => digits(v, 3), range: fromZero, title: "requests",
      lines: [["on a connection", "--ink", []], ["waiting for one", "--m1", [6, 4]]],
      data: () => [columns.in_flight, columns.waiting] },
    { id: "cpu", unit: cores, tick: (v) => digits(v, 3), range: fromZero, title: "cores",
      lines: [["server", "--m0", []], ["generator", "--m1", [6, 4]]],
      data: () => [columns.server_cores, columns.generator_cores] },
    { id: "errors", unit: perSecond, tick: (v) => digits(v, 3), range: fromZero, title: "per second",
      lines: [["wrong", "--m1", []], ["refused", "--m0", [6, 4]], ["timed out", "--m3", [2, 3]], ["unanswered", "--ink", [9, 3, 2, 3]]],
      data: errorsPerSecond, hidden: () => !columns.failed.some((counts) => counts.some((n) => n > 0)) },
  ];
  let zoomed = false;
  const together = typeof uPlot === "undefined" ? null : uPlot.sync("live");

  // An upright line where one trial ends and the next begins, with the number of the one that ends.
  const parts = (u) => {
    const { ctx, bbox } = u, style = getComputedStyle(u.root.closest(".chart"));
    ctx.save();
    ctx.strokeStyle = style.getPropertyValue("--soft");
    ctx.fillStyle = style.getPropertyValue("--soft");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.lineWidth = devicePixelRatio;
    ctx.globalAlpha = 0.75;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    let last = -Infinity;
    for (const { ended_s, number } of trials) {
      const x = u.valToPos(ended_s, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width || x - last < 26 * devicePixelRatio) continue;
      last = x;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillText(number, x - 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
    }
    ctx.restore();
  };

  // Of the many lines of a logarithmic scale those at 1, 2 and 5.
  const round = (u, splits) => splits.map((v) => {
    const lead = Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
    return [1, 2, 5].includes(lead) ? v : null;
  });

  // What has no neighbour is no line, and shown as a point.
  const alone = (u, series) => {
    const y = u.data[series], found = [];
    y.forEach((value, i) => { if (value != null && y[i - 1] == null && y[i + 1] == null) found.push(i); });
    return found;
  };

  const built = new Map();
  const height = () => (innerWidth < 560 ? 190 : 220);
  const build = (plot) => {
    const figure = at(`plot-${plot.id}`), canvas = figure.querySelector(".canvas");
    const style = getComputedStyle(figure), colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1 } };
    const values = (u, splits) => splits.map((v) => (v == null ? "" : plot.tick(v)));
    const line = ([label, name, dash]) => ({ label, stroke: colour(name), width: 1.8, dash,
      points: { show: false, size: 5, filter: alone, fill: colour(name), width: 0 },
      value: (u, v) => plot.unit(v) });
    const u = new uPlot({
      width: canvas.clientWidth, height: height(),
      cursor: { sync: { key: together.key }, drag: { x: true, y: false }, points: { size: 7 } },
      scales: { x: { time: false }, y: { range: plot.range, distr: plot.log ? 3 : 1 } },
      axes: [
        { ...axis, values: (u, splits) => splits.map(clock), space: 60 },
        { ...axis, values, size: 62, label: plot.title || undefined, labelSize: plot.title ? 20 : 0, space: 34,
          ...(plot.log ? { filter: round, grid: { ...axis.grid, filter: round } } : {}) },
      ],
      series: [{ label: "at", value: (u, v) => (v == null ? NONE : clock(v)) }, ...plot.lines.map(line)],
      hooks: { draw: [parts], setSelect: [(u) => { if (u.select.width > 0) zoomed = true; }] },
    }, [[], ...plot.lines.map(() => [])], canvas);
    u.over.addEventListener("dblclick", () => { zoomed = false; draw(); });
    // Entries of the legend are switches for the keyboard, too.
    u.root.querySelectorAll(".u-series").forEach((row, i) => {
      const label = row.querySelector("th");
      if (i === 0 || !label) return;
      label.tabIndex = 0;
      label.setAttribute("role", "button");
      label.setAttribute("aria-pressed", "true");
      const told = () => label.setAttribute("aria-pressed", String(u.series[i].show));
      label.addEventListener("click", () => setTimeout(told));
      label.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        label.click();
      });
    });
    built.set(plot.id, u);
    return u;
  };

  const draw = () => {
    if (!columns || !at("plots") || !together) return;
    for (const plot of PLOTS) {
      const figure = at(`plot-${plot.id}`);
      figure.hidden = plot.hidden?.() ?? false;
      if (figure.hidden) continue;
      const u = built.get(plot.id) ?? build(plot);
      u.setData(holed([columns.at_s, ...plot.data()]), !zoomed);
      if (zoomed) u.redraw();
      figure.dataset.points = columns.at_s.length;
    }
  };
  const rebuild = () => {
    built.forEach((u) => u.destroy());
    built.clear();
    draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
  if (at("plots")) {
    new ResizeObserver(() => built.forEach((u) => {
      const width = u.root.parentElement.clientWidth;
      if (width > 0 && width !== u.width) u.setSize({ width, height: height() });
    })).observe(at("plots"));
  }

  // ---- words and numbers

  const put = (id, text) => { const element = at(id); if (element && element.textContent !== text) element.textContent = text; };
  const numbers = (told, running) => {
    const last = (name) => (running && trial ? columns?.[name].at(-1) : null);
    const offered = running && trial?.offered_per_s;
    put("left", running && told.left_s != null ? clock(told.left_s) : NONE);
    put("rate", perSecond(last("answered_per_s")) + (offered ? ` of ${digits(offered, 3)}` : ""));
    put("inflight", count(last("in_flight")));
    for (const quantile of ["p50", "p90", "p99"]) put(quantile, time(last(`${quantile}_s`)));
    put("server", cores(last("server_cores")));
    put("generator", cores(last("generator_cores")));
    const failed = trial?.outcomes.slice(1) ?? [];
    const kinds = failed.map((n, i) => (n > 0 ? `${count(n)} ${KINDS[i]}` : "")).filter(Boolean);
    put("errors", running && trial ? kinds.join(", ") || "0" : NONE);
    at("errors")?.classList.toggle("bad", kinds.length > 0);
  };
  const cell = (row, text, left) => {
    const td = row.insertCell();
    td.textContent = text;
    if (left) td.className = "left";
  };
  let rowsOf = "";
  const table = () => {
    const body = at("trials"), of = `${lineage}.${trials.length}.${trials.at(-1)?.ended_s}`;
    if (!body || of === rowsOf) return;
    rowsOf = of;
    body.replaceChildren();
    for (const one of trials.toReversed()) {
      const row = body.insertRow();
      cell(row, one.number, true);
      cell(row, one.name, true);
      cell(row, count(one.sent));
      cell(row, count(one.failed));
      cell(row, perSecond(one.throughput_per_s));
      for (const name of ["mean_s", "p50_s", "p90_s", "p99_s"]) cell(row, time(one[name]));
      cell(row, one.doubts.join("; "), true);
    }
  };
  const words = (event) => {
    const { state, live: told } = event, running = state === "running";
    if (live.dataset.state !== state) {
      live.dataset.state = state;
      at("state").className = `badge ${state}`;
    }
    put("state", state);
    at("stop").hidden = !running;
    at("resume").hidden = state !== "interrupted" && state !== "failed";
    put("report", running ? "Report so far" : "Report");
    if (at("now")) at("now").hidden = !running;
    const note = event.why ?? event.note;
    put("note", note ?? "");
    at("note").hidden = !note;
    if (!told) return;
    const { trials_done: done, trials_planned: planned } = told;
    const all = done === planned ? `${done} trials` : `${done} of ${planned} trials`;
    const doing = trial ? `trial ${done + 1} of ${planned}${trial.name ? ` · ${trial.name}` : ""} · ${count(trial.sent)} sent` : told.doing || "getting ready …";
    const waits = state === "done" && !event.has_report ? `${all}; the report is being written …` : all;
    put("doing", running ? doing : waits);
    const part = trial && running ? Math.min((told.elapsed_s - trial.began_s) / Math.max(trial.expected_s, 0.001), 1) : 0;
    at("progress").value = planned > 0 ? (done + part) / planned : 0;
    numbers(told, running);
    table();
  };

  // ---- stop

  const complain = (text) => {
    put("note", text);
    at("note").hidden = false;
  };
  at("stop").addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.target.querySelector("button");
    button.disabled = true;
    try {
      const answer = await fetch(event.target.getAttribute("action"), { method: "POST", redirect: "manual" });
      if (answer.type !== "opaqueredirect" && !answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        complain((page.querySelector(".message") ?? page.body).textContent);
      }
    } catch {
      complain("The server cannot be reached.");
    }
    button.disabled = false;
  });

  // ---- events

  let source = null, again = 0;
  const receive = (message) => {
    const event = JSON.parse(message.data);
    mark = message.lastEventId;
    // The run has begun to speak of itself since this page was made; the page has no place for that.
    if (event.live && !at("plots")) return location.reload();
    const changed = event.live && take(event.live);
    words(event);
    if (changed) draw();
  };
  const close = () => {
    clearTimeout(again);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource(`${live.dataset.events}?since=${encodeURIComponent(mark)}`);
    source.onmessage = receive;
    source.onopen = () => { at("lost").hidden = true; };
    source.onerror = () => {
      at("lost").hidden = false;
      // By itself it comes again after a lost connection, but not after an answer that is no stream.
      if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS);
    };
  };
  // Browsers have few connections to one server: pages that nobody sees hold none.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted && !document.hidden) open(); });
  if (live.dataset.state !== "recorded" && !document.hidden) open();
})();
