"use strict";
// The page is complete without this script, for the number of clusters of the run. The
// script shows the other numbers, links the figures with the list and saves tables.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (words, inside = document) => inside.querySelector(words);
const all = (words, inside = document) => [...inside.querySelectorAll(words)];
const range = (n) => Array.from({ length: n }, (_, i) => i);

const decode = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));

function unpack(content) {
  const [kind, text] = Object.entries(content)[0];
  const type = { u8: Uint8Array, u16: Uint16Array, f32: Float32Array }[kind];
  return new type(decode(text).buffer);
}

const shares = (content) => Array.from(unpack(content), (value) => value / 65535);

function unpackSolution(each) {
  for (const name of ["cluster", "second"]) { each[name] = unpack(each[name]); }
  for (const name of ["heat", "items"]) {
    if (each[name]) { each[name] = Array.from(unpack(each[name])); }
  }
  for (const name of ["own", "other", "sure"]) { each[name] = shares(each[name]); }
  each.key ??= String(each.k);
  return each;
}
data.solutions.forEach(unpackSolution);
const stored = data.solutions.length;
data.heat.rows = unpack(data.heat.rows);
data.tracked = unpack(data.tracked);
for (const column of data.columns) {
  if (column.kind === "numbers") {
    const values = unpack(column.values);
    column.cells = Array.from(values, (x) => Number.isFinite(x)
      ? String(Number(x.toPrecision(6))) : "");
    column.numbers = values;
  } else {
    column.codes = unpack(column.codes);
    column.cells = Array.from(column.codes, (code) => column.levels[code]);
  }
}
let now = data.chosen;
const solution = () => data.solutions[now];
// Names and colours that a reader gave to clusters.
let given = {};
const colour = (cluster) => given[cluster]?.colour ?? data.palette[cluster % data.palette.length];
const alias = (cluster) => given[cluster]?.name ?? "";
const called = (cluster) => (alias(cluster) ? `${cluster} ${alias(cluster)}` : String(cluster));
const MISSING = "#8d97a3";
const RAMP = [[91, 42, 134], [63, 111, 176], [42, 157, 143], [140, 193, 82], [224, 176, 0]];

// ---- Small drawing helpers

function svg(name, attributes, words = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) { node.setAttribute(key, value); }
  node.textContent = words;
  return node;
}

function element(name, attributes = {}, ...inside) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) { node.setAttribute(key, value); }
  node.append(...inside);
  return node;
}

function swatch(shade) {
  const node = element("span", { class: "swatch" });
  node.style.background = shade;
  return node;
}

function ramp(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(place), RAMP.length - 2);
  return `rgb(${RAMP[i].map((low, j) => Math.round(low + (place - i) * (RAMP[i + 1][j] - low)))
    .join(" ")})`;
}

// The levels of a bitmap, and bitmaps of other levels with its palette.
function picture(address) {
  const bytes = decode(address.split(",")[1]);
  const head = new DataView(bytes.buffer);
  const [start, width, height] = [10, 18, 22].map((place) => head.getUint32(place, true));
  const line = (size) => Math.ceil(size / 4) * 4;
  return {
    // Clusters have the colours of the palette, or those that a reader gave them.
    recolour: () => range(data.palette.length).forEach((cluster) => {
      const shade = parseInt(colour(cluster).slice(1), 16);
      [0, 8, 16].forEach((bits, i) => { bytes[54 + 4 * cluster + i] = shade >> bits; });
    }),
    width, height,
    level: (x, y) => bytes[start + (height - 1 - y) * line(width) + x],
    repaint: (columns, rows, level) => {
      const other = new Uint8Array(start + line(columns) * rows);
      other.set(bytes.subarray(0, start));
      for (const [place, value] of [[2, other.length], [18, columns], [22, rows]]) {
        new DataView(other.buffer).setUint32(place, value, true);
      }
      for (let y = 0; y < rows; y += 1) {
        for (let x = 0; x < columns; x += 1) {
          other[start + (rows - 1 - y) * line(columns) + x] = level(x, y);
        }
      }
      let text = "";
      for (let i = 0; i < other.length; i += 8192) {
        text += String.fromCharCode(...other.subarray(i, i + 8192));
      }
      return "data:image/bmp;base64," + btoa(text);
    },
  };
}

// ---- The samples of the heatmap, cluster by cluster in the order of the dendrogram

const matrix = find("#fig-heatmap .matrix");
const heat = picture(matrix.getAttribute("href"));
const heatPlace = [];
solution().heat.forEach((sample, i) => { heatPlace[sample] = i; });
const heatLevel = (a, b) => heat.level(heatPlace[b], heatPlace[a]);

function drawHeatmap() {
  const order = solution().heat;
  matrix.setAttribute("href", heat.repaint(order.length, order.length,
    (x, y) => heatLevel(order[y], order[x])));
}

// ---- Signature features over the same samples

const band = data.signature && picture(data.signature.picture);
const strip = find("#fig-signatures .strip");
const stripPicture = strip && picture(strip.getAttribute("href"));
const featureNames = all("#fig-signatures .names text");

function drawSignatures() {
  if (!band) { return; }
  const figure = find("#fig-signatures svg");
  const { top, row } = figure.dataset;
  const order = solution().heat;
  const rows = solution().features;
  find("#fig-signatures").hidden = !rows.length;
  strip.setAttribute("href", stripPicture.repaint(order.length, 1,
    (x) => solution().cluster[data.heat.rows[order[x]]] % data.palette.length));
  const values = find(".values", figure);
  values.setAttribute("height", row * rows.length);
  if (rows.length) {
    values.setAttribute("href", band.repaint(order.length, rows.length,
      (x, y) => band.level(order[x], rows[y])));
  }
  find(".names", figure).replaceChildren(...rows.map((feature, i) => {
    const name = featureNames[feature];
    name.setAttribute("y", +top + row * i + 11.5);
    name.setAttribute("visibility", "visible");
    return name;
  }));
  figure.setAttribute("viewBox", `0 0 960 ${+top + row * rows.length + 6}`);
}

// ---- Bars of the samples and rows of the tracking

function drawItems() {
  const figure = find("#fig-items svg");
  const { left, right, top, bottom, high } = figure.dataset;
  const order = solution().items;
  const y = (value) => bottom - (value / high) * (bottom - top);
  const step = (right - left) / order.length;
  all(".items rect", figure).forEach((bar, i) => {
    const sample = order[i];
    const level = Math.max(y(solution().own[sample]), top);
    bar.dataset.i = sample;
    bar.setAttribute("y", level.toFixed(1));
    bar.setAttribute("height", Math.max(bottom - level, 0).toFixed(1));
    bar.style.fill = colour(solution().cluster[sample]);
  });
  find(".other", figure).setAttribute("points", order.map((sample, i) =>
    `${(+left + (i + 0.5) * step).toFixed(1)},${Math.max(y(solution().other[sample]), top).toFixed(1)}`)
    .join(" "));
}

function drawTracking() {
  const { top, row } = find("#fig-tracking svg").dataset;
  const current = find("#fig-tracking .current");
  current.setAttribute("visibility", now < stored ? "visible" : "hidden");
  current.setAttribute("y", +top + row * now - 1);
}

// ---- The maps

const maps = all("#fig-map svg, #fig-pca svg").map((figure) => {
  const dots = all(".samples circle", figure);
  dots.forEach((dot, i) => { dot.dataset.i = i; });
  const ring = svg("circle", { class: "ring", r: +dots[0].getAttribute("r") + 4,
    visibility: "hidden" });
  const rope = svg("polygon", { class: "rope", visibility: "hidden" });
  figure.append(ring, rope);
  const places = dots.map((dot) => [+dot.getAttribute("cx"), +dot.getAttribute("cy")]);
  return { figure, dots, ring, rope, places };
});
let selected = null;

function paintNumbers(name, numbers) {
  const there = Array.from(numbers).filter(Number.isFinite);
  const low = Math.min(...there);
  const high = Math.max(...there);
  return { name, low, high, numbers, of: (i) => (Number.isFinite(numbers[i])
    ? ramp((numbers[i] - low) / ((high - low) || 1)) : MISSING) };
}

const paints = [
  { name: "cluster", classes: () => [...solution().order].sort((a, b) => a - b),
    of: (i) => colour(solution().cluster[i]), legend: colour, words: called },
  { name: "confidence", low: 0, high: 1, of: (i) => ramp(solution().sure[i]) },
  ...data.columns.filter((column) => column.kind !== "words").map((column) => {
    if (column.kind === "numbers") { return paintNumbers(column.name, column.numbers); }
    const shade = (level) => (level === "" ? MISSING : colour(column.levels
      .filter((each) => each !== "").indexOf(level)));
    return { name: column.name, classes: () => column.levels, legend: shade,
      of: (i) => shade(column.cells[i]) };
  }),
];

const paintChoice = find("#paint");
paintChoice.append(...paints.map((paint, i) => element("option", { value: i }, paint.name)));

function drawMaps() {
  const paint = paints[paintChoice.value];
  const plain = paint !== paints[0];
  for (const { dots } of maps) {
    dots.forEach((dot, i) => {
      dot.style.fill = paint.of(i);
      const firm = plain ? 0.9 : 0.35 + 0.6 * solution().sure[i];
      dot.setAttribute("opacity", selected && !selected.has(i) ? 0.13 : firm.toFixed(2));
    });
  }
  const legend = find("#legend");
  if (paint.classes) {
    legend.replaceChildren(...paint.classes().map((level) => element("span", {},
      swatch(paint.legend(level)),
      level === "" ? "missing" : (paint.words ?? String)(level))));
  } else {
    const bar = element("span", { class: "ramp" });
    bar.style.background = `linear-gradient(to right, ${RAMP.map((each) =>
      `rgb(${each.join(" ")})`).join(", ")})`;
    const round = (value) => String(Number(value.toPrecision(4)));
    legend.replaceChildren(element("span", {}, round(paint.low), bar, round(paint.high)));
  }
}

let pinned = -1;
function mark(sample) {
  const shown = sample < 0 ? pinned : sample;
  for (const { ring, places } of maps) {
    ring.setAttribute("visibility", shown < 0 ? "hidden" : "visible");
    if (shown >= 0) {
      ring.setAttribute("cx", places[shown][0]);
      ring.setAttribute("cy", places[shown][1]);
    }
  }
  all("#list tbody tr").forEach((row) => row.classList.toggle("marked",
    +row.dataset.i === shown));
}

// ---- The list of the samples

const PAGE = 25;
const fixed = (value) => value.toFixed(2);
const columns = [
  { name: "sample", key: (i) => data.names[i], cell: (i) => data.names[i], text: true },
  { name: "cluster", key: (i) => solution().cluster[i], cell: (i) => called(solution().cluster[i]) },
  { name: "consensus", key: (i) => solution().own[i], cell: (i) => fixed(solution().own[i]) },
  { name: "second choice", key: (i) => solution().second[i],
    cell: (i) => (solution().k > 1 ? solution().second[i] : "none") },
  { name: "its consensus", key: (i) => solution().other[i], cell: (i) => fixed(solution().other[i]) },
  { name: "confidence", key: (i) => solution().sure[i], cell: (i) => fixed(solution().sure[i]) },
  ...data.columns.map((column) => ({ name: column.name, text: column.kind !== "numbers",
    key: (i) => (column.numbers ? column.numbers[i] : column.cells[i]),
    cell: (i) => column.cells[i] })),
];
const list = find("#list");
const sorting = { column: 5, sign: 1 };
let first = 0;

const compare = (a, b) => (typeof a === "string"
  ? a.localeCompare(b, "en", { numeric: true }) : a - b);

function listSamples() {
  const wanted = find("#search").value.trim().toLowerCase();
  const only = find("#only").checked;
  const key = columns[sorting.column].key;
  return range(data.names.length)
    .filter((i) => (!selected || selected.has(i)) && (!only || solution().sure[i] < data.below)
      && (!wanted || columns.some((c) => c.text && c.cell(i).toLowerCase().includes(wanted))))
    .sort((a, b) => sorting.sign * compare(key(a), key(b)) || a - b);
}

function drawList() {
  const rows = listSamples();
  first = Math.min(first, Math.max(rows.length - 1, 0));
  first -= first % PAGE;
  const shown = rows.slice(first, first + PAGE);
  find("tbody", list).replaceChildren(...shown.map((i) => {
    const row = element("tr", { "data-i": i });
    row.append(...columns.map((column, j) => {
      const cell = element("td", column.text ? { class: "text" } : {});
      if (j === 1) { cell.append(swatch(colour(solution().cluster[i]))); }
      cell.append(j === 0
        ? element("button", { type: "button", title: data.names[i] }, data.names[i])
        : String(column.cell(i)));
      return cell;
    }));
    return row;
  }));
  find("#count").textContent = rows.length
    ? `${first + 1}–${first + shown.length} of ${rows.length}` : "no sample";
  find("#previous").disabled = first === 0;
  find("#next").disabled = first + PAGE >= rows.length;
  all("th", list).forEach((head, i) => (i === sorting.column
    ? head.setAttribute("aria-sort", sorting.sign > 0 ? "ascending" : "descending")
    : head.removeAttribute("aria-sort")));
  mark(-1);
}

find("thead tr", list).replaceChildren(...columns.map((column, i) => {
  const button = element("button", { type: "button" }, column.name);
  button.addEventListener("click", () => {
    sorting.sign = sorting.column === i ? -sorting.sign : 1;
    sorting.column = i;
    first = 0;
    drawList();
  });
  return element("th", { scope: "col", class: column.text ? "text" : "number" }, button);
}));
for (const name of ["search", "only"]) {
  find("#" + name).addEventListener("input", () => { first = 0; drawList(); });
}
find("#previous").addEventListener("click", () => { first -= PAGE; drawList(); });
find("#next").addEventListener("click", () => { first += PAGE; drawList(); });
const sampleOf = (target) => {
  const holder = target.closest?.("[data-i]");
  return holder ? +holder.dataset.i : -1;
};
// A list that has come to a pointer at rest is not pointed at.
let led = false;
for (const kind of ["pointerover", "pointermove", "focusin"]) {
  list.addEventListener(kind, (event) => {
    led &&= !(event.movementX || event.movementY || kind === "focusin");
    if (!led) { mark(sampleOf(event.target)); }
  });
}
for (const kind of ["pointerleave", "focusout"]) {
  list.addEventListener(kind, () => { if (!led) { mark(-1); } });
}
list.addEventListener("click", (event) => {
  const sample = sampleOf(event.target);
  if (sample < 0) { return; }
  pinned = pinned === sample ? -1 : sample;
  mark(-1);
  if (pinned >= 0 && event.target.closest("button")) {
    find("#fig-map").scrollIntoView({ block: "center" });
  }
});
document.addEventListener("click", (event) => {
  const dot = event.target.closest(".samples circle");
  if (!dot || Date.now() - roped < 300) { return; }
  pinned = +dot.dataset.i;
  find("#search").value = "";
  find("#only").checked = false;
  if (!selected?.has(pinned)) { select(null); }
  first = listSamples().indexOf(pinned);
  drawList();
  led = true;
  find("#list tr.marked").scrollIntoView({ block: "center" });
});

// ---- A selection: samples inside a line or a rectangle, or those that are listed

let roped = 0;

function select(samples) {
  selected = samples && samples.length ? new Set(samples) : null;
  find("#selection").hidden = !selected;
  find("#n-selected").textContent = selected
    ? `${selected.size} sample${selected.size === 1 ? "" : "s"} selected` : "";
  first = 0;
  drawMaps();
  drawList();
  tell({ selection: selected ? [...selected] : [] });
}

// Whether a line around a place crosses an odd number of times.
function inside([x, y], line) {
  let odd = false;
  line.forEach(([ax, ay], i) => {
    const [bx, by] = line[(i || line.length) - 1];
    if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) { odd = !odd; }
  });
  return odd;
}

for (const { figure, rope, places } of maps) {
  let line = null;
  const at = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(figure.getScreenCTM().inverse());
    return [place.x, place.y];
  };
  figure.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" && event.button === 0) { line = [at(event)]; }
  });
  figure.addEventListener("pointermove", (event) => {
    if (!line) { return; }
    const [[x, y], [right, low]] = [line[0], at(event)];
    if (line.length === 1 && Math.hypot(right - x, low - y) < 6) { return; }
    if (line.length === 1) { figure.setPointerCapture(event.pointerId); }
    line = event.shiftKey ? [[x, y], [right, y], [right, low], [x, low]]
      : [...line, [right, low]];
    rope.setAttribute("points", line.map((each) => each.join(",")).join(" "));
    rope.setAttribute("visibility", "visible");
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    figure.addEventListener(kind, () => {
      if (line?.length > 2) {
        roped = Date.now();
        select(range(places.length).filter((i) => inside(places[i], line)));
      }
      line = null;
      rope.setAttribute("visibility", "hidden");
    });
  }
}
find("#unselect").addEventListener("click", () => select(null));
find("#select-listed").addEventListener("click", () => select(listSamples()));

// ---- Another number of clusters

const followers = all("[data-follow]").map((place) => ({
  place, name: place.dataset.follow, own: [...place.childNodes] }));

function show(index) {
  now = index;
  const k = solution().k;
  for (const { place, name, own } of followers) {
    const other = find(`template[data-part="${name}"][data-k="${solution().key}"]`)
      ?.content.cloneNode(true);
    // Marks of a figure are wrapped, since outside of an svg they would be HTML.
    const inside = place instanceof SVGElement ? other?.firstElementChild : other;
    place.replaceChildren(...(inside ? inside.childNodes : own));
  }
  const slider = find("#number");
  if (slider) {
    slider.value = index;
    slider.setAttribute("aria-valuetext", `${k} clusters`);
    find("#shown").textContent = k;
    find("#back").disabled = index === data.chosen;
  }
  nameClusters();
  find("#fig-histogram").hidden = k === 1;
  drawHeatmap();
  drawSignatures();
  drawItems();
  drawTracking();
  drawMaps();
  drawList();
}

function nameClusters() {
  for (const place of all(".swatch[data-cluster]")) {
    place.style.background = colour(+place.dataset.cluster);
  }
  for (const place of all("rect[data-cluster]")) {
    place.setAttribute("fill", colour(+place.dataset.cluster));
  }
  for (const place of all(".alias")) {
    const name = alias(+place.dataset.cluster);
    place.textContent = name && " " + name;
  }
  for (const place of all(".halo")) {
    place.dataset.cluster ??= place.textContent.trim();
    place.textContent = alias(+place.dataset.cluster) || place.dataset.cluster;
  }
}

find("#number")?.addEventListener("input", (event) => show(+event.target.value));
find("#back")?.addEventListener("click", () => { show(data.chosen); find("#number").focus(); });
all("#fig-tracking .track").forEach((row, i) => row.addEventListener("click", () => show(i)));
paintChoice.addEventListener("input", drawMaps);

// ---- What is under the pointer

const tip = document.getElementById("tip");
function describe(sample) {
  const shown = paints[paintChoice.value];
  const paint = data.columns.find((column) => column.name === shown.name)
    ?? (shown.numbers && { name: shown.name,
      cells: { [sample]: String(Number(shown.numbers[sample].toPrecision(4))) } });
  return `${data.names[sample]}\ncluster ${called(solution().cluster[sample])}, confidence `
    + fixed(solution().sure[sample])
    + (solution().k > 1 ? `\nsecond choice ${solution().second[sample]}` : "")
    + (paint ? `\n${paint.name}: ${paint.cells[sample] || "missing"}` : "");
}
// The two samples of the heatmap under the pointer, and their consensus.
function describePair(event) {
  const box = matrix.getBoundingClientRect();
  const order = solution().heat;
  const [a, b] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]
    .map((share) => order[Math.floor(share * order.length)]);
  if (a === undefined || b === undefined) { return ""; }
  const words = [a, b].map((i) => data.names[data.heat.rows[i]]
    + ` (cluster ${called(solution().cluster[data.heat.rows[i]])})`);
  return `${words.join("\n")}\nconsensus ${fixed(heatLevel(b, a) / 255 * data.heat.full)}`;
}

function point(event) {
  const target = event.target;
  const marked = target.closest("#fig-heatmap .matrix, #fig-heatmap .block, .samples circle, "
    + ".items rect, [data-tip]");
  tip.hidden = !marked;
  if (target.closest("#fig-map, #fig-pca, #fig-items")) { mark(sampleOf(target)); }
  if (!marked) { return; }
  tip.textContent = (marked.closest("#fig-heatmap") && describePair(event))
    || (marked.dataset.tip ?? describe(+marked.dataset.i));
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const y = event.clientY + 18 + box.height > innerHeight
    ? event.clientY - box.height - 12 : event.clientY + 18;
  tip.style.left = Math.max(x, 4) + "px";
  tip.style.top = y + "px";
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);

// ---- Tables to save

// A cell that spreadsheets show as it is and never compute.
function plain(cell) {
  const text = String(cell);
  const risky = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text)
    && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim());
  const safe = risky ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const cells = (place) => all(place + " tr").map((row) =>
  all("th, td", row).map((cell) => cell.textContent.replace(/\s+/g, " ").trim()));
const sampleColumns = (order) => [columns.map((column) => column.name),
  ...order.map((i) => columns.map((column) => column.cell(i)))];
const digits = (value) => Number(value.toFixed(4));

const tables = {
  criteria: () => cells("#criteria"),
  clusters: () => cells("#cluster-table [data-follow]"),
  features: () => cells("#feature-table [data-follow]"),
  known: () => cells("#known-table [data-follow]"),
  samples: () => sampleColumns(listSamples()),
  signatures: () => [["cluster", "feature", "effect", "mean inside", "mean outside"],
    ...all("#signature-list [data-follow] .chip").map((chip) => [
      chip.closest("tr").cells[0].textContent.trim().split(/\s/)[0],
      find("i", chip).textContent, find("b", chip).textContent,
      chip.dataset.inside, chip.dataset.outside])],
  cdf: () => [["consensus", ...data.cdf.k.map((k) => `K = ${k}`)],
    ...data.cdf.levels.map((level, i) => [level, ...data.cdf.shares.map((row) => row[i])])],
  tracking: () => [["sample", ...data.solutions.map((each) => `K = ${each.k}`)],
    ...Array.from(data.tracked, (i) => [data.names[i],
      ...data.solutions.map((each) => each.cluster[i])])],
  map: () => [["sample", "cluster", "confidence", "x", "y",
    ...(data.axes ?? []), ...data.columns.map((column) => column.name)],
  ...data.names.map((name, i) => [name, solution().cluster[i], digits(solution().sure[i]),
    ...maps.flatMap(({ places }) => places[i]), ...data.columns.map((c) => c.cells[i])])],
  heatmap: () => {
    const order = solution().heat;
    const name = (i) => data.names[data.heat.rows[i]];
    return [["sample", "cluster", ...order.map(name)], ...order.map((a) => [name(a),
      solution().cluster[data.heat.rows[a]],
      ...order.map((b) => digits(heatLevel(a, b) / 255 * data.heat.full))])];
  },
  items: () => [["sample", "cluster", "consensus", "consensus with the best other cluster"],
    ...solution().items.map((i) => [data.names[i], solution().cluster[i], digits(solution().own[i]),
      digits(solution().other[i])])],
  band: () => {
    const order = solution().heat;
    return [["feature", ...order.map((i) => data.names[data.heat.rows[i]])],
      ...solution().features.map((feature) => [data.signature.names[feature],
        ...order.map((i) => digits((band.level(i, feature) / 127 - 1)
          * data.signature.farthest))])];
  },
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-csv]");
  if (!button) { return; }
  const name = button.dataset.csv;
  const text = tables[name]().map((row) => row.map(plain).join(",")).join("\n") + "\n";
  const link = element("a", { download: `${name}-k${solution().k}.csv`,
    href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

// What is folded is printed all the same.
window.addEventListener("beforeprint", () => all("details").forEach((each) => { each.open = true; }));

// ---- Where the reader is

const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((each) => each.isIntersecting)) {
    links.forEach((link, id) => link.classList.toggle("here", id === entry.target.id));
  }
}, { rootMargin: "0px 0px -70% 0px" });
links.forEach((_, id) => seen.observe(document.getElementById(id)));

// ---- In the page of mdec app, which shows other solutions and asks for selections

const app = window.parent !== window && /^http:\/\/127\.0\.0\.1:\d+$/;
const tell = (words) => { if (app) { window.parent.postMessage({ mdec: words }, "*"); } };

// What the page has for every number of the run, for a solution that comes later.
function addSolution(content) {
  const key = `${content.k} ${content.consensus}`;
  let index = data.solutions.findIndex((each) => each.key === key);
  if (index < 0) {
    const added = unpackSolution({ ...content, key });
    // In the order of the run, whose clusters follow the dendrogram.
    const { heat: heatOrder, items } = data.solutions[data.chosen];
    const of = (i) => added.cluster[data.heat.rows[i]];
    const places = Map.groupBy(range(heatOrder.length), (place) => of(heatOrder[place]));
    const middle = new Map([...places].map(([cluster, own]) => [cluster,
      own.reduce((sum, place) => sum + place, 0) / own.length]));
    const rank = (cluster) => middle.get(cluster) ?? Infinity;
    added.order.sort((a, b) => rank(a) - rank(b) || a - b);
    added.heat = added.order.flatMap((cluster) => heatOrder.filter((i) => of(i) === cluster));
    added.items = [...items].sort((a, b) => added.cluster[a] - added.cluster[b]
      || added.own[b] - added.own[a] || a - b);
    added.features = data.signature
      ? added.listed.map((name) => data.signature.names.indexOf(name)).filter((i) => i >= 0) : [];
    index = data.solutions.push(added) - 1;
    const before = now;
    now = index;
    const marks = { map: drawMiddles(0), pca: drawMiddles(1), blocks: drawBlocks() };
    now = before;
    for (const [name, part] of Object.entries({ ...added.parts, ...marks })) {
      const place = element("template", { "data-part": name, "data-k": key });
      if (typeof part === "string") { place.innerHTML = part; } else { place.content.append(part); }
      document.body.append(place);
    }
  }
  return index;
}

function drawMiddles(which) {
  const wrap = svg("svg", {});
  if (!maps[which]) { return wrap; }
  const { places, dots } = maps[which];
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  for (const cluster of solution().order) {
    const own = places.filter((_, i) => solution().cluster[i] === cluster);
    if (!own.length) { continue; }
    const centre = [0, 1].map((axis) => median(own.map((place) => place[axis])));
    const away = ([x, y]) => Math.abs(x - centre[0]) + Math.abs(y - centre[1]);
    const [x, y] = own.reduce((best, place) => (away(place) < away(best) ? place : best));
    wrap.append(svg("text", { class: "halo", "text-anchor": "middle", x,
      y: y - dots[0].getAttribute("r") - 3 }, String(cluster)));
  }
  return wrap;
}

function drawBlocks() {
  const wrap = svg("svg", {});
  const order = solution().heat.map((i) => solution().cluster[data.heat.rows[i]]);
  const step = 440 / order.length;
  for (const cluster of solution().order) {
    const start = order.indexOf(cluster);
    const size = order.filter((each) => each === cluster).length * step;
    if (start < 0) { continue; }
    const corner = start * step;
    wrap.append(svg("rect", { class: "block", x: 6 + corner, y: 20 + corner, width: size,
      height: size, "data-tip": `cluster ${cluster}, ${Math.round(size / step)} samples` }));
    if (size > 11) {
      wrap.append(svg("text", { class: "small", "text-anchor": "middle",
        x: 6 + corner + size / 2, y: 14 }, String(cluster)));
    }
  }
  return wrap;
}

const heard = {
  solution: (content) => show(addSolution(content)),
  cut: (k) => {
    const index = data.solutions.findIndex((each) => each.key === String(k));
    if (index >= 0) { show(index); }
  },
  clusters: (names) => {
    given = names;
    stripPicture?.recolour();
    for (const image of all("#fig-tracking .track")) {
      const track = picture(image.getAttribute("href"));
      track.recolour();
      image.setAttribute("href", track.repaint(track.width, track.height, track.level));
    }
    show(now);
  },
  feature: ({ name, values }) => {
    const paint = paintNumbers(name, new Float32Array(decode(values).buffer));
    const index = paints.push(paint) - 1;
    paintChoice.append(element("option", { value: index }, name));
    paintChoice.value = index;
    drawMaps();
  },
  choose: (cluster) => select(cluster === null ? null
    : range(data.names.length).filter((i) => solution().cluster[i] === cluster)),
};
window.addEventListener("message", (event) => {
  if (!app || event.source !== window.parent || !app.test(event.origin)) { return; }
  for (const [name, content] of Object.entries(event.data?.mdec ?? {})) {
    heard[name]?.(content);
  }
});

document.documentElement.classList.add("live");
if (app) { document.documentElement.classList.add("framed"); }
show(now);
tell({ ready: data.names });
