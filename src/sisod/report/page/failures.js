/* The browser of failures: lists, filters, a link that keeps them, a large view, CSV. */
(() => {
  const { data, $, element, svgElement, swatch, scoreText, options } = page;
  const failures = data.failures;
  if (!failures.items.length) return;
  const PAGE_SIZE = 18;
  const LISTS = {
    worst: { kind: "object", name: "Worst objects", of: "Failures of", beside: "Compare with" },
    missed: { kind: "object", name: "Missed objects", of: "Missed by", beside: "Compare with" },
    error: { kind: "object", name: "Objects of an error class", of: "Objects of", beside: "Compare with" },
    differ: { kind: "object", name: "One finds, another misses", of: "Missed by", beside: "Found by" },
    false: { kind: "false", name: "False objects", of: "False objects of", beside: "Compare with" },
    images: { kind: "image", name: "Worst images", of: "Worst of", beside: "Compare with" },
  };
  const names = { object: ["object", "objects"], false: ["false object", "false objects"], image: ["image", "images"] };
  const CONTROLS = { list: "f-list", error: "f-error", dataset: "f-dataset", method: "f-method", other: "f-other", size: "f-size", search: "f-search" };
  let nShown = PAGE_SIZE;
  let matches = [];
  let opened = null; // number of the match in the large view

  /* ---- choices ---- */
  const several = failures.methods.length > 1;
  const classes = Object.keys(data.errors).filter((name) => failures.items.some((item) => Object.values(item.errors ?? {}).includes(name)));
  const lists = Object.keys(LISTS).filter((key) => (several || key !== "differ") && (classes.length || key !== "error")
    && failures.items.some((item) => item.kind === LISTS[key].kind));
  $("f-error").append(...classes.map((name) => element("option", { value: name }, data.errors[name])));
  $("f-list").append(...lists.map((key) => element("option", { value: key }, LISTS[key].name)));
  $("f-dataset").append(element("option", { value: "" }, "all"), ...options(data.datasets));
  $("f-method").append(...options(failures.methods));
  $("f-other").append(element("option", { value: "" }, "none"), ...options(failures.methods));
  $("f-size").append(element("option", { value: "" }, "all"),
    ...failures.groups.map((name, i) => element("option", { value: i }, name))
      .filter((option) => failures.items.some((item) => item.group === Number(option.value))));
  for (const id of ["f-other", "f-all"]) $(id).labels[0].hidden = !several;
  const defaults = { list: lists[0], error: classes[0] ?? "", dataset: "", method: "0", other: several ? "1" : "", size: "", search: "", all: false };
  const valueOf = (key) => $(CONTROLS[key]).value;
  const chosen = (key) => (valueOf(key) === "" ? null : Number(valueOf(key)));

  // a link names data sets, methods and sizes, so it also works on a page with more of them
  const byName = { dataset: data.datasets, method: failures.methods, other: failures.methods, size: failures.groups };
  function filterLink() {
    const query = new URLSearchParams();
    for (const key of Object.keys(CONTROLS)) {
      const value = valueOf(key);
      if (value !== defaults[key]) query.set(key, value === "" || !byName[key] ? value : byName[key][value]);
    }
    if ($("f-all").checked) query.set("all", "1");
    const text = query.toString();
    return text ? `#failures?${text}` : "#failures";
  }
  function readLink() {
    if (!location.hash.startsWith("#failures?")) return false;
    const query = new URLSearchParams(location.hash.slice("#failures?".length));
    for (const [key, id] of Object.entries(CONTROLS)) {
      const given = query.get(key);
      const index = byName[key] ? byName[key].indexOf(given) : -1;
      const value = given === null ? defaults[key] : given === "" || !byName[key] ? given : String(index);
      $(id).value = value;
      if ($(id).value !== value) $(id).value = defaults[key]; // the page has no such choice
    }
    $("f-all").checked = query.get("all") === "1";
    return true;
  }
  function keepLink() {
    $("f-link").href = filterLink();
    try {
      history.replaceState(null, "", filterLink());
    } catch { /* a page inside another document has no address of its own; the link still works */ }
  }

  /* ---- pictures ---- */
  // a picture of a window of the image, with the outline of the ground truth and the corners of the frame
  function picture(code, { outline, grid }, window, frame, alt) {
    if (!code) return element("div", { class: "picture no-picture" }, "no picture");
    const [width, height] = grid;
    const image = element("img", { src: `data:image/jpeg;base64,${code}`, alt });
    image.addEventListener("load", () => {
      // a crop with the pixels of the image is magnified without blur
      image.classList.toggle("crisp", Math.max(image.naturalWidth, image.naturalHeight) < failures.side);
    });
    // the outline runs through the middle of grid cells
    const overlay = svgElement("svg", { viewBox: `-0.5 -0.5 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (const halo of ["halo", "line"]) {
      if (outline) overlay.append(svgElement("path", { class: `outline ${halo}`, d: outline }));
      if (frame) overlay.append(svgElement("path", { class: `corners ${halo}`, d: corners(frame, window, grid) }));
    }
    return element("div", { class: "picture" }, image, overlay);
  }
  // the four corners of the frame, drawn a little outside of it: they hide no pixel of a small object
  function corners(frame, [x0, y0, x1, y1], [width, height]) {
    const [right0, bottom0] = [(frame[2] - x0) * width / (x1 - x0), (frame[3] - y0) * height / (y1 - y0)];
    const [x, y] = [(frame[0] - x0) * width / (x1 - x0), (frame[1] - y0) * height / (y1 - y0)];
    const side = Math.max(width, height), gap = 0.06 * side, arm = 0.06 * side, edge = 0.012 * side;
    const low = (value) => Math.max(edge, value - gap) - 0.5;
    const high = (value, length) => Math.min(length - edge, value + gap) - 0.5;
    const [left, top, right, bottom] = [low(x), low(y), high(right0, width), high(bottom0, height)];
    return `M${left} ${top + arm}V${top}H${left + arm}M${right - arm} ${top}H${right}V${top + arm}`
      + `M${right} ${bottom - arm}V${bottom}H${right - arm}M${left + arm} ${bottom}H${left}V${bottom - arm}`;
  }
  function scoreOf(item, method) {
    const scores = item.scores?.[method];
    if (item.kind === "false") {
      if (item.worst_of.includes(method)) return [element("span", { class: "missed" }, "false object"), ` (mean p ${scoreText(item.mean)})`];
      return [item.also.includes(method) ? element("span", { class: "missed" }, "false object too") : "no false object here"];
    }
    if (!scores) return ["not scored"];
    if (item.kind === "image") return [`${failures.image_score.title} ${scoreText(scores[0])}`];
    const missed = item.missed.includes(method);
    return [`F mean ${scoreText(scores[0])}`, element("br"), missed ? element("span", { class: "missed" }, "missed") : "found",
      ` (${Math.round(100 * scores[1])} %)`, ...(missed ? [] : flood(item.errors?.[method]))];
  }
  // a region that covers much more than the object finds it too, which says little
  const FLOODS = { spilled: "by a region that spills over", merged: "merged with another object" };
  const flood = (error) => (FLOODS[error] ? [" ", element("span", { class: "missed" }, FLOODS[error])] : []);
  // the end of a long name is often what tells it from another
  const shortened = (name) => (name.length > 28 ? `${name.slice(0, 12)}…${name.slice(-13)}` : name);
  function prediction(item, method, inCard) {
    const name = failures.methods[method];
    const around = item.kind === "image" ? `of ${item.image}` : `around the ${names[item.kind][0]}`;
    return element("figure", {}, picture(item.pictures[method], item, item.window, item.frame, `map of ${name} ${around}`),
      element("figcaption", {}, element("strong", { class: "method", title: name }, swatch(name), element("span", {}, inCard ? shortened(name) : name)), ...scoreOf(item, method)));
  }
  const whole = (item) => failures.photos[item.dataset][item.image];
  function photograph(item) {
    const alt = item.kind === "image" ? item.image : `${numbered(item)} of ${item.image} in its frame`;
    return element("figure", {}, picture(item.pictures.photo, item, item.window, item.frame, alt),
      element("figcaption", {}, whole(item).has_photo ? "photograph" : "ground truth"));
  }
  function wholePhotograph(item) {
    const [height, width] = item.shape;
    const alt = item.kind === "image" ? item.image : `all of ${item.image}, ${numbered(item)} between corners`;
    return element("figure", { class: "whole" }, picture(whole(item).picture, whole(item), [0, 0, width, height], item.frame, alt),
      element("figcaption", {}, `whole ${whole(item).has_photo ? "photograph" : "ground truth"}`));
  }
  const numbered = (item) => `${item.kind === "false" ? "predicted object" : "object"} ${item.index + 1}`;
  const title = (item) => (item.kind === "image" ? item.image : `${item.image}, ${numbered(item)}`);
  const percent = (share) => `${Number((100 * share).toPrecision(2))} %`;
  function place(item) {
    const [height, width] = item.shape;
    if (item.kind === "image") return `${item.dataset} · ${width} × ${height} pixels`;
    return `${item.dataset} · ${percent(item.share)} of the image`;
  }

  /* ---- list ---- */
  const allMethods = failures.methods.map((_, i) => i);
  function shownMethods(item) {
    if ($("f-all").checked) return allMethods;
    return [...new Set([Number(valueOf("method")), chosen("other")])].filter((i) => i !== null);
  }
  function card(item, number) {
    const wide = $("f-all").checked && failures.methods.length > 2;
    return element("li", { class: wide ? "item wide-item" : "item", "data-dataset": item.dataset, "data-group": item.group ?? "",
      onclick: (event) => { if (!event.target.closest("button")) openLarge(number); } },
      element("h4", {}, element("button", { type: "button", class: "open", "aria-haspopup": "dialog", title: "Open large", onclick: () => openLarge(number) }, title(item))),
      element("p", {}, place(item)),
      element("div", { class: "pictures" }, photograph(item), ...shownMethods(item).map((method) => prediction(item, method, true))));
  }
  // what ranks a list: the worst first
  function rank(item, method, list) {
    if (list === "false") return -item.mean;
    const score = item.scores[method][0] ?? Infinity;
    if (list === "images") return failures.image_score.better === "down" ? -score : score;
    return list === "differ" ? score - item.scores[chosen("other")][0] : score;
  }
  function belongs(item, method, list) {
    const other = chosen("other");
    if (item.kind !== LISTS[list].kind) return false;
    if (list === "false" || list === "images") return item.worst_of.includes(method);
    if (!item.scores[method]) return false;
    const missed = item.missed.includes(method);
    if (list === "missed") return missed;
    if (list === "error") return item.errors[method] === valueOf("error");
    if (list === "differ") return missed && other !== null && Boolean(item.scores[other]) && !item.missed.includes(other);
    return missed || item.worst_of.includes(method);
  }
  function countText(list, method) {
    const [one, many] = names[LISTS[list].kind];
    const name = failures.methods[method];
    const count = `${matches.length} ${matches.length === 1 ? one : many}`;
    if (!matches.length) return `no such ${one} on this page`;
    const missed = matches.filter((item) => item.missed?.includes(method)).length;
    const what = { worst: `, ${missed} of them missed by ${name}`, missed: ` missed by ${name}`,
      error: ` of ${name} in the class “${data.errors[valueOf("error")]}”`,
      differ: ` found by ${failures.methods[chosen("other")]} and missed by ${name}`, false: ` of ${name}`,
      images: ` with the worst ${failures.image_score.title} of ${name}` }[list];
    return `${count}${what}; the worst ${Math.min(nShown, matches.length)} shown`;
  }
  function showFailures() {
    const list = valueOf("list");
    const method = Number(valueOf("method"));
    if (list === "differ" && (chosen("other") === null || chosen("other") === method)) {
      $("f-other").value = String(allMethods.find((i) => i !== method));
    }
    $("f-method").labels[0].firstChild.data = `${LISTS[list].of} `;
    $("f-other").labels[0].firstChild.data = `${LISTS[list].beside} `;
    $("f-size").disabled = list === "images";
    $("f-error").labels[0].hidden = list !== "error";
    const dataset = valueOf("dataset") === "" ? null : data.datasets[valueOf("dataset")];
    const group = list === "images" ? null : chosen("size");
    const search = valueOf("search").trim().toLowerCase();
    matches = failures.items.filter((item) => belongs(item, method, list)
      && (dataset === null || item.dataset === dataset)
      && (group === null || item.group === group)
      && (!search || item.image.toLowerCase().includes(search)));
    matches.sort((x, y) => rank(x, method, list) - rank(y, method, list));
    $("f-items").replaceChildren(...matches.slice(0, nShown).map(card));
    $("f-count").textContent = countText(list, method);
    $("f-more").hidden = matches.length <= nShown;
    $("f-csv").disabled = !matches.length;
    $("f-link").href = filterLink();
  }
  function changed() {
    nShown = PAGE_SIZE;
    showFailures();
    keepLink();
  }
  for (const id of [...Object.values(CONTROLS), "f-all"]) $(id).addEventListener("change", changed);
  $("f-search").addEventListener("input", changed);
  $("f-more").addEventListener("click", () => {
    const first = nShown;
    nShown += PAGE_SIZE;
    showFailures();
    $("f-items").children[first]?.querySelector("button").focus();
  });
  $("f-outline").addEventListener("click", () => {
    const hidden = document.body.classList.toggle("no-outlines");
    $("f-outline").setAttribute("aria-pressed", String(!hidden));
  });

  /* ---- large view ---- */
  const dialog = $("f-dialog");
  function openLarge(number) {
    opened = number;
    const item = matches[number];
    const [x0, y0, x1, y1] = item.frame ?? [];
    $("f-dialog-title").textContent = title(item);
    $("f-dialog-place").textContent = place(item)
      + (item.frame ? ` · ${x1 - x0} × ${y1 - y0} pixels at x ${x0}, y ${y0} of ${item.shape[1]} × ${item.shape[0]}` : "")
      + ` · ${number + 1} of ${matches.length}`;
    const whole = item.kind === "image" ? [wholePhotograph(item)] : [wholePhotograph(item), photograph(item)];
    $("f-dialog-pictures").replaceChildren(...whole, ...allMethods.map((method) => prediction(item, method, false)));
    $("f-previous").disabled = number === 0;
    $("f-next").disabled = number === matches.length - 1;
    if (!dialog.open) {
      dialog.showModal();
      $("f-close").focus();
    }
    dialog.scrollTop = 0;
  }
  function step(by) {
    if (matches[opened + by]) openLarge(opened + by);
  }
  $("f-previous").addEventListener("click", () => step(-1));
  $("f-next").addEventListener("click", () => step(1));
  $("f-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }); // outside of the content
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { event.preventDefault(); step(by); }
  });
  dialog.addEventListener("close", () => {
    if (opened >= nShown) { nShown = opened + 1; showFailures(); }
    $("f-items").children[opened]?.querySelector("button").focus();
  });

  /* ---- CSV ---- */
  // a spreadsheet would run a text that starts like a formula
  function csvCell(value) {
    if (typeof value !== "string") return value === null || value === undefined ? "" : String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  function csvRows() {
    const list = valueOf("list");
    const kind = LISTS[list].kind;
    const head = ["list", "data set", "image"];
    if (kind !== "image") head.push("object", "x0", "y0", "x1", "y1", "share of the image");
    if (kind === "false") head.push("method", "mean p", "false object of");
    for (const name of kind === "false" ? [] : failures.methods) {
      head.push(...(kind === "image" ? [`${failures.image_score.title}: ${name}`] : [`F mean: ${name}`, `recall: ${name}`, `found: ${name}`]));
    }
    const rows = matches.map((item) => {
      const cells = [LISTS[list].name, item.dataset, item.image];
      if (kind !== "image") cells.push(item.index + 1, ...item.frame, item.share);
      if (kind === "false") cells.push(failures.methods[item.worst_of[0]], item.mean, item.also.map((i) => failures.methods[i]).join(" | "));
      for (const method of kind === "false" ? [] : allMethods) {
        const scores = item.scores[method] ?? [null, null];
        cells.push(...(kind === "image" ? [scores[0]] : [...scores, scores[1] === null ? "" : item.missed.includes(method) ? "no" : "yes"]));
      }
      return cells;
    });
    return [head, ...rows];
  }
  $("f-csv").addEventListener("click", () => {
    const text = csvRows().map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    element("a", { href: address, download: `failures-${valueOf("list")}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });

  function applyLink() {
    if (!readLink()) return false;
    nShown = PAGE_SIZE;
    showFailures();
    $("failures").scrollIntoView();
    return true;
  }
  for (const [key, id] of Object.entries(CONTROLS)) $(id).value = defaults[key]; // a reload keeps no half of a choice
  if (!applyLink()) showFailures();
  addEventListener("hashchange", applyLink);
})();
