"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 4", "8 3 2 3", "2 3", "10 3 2 3 2 3", "12 5"];
  const MARKS = [
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
  const everyCurve = Object.values(data.charts).flatMap((methods) => Object.values(methods).map((all) => all.curves));
  if (!everyCurve.some((curves) => curves.precision)) state.curve = "f"; // precision was not evaluated

  // every text goes in as a text node, so no name can become markup
  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  }
  function draw(tag, attributes = {}, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  const place = (method) => data.methods.indexOf(method);
  const colour = (method) => `var(--c${place(method) % 7})`;
  const mark = (method, r = 4) => MARKS[place(method) % MARKS.length](r);
  // a curve may be missing, shorter, or undefined in places
  const has = (series, i) => Number.isFinite(series.x[i]) && Number.isFinite(series.y[i]);
  const text = (value) => (value === null || value === undefined ? "-" : value.toFixed(4));

  function swatch(method) {
    return draw("svg", { class: "swatch", viewBox: "0 0 30 12", "aria-hidden": "true" },
      draw("path", { d: "M0 6H30", stroke: colour(method), "stroke-width": 2, fill: "none", "stroke-dasharray": DASHES[place(method) % 6] }),
      draw("path", { d: mark(method), transform: "translate(15 6)", fill: colour(method), stroke: colour(method) }));
  }

  /* ---- theme ---- */
  const root = document.documentElement;
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches);
  const nameTheme = () => { $("theme").textContent = isDark() ? "Light" : "Dark"; };
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  wantsDark.addEventListener("change", nameTheme);
  nameTheme();

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
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // undefined last
      return sign * (x - y);
    });
    table.tBodies[0].append(...rows);
    roam(table);
  }
  // one stop of the tab key for the whole table; arrows move inside it
  function roam(table) {
    const cells = [...table.querySelectorAll("tbody td")];
    for (const cell of cells) cell.tabIndex = -1;
    if (cells.length) cells[0].tabIndex = 0;
  }
  function moveInside(event) {
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
    table.addEventListener("keydown", moveInside);
    roam(table);
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
  const H = 290, L = 50, R = 14, T = 22, B = 44;
  // at most five steps of 1, 2 or 5 times a power of ten
  function niceStep(most) {
    if (!(most > 0)) return 0.25;
    const unit = 10 ** Math.floor(Math.log10(most / 5));
    return [1, 2, 5, 10].map((times) => times * unit).find((step) => most <= 5 * step);
  }
  // spec: wide (pixels), title, xName, yName, span (of x), ticks [[x, text]], top (of y), series [{method, x, y}],
  // behind [[x, text]], at(index) -> what the cursor stands on, every: markers at every n-th point
  function chart(spec) {
    const visible = spec.series.filter((series) => shown.has(series.method));
    const [x0, x1] = spec.span;
    const W = spec.wide;
    const most = Math.max(0, ...visible.flatMap((s) => s.y.filter(Number.isFinite)));
    const step = spec.top ? spec.top / 4 : niceStep(most);
    const steps = spec.top ? 4 : Math.max(1, Math.ceil(most / step));
    const top = step * steps;
    const px = (x) => L + ((x - x0) / (x1 - x0)) * (W - L - R);
    const py = (y) => H - B - (y / top) * (H - B - T);
    const svg = draw("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "application",
      "aria-label": `${spec.title}: ${spec.yName} over ${spec.xName}. Use the left and right arrow keys to read values.` });
    for (let line = 0; line <= steps; line++) {
      const y = step * line;
      svg.append(draw("line", { class: line ? "gridline" : "base", x1: L, x2: W - R, y1: py(y), y2: py(y) }));
      const label = draw("text", { x: L - 7, y: py(y) + 4, "text-anchor": "end" });
      label.textContent = String(Number(y.toPrecision(3)));
      svg.append(label);
    }
    for (const [x, name] of spec.ticks) {
      svg.append(draw("line", { class: "gridline", x1: px(x), x2: px(x), y1: T, y2: H - B }));
      const label = draw("text", { x: px(x), y: H - B + 15, "text-anchor": "middle" });
      label.textContent = name;
      svg.append(label);
    }
    for (const [x, name] of spec.behind ?? []) {
      const label = draw("text", { class: "behind", x: px(x), y: T - 6, "text-anchor": "middle" });
      label.textContent = name;
      svg.append(label);
    }
    const xName = draw("text", { class: "axis-name", x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle" });
    xName.textContent = spec.xName;
    const yName = draw("text", { class: "axis-name", x: -(T + H - B) / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle" });
    yName.textContent = spec.yName;
    svg.append(xName, yName);
    visible.forEach((series, order) => {
      let path = "", pen = "M";
      const marks = draw("g", { fill: colour(series.method), stroke: colour(series.method) });
      series.y.forEach((y, i) => {
        if (!has(series, i)) { pen = "M"; return; }
        const [X, Y] = [px(series.x[i]).toFixed(1), py(y).toFixed(1)];
        path += `${pen}${X} ${Y}`;
        pen = "L";
        if (i % spec.every === (spec.every > 1 ? (order * 7) % spec.every : 0)) {
          marks.append(draw("path", { d: mark(series.method), transform: `translate(${X} ${Y})` }));
        }
      });
      svg.append(draw("path", { class: "series", d: path, stroke: colour(series.method), "stroke-dasharray": DASHES[place(series.method) % 6] }), marks);
    });
    const figure = make("figure", { class: "chart" }, make("figcaption", {}, spec.title), svg);
    const drawn = visible.some((s) => s.y.some((_, i) => has(s, i)));
    if (!drawn) {
      const why = draw("text", { class: "axis-name", x: (L + W - R) / 2, y: (T + H - B) / 2, "text-anchor": "middle" });
      why.textContent = visible.length ? spec.empty : "no method is shown";
      svg.append(why);
      return figure;
    }
    const readout = make("div", { class: "readout", role: "status" });
    figure.append(readout, tableOf(spec, visible));
    follow(svg, spec, visible, px, py, readout);
    return figure;
  }
  function follow(svg, spec, visible, px, py, readout) {
    const W = spec.wide;
    const cursor = draw("g", { "aria-hidden": "true" });
    svg.append(cursor);
    let index = null;
    const count = Math.max(...visible.map((s) => s.y.length));
    const defined = (i) => visible.some((s) => has(s, i));
    function moveTo(i) {
      index = i;
      cursor.replaceChildren();
      tell(i);
      for (const series of visible) {
        const [x, y] = [series.x[i], series.y[i]];
        if (!has(series, i)) continue;
        if (!spec.both && !cursor.firstChild) {
          cursor.append(draw("line", { class: "cursor", x1: px(x), x2: px(x), y1: T, y2: H - B }));
        }
        cursor.append(draw("path", { d: mark(series.method, 6.5), transform: `translate(${px(x)} ${py(y)})`,
          fill: "var(--paper)", stroke: colour(series.method), "stroke-width": 2.5 }));
      }
    }
    function tell(i) {
      readout.replaceChildren(make("span", {}, make("b", {}, spec.at(i))));
      for (const series of visible) {
        const [x, y] = [series.x[i], series.y[i]];
        const values = spec.both ? `${text(x)}, ${text(y)}` : text(y);
        readout.append(make("span", {}, swatch(series.method), `${series.method} `, make("b", {}, values)));
      }
    }
    // the values at one place are there before anything is pointed at
    const first = Array.from({ length: count }, (_, i) => i).find(defined);
    tell(spec.start !== undefined && defined(spec.start) ? spec.start : first);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const [X, Y] = [((event.clientX - box.left) * W) / box.width, ((event.clientY - box.top) * H) / box.height];
      let [best, nearest] = [null, Infinity];
      for (const series of visible) {
        series.y.forEach((y, i) => {
          if (!has(series, i)) return;
          const far = (px(series.x[i]) - X) ** 2 + (spec.both ? (py(y) - Y) ** 2 : 0);
          if (far < nearest) [best, nearest] = [i, far];
        });
      }
      if (best !== null) moveTo(best);
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
  // the same values for those who do not see the chart; made when it is opened
  function tableOf(spec, visible) {
    const holder = make("div", { class: "scroll", tabindex: 0 });
    const details = make("details", {}, make("summary", {}, "Values as a table"), holder);
    details.addEventListener("toggle", () => {
      if (holder.firstChild) return;
      const names = visible.flatMap((s) => (spec.both ? [`${s.method}: ${spec.xName}`, `${s.method}: ${spec.yName}`] : [s.method]));
      const head = make("tr", {}, ...[spec.atName, ...names].map((name) => make("th", { scope: "col" }, name)));
      const body = make("tbody");
      for (let i = 0; i < visible[0].y.length; i++) {
        const values = visible.flatMap((s) => (spec.both ? [s.x[i], s.y[i]] : [s.y[i]]));
        body.append(make("tr", {}, make("th", { scope: "row" }, spec.at(i)), ...values.map((v) => make("td", { class: "number" }, text(v)))));
      }
      holder.append(make("table", { class: "plain" }, make("caption", { class: "hidden" }, spec.title), make("thead", {}, head), body));
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
      title: prefix ? `${name}, size-invariant` : `${name}, ordinary`,
      xName, yName: prefix && !xKey ? `SI-${yName}` : yName,
      wide: 580, start: 128, span: [0, 1], ticks: fifths, top: 1, every: 32, both: Boolean(xKey),
      atName: "threshold", at: (i) => `threshold ${i}`,
      empty: Object.values(charts).some(({ curves }) => curves[yKey] && (!xKey || curves[xKey]))
        ? "undefined on every image" : "not evaluated",
      series: Object.entries(charts).map(([method, { curves }]) => ({
        method,
        x: xKey ? curves[prefix + xKey] ?? [] : thresholds,
        y: curves[prefix + yKey] ?? [],
      })),
    });
  }
  const MEASURES = { mae: ["SI-MAE", "SI-MAE", null], f_mean: ["SI-F", "SI-F mean", 1], found: ["Found", "share of objects found", 1] };
  function groupChart(title, xName, what, pick, noun) {
    const charts = data.charts[state.dataset];
    const [, yName, top] = MEASURES[state.measure];
    const tables = Object.entries(charts).map(([method, all]) => [method, pick(all)]);
    const { groups, counts } = tables[0][1];
    const middle = groups.map((_, i) => i + 0.5);
    const edges = what === "size";
    const ticks = edges
      ? [...groups.map((name, i) => [i, name.split("-")[0]]), [groups.length, groups.at(-1).split("-")[1].replace(" %", "")]]
      : groups.map((name, i) => [i + 0.5, name]);
    return chart({
      title, xName, yName, top, wide: 385, span: [0, groups.length], ticks, every: 1, both: false,
      behind: counts.map((n, i) => [i + 0.5, n.toLocaleString("en")]),
      atName: edges ? "size" : "objects", empty: state.measure === "found" || edges ? "no objects" : "not evaluated, or undefined",
      at: (i) => `${groups[i]}${edges ? "" : groups[i] === "1" ? " object" : " objects"} (${counts[i].toLocaleString("en")} ${noun}${counts[i] === 1 ? "" : "s"})`,
      series: tables.map(([method, table]) => ({ method, x: middle, y: table.values[state.measure] ?? groups.map(() => null) })),
    });
  }
  function coverageChart() {
    const steps = Array.from({ length: 101 }, (_, i) => i / 100);
    return chart({
      title: "Objects found, by the coverage asked for", xName: "share of an object's pixels predicted", yName: "share of objects",
      wide: 385, start: 50, span: [0, 1], ticks: fifths, top: 1, every: 20, both: false, atName: "coverage", empty: "no objects",
      at: (i) => `at least ${i} % of the pixels`,
      series: Object.entries(data.charts[state.dataset]).map(([method, { coverage }]) => ({ method, x: steps, y: coverage })),
    });
  }
  function drawCurves() { $("curve-charts").replaceChildren(curveChart(""), curveChart("si_")); }
  function drawSizes() {
    $("size-charts").replaceChildren(
      groupChart("By size of the object", "share of the image (%)", "size", (all) => all.sizes[state.groups], "object"),
      groupChart("By number of objects", "objects in an image", "number", (all) => all.numbers, "image"),
      coverageChart());
  }
  function drawAll() {
    for (const node of document.querySelectorAll(".of-dataset")) node.textContent = `on ${state.dataset}`;
    drawCurves();
    drawSizes();
  }
  function choice(id, options, key, redraw) {
    const buttons = Object.entries(options).map(([value, name]) => make("button", {
      type: "button", "aria-pressed": String(state[key] === value), "data-value": value,
      onclick: (event) => {
        state[key] = value;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
        redraw();
      },
    }, name));
    $(id).append(...buttons);
  }
  const options = (names) => names.map((name, i) => make("option", { value: i }, name));
  $("dataset").append(...options(data.datasets));
  $("dataset").addEventListener("change", (event) => { state.dataset = data.datasets[event.target.value]; drawAll(); });
  for (const method of data.methods) {
    $("legend").append(make("button", { type: "button", "aria-pressed": "true", onclick: (event) => {
      const on = !shown.delete(method);
      if (on) shown.add(method);
      event.currentTarget.setAttribute("aria-pressed", String(on));
      drawAll();
    } }, swatch(method), method));
  }
  for (const id of ["curve-charts", "size-charts"]) {
    $(id).before(make("p", { class: "print-legend", "aria-hidden": "true" },
      ...data.methods.map((method) => make("span", {}, swatch(method), method))));
  }
  choice("curve-kind", Object.fromEntries(Object.entries(CURVES).map(([key, [name]]) => [key, name])), "curve", drawCurves);
  choice("measure", Object.fromEntries(Object.entries(MEASURES).map(([key, [name]]) => [key, name])), "measure", drawSizes);
  choice("group-kind", { paper: "tenths", log: "log", quantile: "quantiles" }, "groups", drawSizes);
  drawAll();

  /* ---- failures ---- */
  const failures = data.failures;
  if (!failures.items.length) return;
  const PAGE = 18;
  let most = PAGE;
  $("f-dataset").append(make("option", { value: "" }, "all"), ...options(data.datasets));
  $("f-a").append(...options(data.methods));
  $("f-b").append(make("option", { value: "" }, "nothing"), ...options(data.methods));
  $("f-b").value = data.methods.length > 1 ? "1" : "";
  $("f-size").append(make("option", { value: "" }, "all"),
    ...failures.groups.map((name, i) => make("option", { value: i }, name))
      .filter((option) => failures.items.some((item) => item.group === Number(option.value))));

  function picture(item, source, alt) {
    const code = item.pictures[source];
    if (!code) return make("div", { class: "picture none" }, "no picture");
    const [x, y, w, h] = item.box.map((share) => `${(100 * share).toFixed(2)}%`);
    return make("div", { class: "picture" },
      make("img", { src: `data:image/webp;base64,${code}`, alt }),
      make("span", { class: "frame", style: `left:${x};top:${y};width:${w};height:${h}` }));
  }
  function prediction(item, method) {
    const scores = item.scores[method];
    const missed = item.missed.includes(method);
    const name = data.methods[method];
    const caption = scores
      ? [`F ${text(scores[0])}`, make("br"), missed ? make("span", { class: "missed" }, "missed") : "found", ` (${Math.round(100 * scores[1])} %)`]
      : ["not scored"];
    return make("figure", {}, picture(item, String(method), `map of ${name} around the object`),
      make("figcaption", {}, make("strong", {}, name), make("br"), ...caption));
  }
  function card(item, a, b) {
    const size = (100 * item.share).toPrecision(2);
    return make("li", { class: "item", "data-dataset": item.dataset, "data-group": item.group },
      make("h4", {}, `${item.image}, object ${item.index + 1}`),
      make("p", {}, `${item.dataset} · ${Number(size)} % of the image`),
      make("div", { class: "trio" },
        make("figure", {}, picture(item, "photo", `object ${item.index + 1} of ${item.image} in its frame`), make("figcaption", {}, "object in its frame")),
        prediction(item, a),
        b === null ? null : prediction(item, b)));
  }
  function showFailures() {
    const dataset = $("f-dataset").value === "" ? null : data.datasets[$("f-dataset").value];
    const a = Number($("f-a").value);
    const b = $("f-b").value === "" ? null : Number($("f-b").value);
    const group = $("f-size").value === "" ? null : Number($("f-size").value);
    const found = failures.items.filter((item) => item.scores[a]
      && (item.of.includes(a) || item.missed.includes(a))
      && (dataset === null || item.dataset === dataset)
      && (group === null || item.group === group)
      && (!$("f-missed").checked || item.missed.includes(a)));
    const score = (item) => item.scores[a][0] ?? Infinity;
    found.sort((x, y) => score(x) - score(y));
    $("f-items").replaceChildren(...found.slice(0, most).map((item) => card(item, a, b)));
    const missed = found.filter((item) => item.missed.includes(a)).length;
    $("f-count").textContent = found.length
      ? `${found.length} object${found.length === 1 ? "" : "s"}, ${missed} of them missed by ${data.methods[a]}; the worst ${Math.min(most, found.length)} shown`
      : `no object of this kind among the worst of ${data.methods[a]}`;
    $("f-more").hidden = found.length <= most;
  }
  for (const id of ["f-dataset", "f-a", "f-b", "f-size", "f-missed"]) {
    $(id).addEventListener("change", () => { most = PAGE; showFailures(); });
  }
  $("f-more").addEventListener("click", () => { most += PAGE; showFailures(); });
  showFailures();
})();
