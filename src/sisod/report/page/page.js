"use strict";
const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 4", "8 3 2 3", "2 3", "10 3 2 3 2 3", "12 5"];
  const MARK_PATHS = [
    (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (r) => `M0 ${-1.2 * r}L${1.1 * r} ${r}H${-1.1 * r}z`,
    (r) => `M0 ${-1.35 * r}L${1.35 * r} 0L0 ${1.35 * r}L${-1.35 * r} 0z`,
    (r) => `M0 ${1.2 * r}L${1.1 * r} ${-r}H${-1.1 * r}z`,
    (r) => `M${-r / 2.5} ${-r}h${r / 1.25}v${r * 0.6}h${r * 0.6}v${r * 0.8}h${-r * 0.6}v${r * 0.6}h${-r / 1.25}v${-r * 0.6}h${-r * 0.6}v${-r * 0.8}h${r * 0.6}z`,
    (r) => `M${-r} ${-r}L${r} ${r}M${r} ${-r}L${-r} ${r}`,
  ];
  const shown = new Set(data.methods);
  const state = { dataset: data.datasets[0], curve: "pr", measure: "mae", groups: "log" };
  const allCurves = Object.values(data.charts).flatMap((methods) => Object.values(methods).map((all) => all.curves));
  if (!allCurves.some((curves) => curves.precision)) state.curve = "f"; // precision was not evaluated

  // texts are added as text nodes, so no name can become markup
  function element(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  }
  function svgElement(tag, attributes = {}, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  const methodIndex = (name) => data.methods.indexOf(data.runs[name] ?? name); // of a method, or of one of its seeds
  const colour = (method) => `var(--c${methodIndex(method) % 7})`;
  // the eighth method has the colour of the first, but the mark of the second
  const markIndex = (i) => (i + Math.floor(i / 7)) % MARK_PATHS.length;
  const markPath = (method, r = 4) => MARK_PATHS[markIndex(methodIndex(method))](r);
  // a curve may be missing, too short, or undefined at some points
  const isDefined = (series, i) => Number.isFinite(series.x[i]) && Number.isFinite(series.y[i]);
  const scoreText = (value) => (value === null || value === undefined ? "-" : value.toFixed(4));

  function swatch(method) {
    return svgElement("svg", { class: "swatch", viewBox: "0 0 30 12", "aria-hidden": "true" },
      svgElement("path", { d: "M0 6H30", stroke: colour(method), "stroke-width": 2, fill: "none", "stroke-dasharray": DASHES[methodIndex(method) % 6] }),
      svgElement("path", { d: markPath(method), transform: "translate(15 6)", fill: colour(method), stroke: colour(method) }));
  }

  /* ---- theme ---- */
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const labelThemeButton = () => { $("theme").textContent = isDark() ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; labelThemeButton(); });
  prefersDark.addEventListener("change", labelThemeButton);
  labelThemeButton();

  /* ---- tables ---- */
  $("intervals").addEventListener("click", (event) => {
    const on = document.body.classList.toggle("show-intervals");
    event.target.setAttribute("aria-pressed", on);
    event.target.textContent = on ? "Hide intervals" : "Show intervals";
  });
  function sortBy(table, button) {
    const head = button.closest("th");
    const buttons = [...table.querySelectorAll(".sort")];
    const column = buttons.indexOf(button);
    const before = head.getAttribute("aria-sort");
    const order = before === "none" ? button.dataset.first || "ascending"
      : before === "ascending" ? "descending" : "ascending";
    for (const other of buttons) other.closest("th").setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const value = (row) => {
      const cell = row.cells[column];
      return column === 0 ? cell.textContent : cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (typeof x === "string") return sign * x.localeCompare(y);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // undefined values last
      return sign * (x - y);
    });
    table.tBodies[0].append(...rows);
    resetTabStop(table);
  }
  // the whole table is one tab stop; the arrow keys move inside it
  function resetTabStop(table) {
    const cells = [...table.querySelectorAll("tbody td")];
    for (const cell of cells) cell.tabIndex = -1;
    if (cells.length) cells[0].tabIndex = 0;
  }
  function moveFocus(event) {
    const cell = event.target.closest("tbody td");
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!cell || !step) return;
    const rows = [...cell.closest("tbody").rows];
    const next = rows[rows.indexOf(cell.parentElement) + step[0]]?.cells[cell.cellIndex + step[1]];
    if (!next || next.tagName !== "TD") return;
    event.preventDefault();
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
  for (const table of document.querySelectorAll("table.scores")) {
    for (const button of table.querySelectorAll(".sort")) button.addEventListener("click", () => sortBy(table, button));
    table.addEventListener("keydown", moveFocus);
    resetTabStop(table);
    for (const head of table.querySelectorAll("tbody th")) head.firstElementChild.prepend(swatch(head.dataset.method));
  }
  const tip = $("tip");
  function showTip(target) {
    if (!target) { tip.hidden = true; return; }
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = target.getBoundingClientRect();
    const left = Math.min(Math.max(4, box.right - tip.offsetWidth), innerWidth - tip.offsetWidth - 4);
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 0 ? above : box.bottom + 6}px`;
  }
  document.addEventListener("pointerover", (event) => showTip(event.target.closest?.("[data-tip]")));
  document.addEventListener("focusin", (event) => showTip(event.target.closest("[data-tip]")));
  document.addEventListener("focusout", () => showTip(null));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") showTip(null); });
  document.addEventListener("scroll", () => showTip(null), { passive: true });

  /* ---- charts ---- */
  const HEIGHT = 290, LEFT = 54, RIGHT = 14, TOP = 22, BOTTOM = 44; // of a chart and its margins, in pixels
  // at most five steps of 1, 2 or 5 times a power of ten
  function tickStep(max) {
    if (!(max > 0)) return 0.25;
    const unit = 10 ** Math.floor(Math.log10(max / 5));
    return [1, 2, 5, 10].map((factor) => factor * unit).find((step) => max <= 5 * step);
  }
  // spec: width (pixels), title, xName, yName, xRange, xTicks [[x, label]], yMax (null: from the data),
  // series [{method, x, y, ends [[low, high]], few [the mark is hollow]}], counts [[x, label]] above the chart, pointName and pointLabel(index) of the points,
  // start (index read out at first), markEvery n-th point, or markAt one, readBoth (x and y of a point), barWidth (of bars instead of lines), empty (text of a chart without values)
  function chart(spec) {
    const visible = spec.series.filter((series) => shown.has(series.method));
    const [x0, x1] = spec.xRange;
    const width = spec.width;
    const max = Math.max(0, ...visible.flatMap((s) => [...s.y, ...(s.ends ?? []).flat()].filter(Number.isFinite)));
    const step = spec.yMax ? spec.yMax / 4 : tickStep(max);
    const steps = spec.yMax ? 4 : Math.max(1, Math.ceil(max / step));
    const top = step * steps;
    const toX = (x) => LEFT + ((x - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
    const toY = (y) => HEIGHT - BOTTOM - (y / top) * (HEIGHT - BOTTOM - TOP);
    const svg = svgElement("svg", { class: "plot", viewBox: `0 0 ${width} ${HEIGHT}`, tabindex: 0, role: "application",
      "aria-label": `${spec.title}: ${spec.yName} over ${spec.xName}. Use the left and right arrow keys to read values.` });
    for (let line = 0; line <= steps; line++) {
      const y = step * line;
      svg.append(svgElement("line", { class: line ? "gridline" : "axis-line", x1: LEFT, x2: width - RIGHT, y1: toY(y), y2: toY(y) }));
      const label = svgElement("text", { x: LEFT - 7, y: toY(y) + 4, "text-anchor": "end" });
      label.textContent = String(Number(y.toPrecision(3)));
      svg.append(label);
    }
    for (const [x, name] of spec.xTicks) {
      svg.append(svgElement("line", { class: "gridline", x1: toX(x), x2: toX(x), y1: TOP, y2: HEIGHT - BOTTOM }));
      const label = svgElement("text", { x: toX(x), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" });
      label.textContent = name;
      svg.append(label);
    }
    for (const [x, name] of spec.counts ?? []) {
      const label = svgElement("text", { class: "group-count", x: toX(x), y: TOP - 6, "text-anchor": "middle" });
      label.textContent = name;
      svg.append(label);
    }
    const xName = svgElement("text", { class: "axis-name", x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" });
    xName.textContent = spec.xName;
    const yName = svgElement("text", { class: "axis-name", x: -(TOP + HEIGHT - BOTTOM) / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle" });
    yName.textContent = spec.yName;
    svg.append(xName, yName);
    visible.forEach((series, order) => {
      let path = "", pen = "M";
      const marks = svgElement("g", { fill: colour(series.method), stroke: colour(series.method) });
      series.y.forEach((y, i) => {
        if (!isDefined(series, i)) { pen = "M"; return; }
        const [X, Y] = [toX(series.x[i]).toFixed(1), toY(y).toFixed(1)];
        if (spec.barWidth) {
          if (y === 0) return; // neither bar nor mark
          const [left, right] = [-0.5, 0.5].map((side) => toX(series.x[i] + side * spec.barWidth).toFixed(1));
          marks.append(svgElement("path", { class: "bar", d: `M${left} ${toY(0)}V${Y}H${right}V${toY(0)}z` }));
        } else path += `${pen}${X} ${Y}`;
        pen = "L";
        const [low, high] = series.ends?.[i] ?? [null, null];
        if (low !== null) marks.append(svgElement("path", { class: "interval-line", d: `M${X} ${toY(low).toFixed(1)}V${toY(high).toFixed(1)}` }));
        if (spec.markAt === undefined ? i % spec.markEvery === (spec.markEvery > 1 ? (order * 7) % spec.markEvery : 0) : i === spec.markAt) {
          marks.append(svgElement("path", { class: series.few?.[i] ? "few" : "mark-point", d: markPath(series.method), transform: `translate(${X} ${Y})` }));
        }
      });
      svg.append(svgElement("path", { class: "series", d: path, stroke: colour(series.method), "stroke-dasharray": DASHES[methodIndex(series.method) % 6] }), marks);
    });
    const figure = element("figure", { class: "chart" }, element("figcaption", {}, spec.title), svg);
    const defined = visible.some((s) => s.y.some((_, i) => isDefined(s, i)));
    if (!defined) {
      const reason = svgElement("text", { class: "axis-name", x: (LEFT + width - RIGHT) / 2, y: (TOP + HEIGHT - BOTTOM) / 2, "text-anchor": "middle" });
      reason.textContent = visible.length ? spec.empty : "no method is selected";
      svg.append(reason);
      return figure;
    }
    const readout = element("div", { class: "readout", role: "status" });
    figure.append(readout, valueTable(spec, visible));
    addCursor(svg, spec, visible, toX, toY, readout);
    return figure;
  }
  function addCursor(svg, spec, visible, toX, toY, readout) {
    const width = spec.width;
    const cursor = svgElement("g", { "aria-hidden": "true" });
    svg.append(cursor);
    let index = null;
    const count = Math.max(...visible.map((s) => s.y.length));
    const defined = (i) => visible.some((s) => isDefined(s, i));
    function moveTo(i) {
      index = i;
      cursor.replaceChildren();
      showValues(i);
      for (const series of visible) {
        const [x, y] = [series.x[i], series.y[i]];
        if (!isDefined(series, i)) continue;
        if (!spec.readBoth && !spec.barWidth && !cursor.firstChild) {
          cursor.append(svgElement("line", { class: "cursor", x1: toX(x), x2: toX(x), y1: TOP, y2: HEIGHT - BOTTOM }));
        }
        cursor.append(svgElement("path", { d: markPath(series.method, 6.5), transform: `translate(${toX(x)} ${toY(y)})`,
          fill: "var(--background)", stroke: colour(series.method), "stroke-width": 2.5 }));
      }
    }
    function showValues(i) {
      readout.replaceChildren(element("span", {}, element("b", {}, spec.pointLabel(i))));
      for (const series of visible) {
        const [x, y] = [series.x[i], series.y[i]];
        const [low, high] = series.ends?.[i] ?? [null, null];
        const values = spec.readBoth ? `${scoreText(x)}, ${scoreText(y)}` : scoreText(y) + (low === null ? "" : ` (${scoreText(low)} to ${scoreText(high)})`);
        readout.append(element("span", {}, swatch(series.method), `${series.method} `, element("b", {}, values)));
      }
    }
    // before the pointer moves, the values at the start are shown
    const first = Array.from({ length: count }, (_, i) => i).find(defined);
    showValues(spec.start !== undefined && defined(spec.start) ? spec.start : first);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const [X, Y] = [((event.clientX - box.left) * width) / box.width, ((event.clientY - box.top) * HEIGHT) / box.height];
      let [nearest, least] = [null, Infinity];
      for (const series of visible) {
        series.y.forEach((y, i) => {
          if (!isDefined(series, i)) return;
          const distance = (toX(series.x[i]) - X) ** 2 + (spec.readBoth ? (toY(y) - Y) ** 2 : 0);
          if (distance < least) [nearest, least] = [i, distance];
        });
      }
      if (nearest !== null) moveTo(nearest);
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageUp: 16, PageDown: -16 }[event.key];
      if (!step && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      let next = event.key === "Home" ? 0 : event.key === "End" ? count - 1
        : Math.min(count - 1, Math.max(0, (index ?? (step > 0 ? -1 : count)) + step));
      const direction = event.key === "End" ? -1 : event.key === "Home" ? 1 : Math.sign(step);
      while (next >= 0 && next < count && !defined(next)) next += direction;
      if (next >= 0 && next < count) moveTo(next);
    });
  }
  // the same values as a table, for screen readers; built when it is opened
  function valueTable(spec, visible) {
    const holder = element("div", { class: "scroll", tabindex: 0 });
    const details = element("details", {}, element("summary", {}, "Values as a table"), holder);
    details.addEventListener("toggle", () => {
      if (holder.firstChild) return;
      const names = visible.flatMap((s) => (spec.readBoth ? [`${s.method}: ${spec.xName}`, `${s.method}: ${spec.yName}`] : [s.method]));
      const head = element("tr", {}, ...[spec.pointName, ...names].map((name) => element("th", { scope: "col" }, name)));
      const body = element("tbody");
      for (let i = 0; i < visible[0].y.length; i++) {
        const values = visible.flatMap((s) => (spec.readBoth ? [s.x[i], s.y[i]] : [s.y[i]]));
        body.append(element("tr", {}, element("th", { scope: "row" }, spec.pointLabel(i)), ...values.map((v) => element("td", { class: "number" }, scoreText(v)))));
      }
      holder.append(element("table", { class: "plain" }, element("caption", { class: "hidden" }, spec.title), element("thead", {}, head), body));
    });
    return details;
  }
  const CURVES = {
    pr: ["PR", "recall", "precision", "recall", "precision"],
    roc: ["ROC", "fpr", "recall", "false positive rate", "true positive rate"],
    f: ["F", null, "f", "threshold", "F"],
    iou: ["IoU", null, "iou", "threshold", "IoU"],
  };
  const fifths = [0, 0.2, 0.4, 0.6, 0.8, 1].map((x) => [x, String(x)]);
  const thresholds = Array.from({ length: 256 }, (_, i) => i / 255);
  function curveChart(prefix) {
    const [name, xKey, yKey, xName, yName] = CURVES[state.curve];
    const charts = data.charts[state.dataset];
    return chart({
      title: prefix ? `${name}, size-invariant` : `${name}, plain`,
      xName, yName: prefix && !xKey ? `SI-${yName}` : yName,
      width: 580, start: 128, xRange: [0, 1], xTicks: fifths, yMax: 1, markEvery: 32, readBoth: Boolean(xKey),
      pointName: "threshold", pointLabel: (i) => `threshold ${i}`,
      empty: Object.values(charts).some(({ curves }) => curves[yKey] && (!xKey || curves[xKey]))
        ? "undefined on every image" : "not evaluated",
      series: Object.entries(charts).map(([method, { curves }]) => ({
        method,
        x: xKey ? curves[prefix + xKey] ?? [] : thresholds,
        y: curves[prefix + yKey] ?? [],
      })),
    });
  }
  const FEW = 20; // objects or images, as in the figures of `sisod plot`
  const sizeTicks = (groups) => [...groups.map((name, i) => [i, name.split("-")[0]]), [groups.length, groups.at(-1).split("-")[1].replace(" %", "")]];
  function groupChart(title, xName, bySize, tableOf, noun) {
    const charts = data.charts[state.dataset];
    const [, ofObjects, ofImages] = data.measures[state.measure];
    const yName = bySize ? ofObjects : ofImages;
    const yMax = state.measure === "mae" ? null : 1;
    const tables = Object.entries(charts).map(([method, all]) => [method, tableOf(all)]);
    const { groups, counts } = tables[0][1];
    const middles = groups.map((_, i) => i + 0.5);
    // the intervals of the methods are side by side
    const visible = tables.map(([method]) => method).filter((method) => shown.has(method));
    const aside = (method) => Math.min(0.1, 0.7 / visible.length) * (visible.indexOf(method) - (visible.length - 1) / 2);
    const xTicks = bySize ? sizeTicks(groups) : groups.map((name, i) => [i + 0.5, name]);
    return chart({
      title, xName, yName, yMax, width: 385, xRange: [0, groups.length], xTicks, markEvery: 1, readBoth: false,
      counts: counts.map((n, i) => [i + 0.5, n.toLocaleString("en")]),
      pointName: bySize ? "size" : "objects", empty: state.measure === "found" || bySize ? "no objects" : "not evaluated, or undefined",
      pointLabel: (i) => `${groups[i]}${bySize ? "" : groups[i] === "1" ? " object" : " objects"} (${counts[i].toLocaleString("en")} ${noun}${counts[i] === 1 ? "" : "s"})`,
      series: tables.map(([method, table]) => ({ method, x: middles.map((x) => x + aside(method)), y: table.values[state.measure] ?? groups.map(() => null),
        ends: table.intervals[state.measure], few: counts.map((n) => n < FEW) })),
    });
  }
  function coverageChart() {
    const steps = Array.from({ length: 101 }, (_, i) => i / 100);
    return chart({
      title: "Objects found, by required coverage", xName: "share of an object's pixels predicted", yName: "share of objects",
      width: 385, start: 50, xRange: [0, 1], xTicks: fifths, yMax: 1, markEvery: 20, readBoth: false, pointName: "coverage", empty: "no objects",
      pointLabel: (i) => `at least ${i} % of the pixels`,
      series: Object.entries(data.charts[state.dataset]).map(([method, { coverage }]) => ({ method, x: steps, y: coverage })),
    });
  }
  function objectChart(title, kind) {
    return chart({
      title, xName: "object recall", yName: "object precision", width: 385, start: 24, xRange: [0, 1], xTicks: fifths, yMax: 1, markAt: 24,
      readBoth: true, pointName: "threshold", pointLabel: (i) => `threshold ${Number((1 / (1 + Math.exp(12 - i / 2))).toFixed(6))} (logit ${i / 2 - 12})`, empty: emptyObjects("no such objects, or none predicted"),
      series: Object.entries(data.charts[state.dataset]).map(([method, { objects }]) => ({ method, x: objects?.[kind]?.[0] ?? [], y: objects?.[kind]?.[1] ?? [] })),
    });
  }
  function falseChart() {
    const charts = Object.entries(data.charts[state.dataset]);
    const { groups } = charts[0][1].sizes.log;
    const visible = charts.filter(([method, { objects }]) => objects && shown.has(method)).map(([method]) => method);
    const width = 0.8 / Math.max(1, visible.length);
    return chart({
      title: "False objects, by their size", xName: "share of the image (%)", yName: "false objects per image", yMax: null, width: 385,
      xRange: [0, groups.length], xTicks: sizeTicks(groups), markEvery: 1, barWidth: width, readBoth: false, pointName: "size",
      pointLabel: (i) => groups[i], empty: emptyObjects("undefined"),
      series: charts.map(([method, { objects }]) => ({
        method,
        x: groups.map((_, i) => i + 0.1 + width * (visible.indexOf(method) + 0.5)), // side by side
        y: objects?.false ?? groups.map(() => null),
      })),
    });
  }
  // why a chart of objects is empty: predicted objects were not saved, or another reason
  function emptyObjects(reason) {
    return Object.values(data.charts[state.dataset]).some(({ objects }) => objects) ? reason : "no predicted objects were saved";
  }
  function drawObjects() {
    const curves = Object.values(data.charts[state.dataset]).some(({ objects }) => objects?.all)
      ? [objectChart("All objects", "all"), objectChart("Objects under 1 % of the image", "small")] : [];
    $("object-charts")?.replaceChildren(...curves, falseChart());
  }
  function drawCurves() { $("curve-charts").replaceChildren(curveChart(""), curveChart("si_")); }
  function drawSizes() {
    $("size-charts").replaceChildren(
      groupChart("By size of the object", "share of the image (%)", true, (all) => all.sizes[state.groups], "object"),
      groupChart("By number of objects", "objects in an image", false, (all) => all.numbers, "image"),
      coverageChart());
  }
  function drawAll() {
    for (const node of document.querySelectorAll(".dataset-name")) node.textContent = `on ${state.dataset}`;
    drawCurves();
    drawSizes();
    drawObjects();
  }
  function buttonGroup(id, options, key, redraw) {
    const buttons = Object.entries(options).map(([value, name]) => element("button", {
      type: "button", "aria-pressed": String(state[key] === value), "data-value": value,
      onclick: (event) => {
        state[key] = value;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        redraw();
      },
    }, name));
    $(id).append(...buttons);
  }
  const options = (names) => names.map((name, i) => element("option", { value: i }, name));
  $("dataset").append(...options(data.datasets));
  $("dataset").addEventListener("change", (event) => { state.dataset = data.datasets[event.target.value]; drawAll(); });
  for (const method of data.methods) {
    $("legend").append(element("button", { type: "button", "aria-pressed": "true", onclick: (event) => {
      const on = !shown.delete(method);
      if (on) shown.add(method);
      event.currentTarget.setAttribute("aria-pressed", String(on));
      drawAll();
    } }, swatch(method), method));
  }
  for (const id of ["curve-charts", "size-charts", "object-charts"]) {
    $(id)?.before(element("p", { class: "print-legend", "aria-hidden": "true" },
      ...data.methods.map((method) => element("span", {}, swatch(method), method))));
  }
  buttonGroup("curve-kind", Object.fromEntries(Object.entries(CURVES).map(([key, [name]]) => [key, name])), "curve", drawCurves);
  buttonGroup("measure", Object.fromEntries(Object.entries(data.measures).map(([key, [name]]) => [key, name])), "measure", drawSizes);
  buttonGroup("group-kind", { paper: "tenths", log: "log", quantile: "quantiles" }, "groups", drawSizes);
  drawAll();
  return { data, $, element, svgElement, swatch, scoreText, options };
})();
