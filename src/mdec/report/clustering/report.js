"use strict";
// The page is complete without this script, for the number of clusters of the run. The
// script shows the other numbers, links the figures with the list and saves tables.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (words, inside = document) => inside.querySelector(words);
const all = (words, inside = document) => [...inside.querySelectorAll(words)];
const range = (n) => Array.from({ length: n }, (_, i) => i);

function unpacked(content) {
  const [kind, text] = Object.entries(content)[0];
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const type = { u8: Uint8Array, u16: Uint16Array, f32: Float32Array }[kind];
  return new type(bytes.buffer);
}

const shares = (content) => Array.from(unpacked(content), (value) => value / 65535);

for (const view of data.views) {
  for (const name of ["cluster", "second"]) { view[name] = unpacked(view[name]); }
  for (const name of ["own", "rival", "sure"]) { view[name] = shares(view[name]); }
}
data.heat.rows = unpacked(data.heat.rows);
data.heat.position = unpacked(data.heat.position);
data.bars = unpacked(data.bars);
data.tracked = unpacked(data.tracked);
for (const column of data.columns) {
  if (column.kind === "numbers") {
    const values = unpacked(column.values);
    column.cells = Array.from(values, (x) => Number.isFinite(x)
      ? String(Number(x.toPrecision(6))) : "");
    column.numbers = values;
  } else {
    column.codes = unpacked(column.codes);
    column.cells = Array.from(column.codes, (code) => column.levels[code]);
  }
}
let now = data.chosen;
const view = () => data.views[now];
const colour = (cluster) => data.palette[cluster % data.palette.length];
const MISSING = "#8d97a3";
const RAMP = ["#5b2a86", "#3f6fb0", "#2a9d8f", "#8cc152", "#e0b000"];

// ---- Small drawing helpers

function svg(name, attributes, words = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) { made.setAttribute(key, value); }
  made.textContent = words;
  return made;
}

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) { made.setAttribute(key, value); }
  made.append(...inside);
  return made;
}

function swatch(shade) {
  const made = element("span", { class: "swatch" });
  made.style.background = shade;
  return made;
}

const parts = (shade) => [1, 3, 5].map((i) => parseInt(shade.slice(i, i + 2), 16));

function between(colours, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const i = Math.min(Math.floor(place), colours.length - 2);
  return colours[i].map((low, j) => Math.round(low + (place - i) * (colours[i + 1][j] - low)));
}

const ramp = (share) => `rgb(${between(RAMP.map(parts), share).join(" ")})`;

// A bitmap of levels with a palette; unlike a canvas it needs no permission to be read.
function bitmap(width, height, level, palette) {
  const line = Math.ceil(width / 4) * 4;
  const start = 54 + 1024;
  const bytes = new Uint8Array(start + line * height);
  const head = new DataView(bytes.buffer);
  bytes.set([66, 77]);
  for (const [place, value] of [[2, bytes.length], [10, start], [14, 40], [18, width],
    [22, height], [46, 256]]) { head.setUint32(place, value, true); }
  head.setUint16(26, 1, true);
  head.setUint16(28, 8, true);
  palette.forEach(([r, g, b], i) => bytes.set([b, g, r, 0], 54 + 4 * i));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      bytes[start + (height - 1 - y) * line + x] = level(x, y);
    }
  }
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return "data:image/bmp;base64," + btoa(text);
}

// ---- The samples of the heatmap, cluster by cluster in the order of the dendrogram

function orderOf(shown) {
  const rank = new Map(shown.order.map((cluster, i) => [cluster, i]));
  const { rows, position } = data.heat;
  return range(rows.length).sort((a, b) =>
    rank.get(shown.cluster[rows[a]]) - rank.get(shown.cluster[rows[b]])
    || position[a] - position[b]);
}

const matrix = find("#fig-heatmap .matrix");
const heat = (() => {
  const text = atob(matrix.getAttribute("href").split(",")[1]);
  const number = (place) => [3, 2, 1, 0].reduce(
    (sum, i) => 256 * sum + text.charCodeAt(place + i), 0);
  const start = number(10);
  const size = number(18);
  const line = Math.ceil(size / 4) * 4;
  const place = new Array(size);
  orderOf(data.views[data.chosen]).forEach((sample, i) => { place[sample] = i; });
  return {
    size,
    palette: range(256).map((i) => [2, 1, 0].map((j) => text.charCodeAt(54 + 4 * i + j))),
    level: (a, b) => text.charCodeAt(start + (size - 1 - place[a]) * line + place[b]),
  };
})();

function drawHeatmap() {
  const order = orderOf(view());
  const figure = find("#fig-heatmap svg");
  const { left, top, side } = figure.dataset;
  matrix.setAttribute("href",
    bitmap(heat.size, heat.size, (x, y) => heat.level(order[y], order[x]), heat.palette));
  const step = side / order.length;
  const clusters = order.map((i) => view().cluster[data.heat.rows[i]]);
  find(".blocks", figure).replaceChildren(...view().order.flatMap((cluster) => {
    const size = clusters.filter((each) => each === cluster).length;
    if (!size) { return []; }
    const away = clusters.indexOf(cluster) * step;
    const frame = svg("rect", { class: "block", x: +left + away, y: +top + away,
      width: size * step, height: size * step,
      "data-tip": `cluster ${cluster}, ${size} samples` });
    const number = svg("text", { class: "small", "text-anchor": "middle",
      x: +left + away + size * step / 2, y: top - 6 }, cluster);
    return size * step > 11 ? [frame, number] : [frame];
  }));
}

// ---- Signature features over the same samples

const signature = data.signature && { ...data.signature,
  levels: unpacked(data.signature.levels) };

function drawSignatures() {
  if (!signature) { return; }
  const figure = find("#fig-signatures svg");
  const { left, top, width, row } = figure.dataset;
  const order = orderOf(view());
  const rows = view().features;
  const painted = data.palette.map(parts);
  find(".strip", figure).setAttribute("href", bitmap(order.length, 1,
    (x) => view().cluster[data.heat.rows[order[x]]] % painted.length, painted));
  let picture = find(".values", figure);
  if (!picture) {
    picture = svg("image", { class: "crisp contrast values", x: left, y: top, width,
      preserveAspectRatio: "none" });
    figure.append(picture);
  }
  picture.setAttribute("height", row * rows.length);
  if (rows.length) {
    picture.setAttribute("href", bitmap(order.length, rows.length,
      (x, y) => signature.levels[rows[y] * order.length + order[x]],
      range(256).map((i) => between(signature.colours, i / 254))));
  }
  const short = (name) => name.length > signature.length
    ? name.slice(0, signature.length - 1) + "…" : name;
  find(".names", figure).replaceChildren(...rows.map((feature, i) => svg("text",
    { x: left - 6, y: +top + row * i + 11.5, "data-tip": signature.names[feature] },
    short(signature.names[feature]))));
  figure.setAttribute("viewBox", `0 0 960 ${+top + row * rows.length + 6}`);
}

// ---- Bars of the samples and rows of the tracking

function itemOrder() {
  const { cluster, own } = view();
  return Array.from(data.bars).sort((a, b) => cluster[a] - cluster[b] || own[b] - own[a]
    || a - b);
}

function drawItems() {
  const figure = find("#fig-items svg");
  const { left, right, top, bottom, high } = figure.dataset;
  const order = itemOrder();
  const y = (value) => bottom - (value / high) * (bottom - top);
  const step = (right - left) / order.length;
  all(".items rect", figure).forEach((bar, i) => {
    const sample = order[i];
    const level = Math.max(y(view().own[sample]), top);
    bar.dataset.i = sample;
    bar.setAttribute("y", level.toFixed(1));
    bar.setAttribute("height", Math.max(bottom - level, 0).toFixed(1));
    bar.style.fill = colour(view().cluster[sample]);
  });
  find(".rival", figure).setAttribute("points", order.map((sample, i) =>
    `${(+left + (i + 0.5) * step).toFixed(1)},${Math.max(y(view().rival[sample]), top).toFixed(1)}`)
    .join(" "));
}

function drawTracking() {
  const { top, row } = find("#fig-tracking svg").dataset;
  find("#fig-tracking .current").setAttribute("y", +top + row * now - 1);
}

// ---- The maps

const maps = all("#fig-map svg, #fig-pca svg").map((figure) => {
  const dots = all(".samples circle", figure);
  dots.forEach((dot, i) => { dot.dataset.i = i; });
  const ring = svg("circle", { class: "ring", r: +dots[0].getAttribute("r") + 4,
    visibility: "hidden" });
  figure.append(ring);
  const places = dots.map((dot) => [+dot.getAttribute("cx"), +dot.getAttribute("cy")]);
  return { figure, dots, ring, places };
});

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const paints = [
  { name: "cluster", classes: () => [...view().order].sort((a, b) => a - b),
    of: (i) => colour(view().cluster[i]), legend: colour },
  { name: "confidence", low: 0, high: 1, of: (i) => ramp(view().sure[i]) },
  ...data.columns.filter((column) => column.kind !== "words").map((column) => {
    if (column.kind === "numbers") {
      const there = Array.from(column.numbers).filter(Number.isFinite);
      const low = Math.min(...there);
      const high = Math.max(...there);
      return { name: column.name, low, high, of: (i) => Number.isFinite(column.numbers[i])
        ? ramp((column.numbers[i] - low) / ((high - low) || 1)) : MISSING };
    }
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
  for (const { figure, dots, places } of maps) {
    dots.forEach((dot, i) => {
      dot.style.fill = paint.of(i);
      dot.setAttribute("opacity", plain ? 0.9 : (0.35 + 0.6 * view().sure[i]).toFixed(2));
    });
    find(".middles", figure).replaceChildren(...view().order.map((cluster) => {
      const inside = places.filter((_, i) => view().cluster[i] === cluster);
      const [x, y] = [0, 1].map((axis) => median(inside.map((place) => place[axis])));
      const away = (place) => Math.abs(place[0] - x) + Math.abs(place[1] - y);
      const best = inside.reduce((a, b) => (away(b) < away(a) ? b : a));
      return svg("text", { class: "halo", "text-anchor": "middle", x: best[0],
        y: best[1] - dots[0].getAttribute("r") - 3 }, cluster);
    }));
  }
  const legend = find("#legend");
  if (paint.classes) {
    legend.replaceChildren(...paint.classes().map((level) => element("span", {},
      swatch(paint.legend(level)), level === "" ? "missing" : String(level))));
  } else {
    const bar = element("span", { class: "ramp" });
    bar.style.background = `linear-gradient(to right, ${RAMP.join(", ")})`;
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
  { name: "cluster", key: (i) => view().cluster[i], cell: (i) => view().cluster[i] },
  { name: "consensus", key: (i) => view().own[i], cell: (i) => fixed(view().own[i]) },
  { name: "second choice", key: (i) => view().second[i],
    cell: (i) => (view().k > 1 ? view().second[i] : "none") },
  { name: "its consensus", key: (i) => view().rival[i], cell: (i) => fixed(view().rival[i]) },
  { name: "confidence", key: (i) => view().sure[i], cell: (i) => fixed(view().sure[i]) },
  ...data.columns.map((column) => ({ name: column.name, text: column.kind !== "numbers",
    key: (i) => (column.numbers ? column.numbers[i] : column.cells[i]),
    cell: (i) => column.cells[i] })),
];
const list = find("#list");
const sorted = { column: 5, sign: 1 };
let first = 0;

const compare = (a, b) => (typeof a === "string"
  ? a.localeCompare(b, "en", { numeric: true }) : a - b);

function listed() {
  const wanted = find("#search").value.trim().toLowerCase();
  const only = find("#only").checked;
  const key = columns[sorted.column].key;
  return range(data.names.length)
    .filter((i) => (!only || view().sure[i] < data.below)
      && (!wanted || columns.some((c) => c.text && c.cell(i).toLowerCase().includes(wanted))))
    .sort((a, b) => sorted.sign * compare(key(a), key(b)) || a - b);
}

function drawList() {
  const rows = listed();
  first = Math.min(first, Math.max(rows.length - 1, 0));
  first -= first % PAGE;
  const shown = rows.slice(first, first + PAGE);
  find("tbody", list).replaceChildren(...shown.map((i) => {
    const row = element("tr", { "data-i": i });
    row.append(...columns.map((column, j) => {
      const cell = element("td", column.text ? { class: "text" } : {});
      if (j === 1) { cell.append(swatch(colour(view().cluster[i]))); }
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
  all("th", list).forEach((head, i) => (i === sorted.column
    ? head.setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending")
    : head.removeAttribute("aria-sort")));
  mark(-1);
}

find("thead tr", list).replaceChildren(...columns.map((column, i) => {
  const button = element("button", { type: "button" }, column.name);
  button.addEventListener("click", () => {
    sorted.sign = sorted.column === i ? -sorted.sign : 1;
    sorted.column = i;
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
for (const kind of ["pointerover", "focusin"]) {
  list.addEventListener(kind, (event) => mark(sampleOf(event.target)));
}
for (const kind of ["pointerleave", "focusout"]) {
  list.addEventListener(kind, () => mark(-1));
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
  if (!dot) { return; }
  pinned = +dot.dataset.i;
  find("#search").value = "";
  find("#only").checked = false;
  first = listed().indexOf(pinned);
  drawList();
});

// ---- Another number of clusters

const followers = all("[data-follow]").map((place) => ({
  place, name: place.dataset.follow, own: [...place.childNodes] }));

function show(index) {
  now = index;
  const k = view().k;
  for (const { place, name, own } of followers) {
    const other = find(`template[data-part="${name}"][data-k="${k}"]`);
    place.replaceChildren(...(other ? [other.content.cloneNode(true)] : own));
  }
  const slider = find("#number");
  if (slider) {
    slider.value = index;
    slider.setAttribute("aria-valuetext", `${k} clusters`);
    find("#told").textContent = k;
    find("#back").disabled = index === data.chosen;
  }
  drawHeatmap();
  drawSignatures();
  drawItems();
  drawTracking();
  drawMaps();
  drawList();
}

find("#number")?.addEventListener("input", (event) => show(+event.target.value));
find("#back")?.addEventListener("click", () => { show(data.chosen); find("#number").focus(); });
all("#fig-tracking .track").forEach((row, i) => row.addEventListener("click", () => show(i)));
paintChoice.addEventListener("input", drawMaps);

// ---- What is under the pointer

const tip = document.getElementById("tip");
function told(sample) {
  const shown = view();
  const paint = data.columns.find((column) => column.name === paints[paintChoice.value].name);
  return `${data.names[sample]}\ncluster ${shown.cluster[sample]}, confidence `
    + fixed(shown.sure[sample])
    + (shown.k > 1 ? `\nsecond choice ${shown.second[sample]}` : "")
    + (paint ? `\n${paint.name}: ${paint.cells[sample] || "missing"}` : "");
}
function point(event) {
  const target = event.target;
  const marked = target.closest(".samples circle, .items rect, [data-tip]");
  tip.hidden = !marked;
  if (target.closest("#fig-map, #fig-pca, #fig-items")) { mark(sampleOf(target)); }
  if (!marked) { return; }
  tip.textContent = marked.dataset.tip ?? told(+marked.dataset.i);
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
  samples: () => sampleColumns(listed()),
  signatures: () => [["cluster", "feature", "effect", "mean inside", "mean outside"],
    ...all("#signature-list [data-follow] .chip").map((chip) => [
      chip.closest("tr").cells[0].textContent.trim().split(/\s/)[0],
      find("i", chip).textContent, find("b", chip).textContent,
      chip.dataset.inside, chip.dataset.outside])],
  cdf: () => [["consensus", ...data.cdf.k.map((k) => `K = ${k}`)],
    ...data.cdf.levels.map((level, i) => [level, ...data.cdf.shares.map((row) => row[i])])],
  tracking: () => [["sample", ...data.views.map((each) => `K = ${each.k}`)],
    ...Array.from(data.tracked, (i) => [data.names[i],
      ...data.views.map((each) => each.cluster[i])])],
  map: () => [["sample", "cluster", "confidence", "x", "y",
    ...(data.axes ?? []), ...data.columns.map((column) => column.name)],
  ...data.names.map((name, i) => [name, view().cluster[i], digits(view().sure[i]),
    ...maps.flatMap(({ places }) => places[i]), ...data.columns.map((c) => c.cells[i])])],
  heatmap: () => {
    const order = orderOf(view());
    const name = (i) => data.names[data.heat.rows[i]];
    return [["sample", "cluster", ...order.map(name)], ...order.map((a) => [name(a),
      view().cluster[data.heat.rows[a]],
      ...order.map((b) => digits(heat.level(a, b) / 255 * data.heat.full))])];
  },
  items: () => [["sample", "cluster", "consensus", "consensus with the best rival"],
    ...itemOrder().map((i) => [data.names[i], view().cluster[i], digits(view().own[i]),
      digits(view().rival[i])])],
  band: () => {
    const order = orderOf(view());
    return [["feature", ...order.map((i) => data.names[data.heat.rows[i]])],
      ...view().features.map((feature) => [signature.names[feature],
        ...order.map((i) => digits((signature.levels[feature * order.length + i] / 127 - 1)
          * signature.farthest))])];
  },
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-csv]");
  if (!button) { return; }
  const name = button.dataset.csv;
  const text = tables[name]().map((row) => row.map(plain).join(",")).join("\n") + "\n";
  const link = element("a", { download: `${name}-k${view().k}.csv`,
    href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

// ---- Where the reader is

const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((each) => each.isIntersecting)) {
    links.forEach((link, id) => link.classList.toggle("here", id === entry.target.id));
  }
}, { rootMargin: "0px 0px -70% 0px" });
links.forEach((_, id) => seen.observe(document.getElementById(id)));

document.documentElement.classList.add("live");
show(now);
