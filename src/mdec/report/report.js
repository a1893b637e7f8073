// Without this script the page has its words and tables, for the number of clusters of the run.
// The script draws all figures, links them with the list and saves tables.

const packed = document.getElementById("data");
const data = JSON.parse(packed.textContent);
packed.remove();
function unpack(content) {
  const [kind, text] = Object.entries(content)[0];
  const type = { u8: Uint8Array, u16: Uint16Array, f32: Float32Array }[kind];
  return new type(decode(text).buffer);
}

function unpackSolution(each) {
  for (const name of ["cluster", "second", "halves", "joins"]) {
    if (each[name]) { each[name] = unpack(each[name]); }
  }
  each.sure = Float64Array.from(unpack(each.sure), (value) => value / 65535);
  each.dots.effects = unpack(each.dots.effects);
  each.dots.shares = unpack(each.dots.shares);
  return each;
}
data.solutions.forEach(unpackSolution);
const stored = data.solutions.length;
const ofRun = () => data.solutions.slice(0, stored);
for (const name of ["position", "finest", "tracked", "bars"]) {
  data[name] = unpack(data[name]);
}
const count = data.names.length;
const rounds = data.finest.length / count;
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
const solution = () => derive(data.solutions[now]);
// Names and colours that a reader gave to clusters.
let given = {};
const colour = (cluster) => given[cluster]?.colour ?? data.palette[cluster % data.palette.length];
const alias = (cluster) => given[cluster]?.name ?? "";
const called = (cluster) => (alias(cluster) ? `${cluster} ${alias(cluster)}` : String(cluster));

// What follows from the clusters and those of the halves, found when it is first shown: the
// clusters and samples in the order of the dendrogram, and the share of the halves that put a
// sample together with its cluster and with its second choice.
function derive(each) {
  if (each.own) { return each; }
  const members = Map.groupBy(range(count), (i) => each.cluster[i]);
  const place = (own) => own.reduce((sum, i) => sum + data.position[i], 0) / own.length;
  const places = new Map([...members].map(([cluster, own]) => [cluster, place(own)]));
  each.order = [...members.keys()].sort((a, b) => places.get(a) - places.get(b));
  each.heat = each.order.flatMap((cluster) => members.get(cluster)
    .sort((a, b) => data.position[a] - data.position[b]));
  each.halves ??= data.finest.map((finer, i) =>
    each.joins[Math.floor(i / count) * (each.joins.length / rounds) + finer]);
  const own = new Float64Array(count);
  const other = new Float64Array(count);
  const width = Math.max(...each.halves) + 1;
  const row = new Map(each.order.map((cluster, i) => [cluster, i * width]));
  for (let half = 0; half < each.halves.length; half += count) {
    const met = new Float64Array(each.order.length * width);
    for (let i = 0; i < count; i += 1) { met[row.get(each.cluster[i]) + each.halves[half + i]] += 1; }
    for (let i = 0; i < count; i += 1) {
      own[i] += met[row.get(each.cluster[i]) + each.halves[half + i]];
      other[i] += met[row.get(each.second[i]) + each.halves[half + i]] || 0;
    }
  }
  const size = (cluster) => members.get(cluster)?.length ?? 1;
  const mean = (sum, i) => (each.k === 1 || size(each.cluster[i]) === 1 ? 1
    : (sum / rounds - 1) / (size(each.cluster[i]) - 1));
  each.own = own.map(mean);
  each.other = other.map((sum, i) => (each.k === 1 ? 0 : sum / rounds / size(each.second[i])));
  each.items = [...data.bars].sort((a, b) => each.cluster[a] - each.cluster[b]
    || each.own[b] - each.own[a] || a - b);
  return each;
}

// ---- Small drawing helpers

function svg(name, attributes, words = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) { node.setAttribute(key, value); }
  node.textContent = words;
  return node;
}

function swatch(shade) {
  const node = element("span", { class: "swatch" });
  node.style.background = shade;
  return node;
}

const channels = (shade) => [1, 3, 5].map((place) => parseInt(shade.slice(place, place + 2), 16));
const pixel = (red, green, blue) => (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;

// Known classes are no clusters, and have none of their colours (after Tol).
const CLASSES = ["#332288", "#88ccee", "#117733", "#ddcc77", "#cc6677", "#882255",
  "#44aa99", "#999933", "#aa4499", "#ee8866", "#bbcc33", "#ffaabb"];
const MISSING = "#8d97a3";

// Numbers, from the lowest to the highest.
const RAMP = ["#5b2a86", "#3f6fb0", "#2a9d8f", "#8cc152", "#e0b000"];

function blend(colours, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const i = Math.min(Math.floor(place), colours.length - 2);
  const above = channels(colours[i + 1]);
  return channels(colours[i]).map((low, j) => Math.round(low + (place - i) * (above[j] - low)));
}
const hex = (levels) => "#" + levels.map((level) => level.toString(16).padStart(2, "0")).join("");
const ramp = (share) => hex(blend(RAMP, share));

// From no consensus to full consensus, and from the lowest values to the highest.
const levels = (n, colours) => Uint32Array.from(range(n), (i) => pixel(...blend(colours, i / (n - 1))));
const SHADES = levels(256, ["#f7f9fc", "#08306b"]);
const CONTRAST = ["#2166ac", "#f7f7f7", "#b2182b"];
const CONTRASTS = levels(255, CONTRAST);

// Draw the values of pixels, row by row.
function drawPixels(canvas, width, height, values) {
  Object.assign(canvas, { width, height });
  const content = new ImageData(new Uint8ClampedArray(values.buffer), width, height);
  canvas.getContext("2d").putImageData(content, 0, 0);
}

function fillSmall(image, width, height, values) {
  const canvas = element("canvas");
  drawPixels(canvas, width, height, values);
  image.setAttribute("href", canvas.toDataURL());
}
const fillStrip = (image, samples, shade) => fillSmall(image, samples.length, 1,
  Uint32Array.from(samples, (i) => pixel(...channels(shade(i)))));

// Browsers hold on to every picture that has an address, of megabytes each. What changes with
// K is drawn behind the figure, where its picture stays as an empty place for the pointer.
const behind = new Map();

function fill(image, width, height, values) {
  const figure = image.ownerSVGElement;
  if (!behind.has(image)) {
    const canvas = element("canvas", { class: image.getAttribute("class"), "aria-hidden": true });
    const both = element("div", { class: "drawn" });
    figure.replaceWith(both);
    both.append(canvas, figure);
    image.removeAttribute("href");
    behind.set(image, canvas);
  }
  const canvas = behind.get(image);
  drawPixels(canvas, width, height, values);
  const whole = figure.viewBox.baseVal;
  const share = (name, side) => `${100 * image[name].baseVal.value / whole[side]}%`;
  Object.assign(canvas.style, { left: share("x", "width"), top: share("y", "height"),
    width: share("width", "width"), height: share("height", "height") });
}

// ---- The consensus of the pairs, cluster by cluster in the order of the dendrogram

const heatmap = find("#fig-heatmap svg");
const matrix = find(".matrix", heatmap);
const consensusOf = ({ halves }, a, b) => range(rounds).filter((half) =>
  halves[half * count + a] === halves[half * count + b]).length / rounds;

// Points of a side of the heatmap, at most. One is the mean over a block of pairs.
const POINTS = 700;
fillSmall(find(".scale", heatmap), 1, 256, SHADES.toReversed());

function drawHeatmap() {
  const { heat, halves } = solution();
  const own = range(rounds).map((half) => Uint16Array.from(heat, (i) => halves[half * count + i]));
  const step = Math.ceil(count / POINTS);
  const side = Math.ceil(count / step);
  const wide = (block) => Math.min(step, count - block * step);
  const values = new Uint32Array(side * side);
  const together = new Uint32Array(count);
  for (let row = 0; row < side; row += 1) {
    together.fill(0);
    for (let y = row * step; y < row * step + wide(row); y += 1) {
      for (const half of own) {
        for (let x = 0; x < (row + 1) * step; x += 1) { together[x] += half[x] === half[y]; }
      }
    }
    for (let column = 0; column <= row; column += 1) {
      let sum = 0;
      for (let i = 0; i < wide(column); i += 1) { sum += together[column * step + i]; }
      const level = Math.round(255 * sum / (rounds * wide(row) * wide(column)));
      values[row * side + column] = SHADES[level];
      values[column * side + row] = SHADES[level];
    }
  }
  fill(matrix, side, side, values);
  for (const strip of all("svg > .strip")) {
    fillStrip(strip, heat, (i) => colour(solution().cluster[i]));
  }
  all(".beside", heatmap).forEach((strip, i) => fillStrip(strip, heat, paints[2 + i].of));
  // Other clusters than cuts of the dendrogram do not lie in its order.
  find(".tree", heatmap).setAttribute("visibility",
    heat.every((i, place) => data.position[i] === place) ? "visible" : "hidden");
  drawBlocks();
}

function drawBlocks() {
  const order = Array.from(solution().heat, (i) => solution().cluster[i]);
  const step = 440 / count;
  find(".blocks", heatmap).replaceChildren(...solution().order.flatMap((cluster) => {
    const corner = order.indexOf(cluster) * step;
    const size = order.filter((each) => each === cluster).length * step;
    const block = svg("rect", { class: "block", x: 6 + corner, y: +heatmap.dataset.top + corner,
      width: size, height: size });
    return size <= 11 ? [block] : [block, svg("text", { class: "small", "text-anchor": "middle",
      x: 6 + corner + size / 2, y: 75 }, String(cluster))];
  }));
}

// ---- Signature features over the same samples

const band = data.signature && unpack(data.signature.levels);
const scoreOf = (feature, i) => (band[feature * count + i] / 127 - 1) * data.signature.farthest;

function drawSignatures() {
  if (!band) { return; }
  const figure = find("#fig-signatures svg");
  const { top, row } = figure.dataset;
  const { heat, features } = solution();
  find("#fig-signatures").hidden = !features.length;
  figure.setAttribute("viewBox", `0 0 960 ${+top + row * features.length + 6}`);
  const values = find(".values", figure);
  values.setAttribute("height", row * features.length);
  if (features.length) {
    fill(values, count, features.length, Uint32Array.from({ length: count * features.length },
      (_, at) => CONTRASTS[band[features[Math.floor(at / count)] * count + heat[at % count]]]));
  }
  find(".names", figure).replaceChildren(...features.map((feature, i) => svg("text",
    { x: 144, y: +top + row * i + 11.5, "data-tip": data.signature.names[feature] },
    shorten(data.signature.names[feature]))));
}
const shorten = (name) => (name.length <= 20 ? name : name.slice(0, 19) + "…");

// ---- Charts: two scales in a frame, with ticks

// Round numbers that cover a range.
function ticks(low, high, about = 5) {
  const span = (high - low) || 1;
  const power = 10 ** Math.floor(Math.log10(span / about));
  const step = power * [1, 2, 5, 10].find((factor) => span / (factor * power) <= about + 0.5);
  const first = Math.ceil(low / step - 1e-9);
  return range(Math.floor(high / step + 1e-9) - first + 1)
    .map((i) => Number(((first + i) * step).toPrecision(10)));
}

const scale = ([low, high], from, to) => (value) =>
  from + (value - low) / ((high - low) || 1) * (to - from);
const middle = { "text-anchor": "middle" };

// `x` and `y` are the names of the axes and their ranges; a tick is a value with its words.
function chart(id, x, y, { marks = ticks(...x[1]).map((at) => [at, at]), about = 5, right = 12 } = {}) {
  const figure = find(`#fig-${id} svg`);
  const { width, height } = figure.viewBox.baseVal;
  const [left, top, end, bottom] = [54, 12, width - right, height - 40];
  const across = scale(x[1], left, end);
  const up = scale(y[1], bottom, top);
  const side = (top + bottom) / 2;
  figure.replaceChildren(
    ...ticks(...y[1], about).flatMap((at) => [
      svg("line", { class: "grid", x1: left, x2: end, y1: up(at), y2: up(at) }),
      svg("text", { x: left - 6, y: up(at) + 4, "text-anchor": "end" }, at)]),
    ...marks.map(([at, words]) => svg("text", { ...middle, x: across(at), y: bottom + 16 }, words)),
    svg("text", { ...middle, class: "name", x: (left + end) / 2, y: height - 6 }, x[0]),
    svg("text", { ...middle, class: "name", x: 12, y: side, transform: `rotate(-90 12 ${side})` },
      y[0]));
  return {
    figure, end,
    bar: (from, to, value, attributes) => figure.append(svg("rect", { x: across(from),
      width: across(to) - across(from), y: up(value), height: bottom - up(value), ...attributes })),
    line: (places, attributes) => figure.append(svg("polyline", { ...attributes,
      points: places.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join(" ") })),
    dot: (a, b, attributes) => figure.append(svg("circle", { cx: across(a), cy: up(b), ...attributes })),
  };
}

const short = (value) => String(Number(value.toPrecision(4)));

function drawHistogram(id, names, edges, heights, tip, low = -Infinity) {
  const whole = edges.at(-1) - edges[0];
  const { bar } = chart(id, [names[0], [edges[0], edges.at(-1)]],
    [names[1], [0, 1.08 * Math.max(...heights)]], { about: 4 });
  heights.forEach((height, i) => {
    if (height) {
      bar(edges[i] + 0.0015 * whole, edges[i + 1] - 0.0015 * whole, height, {
        class: edges[i + 1] <= low + 1e-9 ? "low" : "bar",
        "data-tip": `${short(edges[i])} to ${short(edges[i + 1])}: ${tip(height)}` });
    }
  });
}

function drawConfidence() {
  const { histogram } = solution();
  drawHistogram("histogram", ["confidence", "samples"],
    range(histogram.length + 1).map((i) => i / histogram.length), histogram,
    (height) => `${height} samples`, data.below);
}

function drawClusters() {
  const rows = solution().clusters.filter((row) => row.consensus !== null);
  const every = Math.max(1, Math.floor(rows.length / 12));
  const marks = rows.map((row, i) => [i, row.cluster]).filter(([i]) => i % every === 0);
  const { bar } = chart("cluster-consensus", ["cluster", [-0.6, rows.length - 0.4]],
    ["cluster consensus", [0, 1]], { marks });
  rows.forEach(({ cluster, consensus, size }, i) => bar(i - 0.35, i + 0.35, consensus, {
    fill: colour(cluster),
    "data-tip": `cluster ${called(cluster)}: ${fixed(consensus)}, ${size} samples` }));
}

function drawItems() {
  const { items, own, other, cluster } = solution();
  const { bar, line } = chart("items", ["samples, by cluster and falling consensus",
    [0, items.length]], ["item consensus", [0, 1]], { marks: [], about: 4 });
  const width = Math.max(0.92, 0.6 * items.length / 894);
  items.forEach((i, at) => bar(at, at + width, own[i],
    { class: "item", "data-i": i, fill: colour(cluster[i]) }));
  line(items.map((i, at) => [at + 0.5, other[i]]), { class: "other" });
}

function drawCdf() {
  const { figure, end, line } = chart("cdf", ["consensus of a pair", [0, 1]],
    ["share of pairs", [0, 1]], { right: 74 });
  figure.append(svg("text", { class: "name", x: end + 12, y: 20 }, "K"));
  data.criteria.forEach(({ n_clusters: k }, i) => {
    const hue = `hsl(${Math.round(250 - 210 * i / Math.max(data.criteria.length - 1, 1))} 65% 48%)`;
    const bold = k === data.suggested;
    const [x, y] = [end + 26 + 30 * Math.floor(i / 14), 38 + 16 * (i % 14)];
    line(data.cdf.levels.map((level, j) => [level, data.cdf.shares[i][j]]),
      { stroke: hue, "stroke-width": bold ? 3.5 : 1.4, "data-tip": `K = ${k}` });
    figure.append(svg("rect", { x: x - 14, y: y - 8, width: 10, height: 8, fill: hue }),
      svg("text", { class: "small", x, y, "font-weight": bold ? "bold" : "normal" }, k));
  });
}

function drawCriterion(name, words) {
  const rows = data.criteria.map((row) => [row.n_clusters, row[name]]);
  const values = rows.map(([, value]) => value).filter((value) => value !== undefined);
  const low = Math.min(0, ...values);
  const high = 1.08 * Math.max(0.01, ...values);
  const marks = rows.filter((_, i) => i % Math.max(1, Math.floor(rows.length / 10)) === 0)
    .map(([k]) => [k, k]);
  const { line, dot } = chart(name, ["number of clusters K", [rows[0][0] - 0.3, rows.at(-1)[0] + 0.3]],
    [words, [low - 0.04 * (high - low), high]], { marks, about: 4 });
  const there = rows.filter(([, value]) => value !== undefined);
  line(there, { class: "line" });
  for (const [k, value] of there) {
    const bold = k === data.suggested;
    dot(k, value, { r: bold ? 6 : 3.5, class: bold ? "dot chosen" : "dot",
      "data-tip": `K = ${k}: ${value.toFixed(3)}` });
  }
}

// Features that mark the clusters, by the share of samples with high values and the effect.
function drawDots() {
  const figure = find("#fig-dots svg");
  if (!figure) { return; }
  const { names, clusters, effects, shares } = solution().dots;
  find("#fig-dots").hidden = !names.length;
  if (!names.length) { return; }
  const step = Math.min(60, 580 / clusters.length);
  const dots = svg("g", { class: "contrast" });
  dots.append(...Array.from(effects, (effect, at) => svg("circle", {
    cx: 190 + step * (at % clusters.length), cy: 33 + 18 * Math.floor(at / clusters.length),
    r: 1 + 6.6 * shares[at] / 255, fill: hex(blend(CONTRAST, effect / 254)) })));
  figure.setAttribute("viewBox", `0 0 960 ${40 + 18 * names.length}`);
  figure.replaceChildren(...clusters.map((cluster, i) =>
    svg("text", { ...middle, class: "small", x: 190 + step * i, y: 12 }, cluster)),
  ...names.map((name, i) => svg("text", { class: "names", "text-anchor": "end", x: 166,
    y: 37 + 18 * i, "data-tip": name }, shorten(name))), dots);
}

// What stays as K changes.
function drawFixed() {
  drawCdf();
  for (const [name, words] of [["score", "score"], ["eigengap", "eigengap"],
    ["silhouette", "silhouette on 1 - A"], ["agreement", "split-half agreement (ARI)"],
    ["pac", "PAC (low is clear)"]]) {
    drawCriterion(name, words);
  }
  for (const [name, { edges, shares }] of Object.entries(data.histograms)) {
    drawHistogram(name, ["value", "share"], edges, shares,
      (share) => `${(100 * share).toFixed(2)}% of the values`);
  }
}

// ---- Rows of the tracking

function drawTracks() {
  all("#fig-tracking .track").forEach((track, i) => fillStrip(track, data.tracked,
    (sample) => colour(data.solutions[i].cluster[sample])));
}

function drawTracking() {
  const { top, row } = find("#fig-tracking svg").dataset;
  const current = find("#fig-tracking .current");
  current.setAttribute("visibility", now < stored ? "visible" : "hidden");
  current.setAttribute("y", +top + row * now - 1);
}

// ---- The maps

const maps = all("#fig-map svg, #fig-pca svg").map((figure, number) => {
  const tenths = unpack(data.maps[number]);
  const places = range(count).map((i) => [tenths[2 * i] / 10, tenths[2 * i + 1] / 10]);
  const dots = places.map(([cx, cy], i) => svg("circle", { cx, cy, r: data.radius, "data-i": i }));
  find(".samples", figure).append(...dots);
  const ring = svg("circle", { class: "ring", r: data.radius + 4, visibility: "hidden" });
  const rope = svg("polygon", { class: "rope", visibility: "hidden" });
  figure.append(ring, rope);
  return { figure, dots, ring, rope, places };
});
let selected = null;

function paintNumbers(name, number) {
  const there = range(count).map(number).filter(Number.isFinite);
  const low = Math.min(...there);
  const high = Math.max(...there);
  return { name, low, high, number, of: (i) => (Number.isFinite(number(i))
    ? ramp((number(i) - low) / ((high - low) || 1)) : MISSING) };
}

// A number alone would read as that of a cluster.
const levelWords = (column) => (level) => (/^\d+$/.test(level) ? `${column.name} ${level}` : level);

const paints = [
  { name: "cluster", classes: () => [...solution().order].sort((a, b) => a - b),
    of: (i) => colour(solution().cluster[i]), legend: colour, words: called },
  { name: "confidence", low: 0, high: 1, of: (i) => ramp(solution().sure[i]) },
  ...data.columns.filter((column) => column.kind !== "words").map((column) => {
    if (column.kind === "numbers") { return paintNumbers(column.name, (i) => column.numbers[i]); }
    const there = column.levels.filter((each) => each !== "");
    const shade = (level) => (level === "" ? MISSING
      : CLASSES[there.indexOf(level) % CLASSES.length]);
    return { name: column.name, classes: () => column.levels, legend: shade,
      of: (i) => shade(column.cells[i]), words: levelWords(column) };
  }),
];
const featurePaints = (data.signature?.names ?? []).map((name, feature) => paintNumbers(
  `${name} (standardised)`, (i) => scoreOf(feature, i)));

const paintChoice = find("#paint");
const offer = (paint) => element("option", { value: paints.indexOf(paint) }, paint.name);
paintChoice.append(...paints.map(offer));
paints.push(...featurePaints);
if (featurePaints.length) {
  paintChoice.append(element("optgroup", { label: "features" }, ...featurePaints.map(offer)));
}

function drawMaps() {
  const paint = paints[paintChoice.value];
  const plain = paint !== paints[0];
  for (const { dots } of maps) {
    dots.forEach((dot, i) => {
      dot.style.color = paint.of(i);
      dot.classList.toggle("unsure", solution().sure[i] < data.below);
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
    bar.style.background = `linear-gradient(to right, ${RAMP.join(", ")})`;
    legend.replaceChildren(element("span", { class: "scale" }, short(paint.low), bar,
      short(paint.high)));
  }
  if (solution().sure.some((sure) => sure < data.below)) {
    legend.append(element("span", { class: "rings" }, element("i", {}), "ambiguous"));
  }
}

// The number of each cluster above its middle sample.
function drawMiddles() {
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  for (const { figure, places } of maps) {
    find(".middles", figure).replaceChildren(...solution().order.map((cluster) => {
      const own = places.filter((_, i) => solution().cluster[i] === cluster);
      const centre = [0, 1].map((axis) => median(own.map((place) => place[axis])));
      const away = ([x, y]) => Math.abs(x - centre[0]) + Math.abs(y - centre[1]);
      const [x, y] = own.reduce((best, place) => (away(place) < away(best) ? place : best));
      return svg("text", { class: "halo", "text-anchor": "middle", x,
        y: y - data.radius - 3 }, alias(cluster) || String(cluster));
    }));
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
  const { parts } = solution();
  for (const { place, name, own } of followers) {
    if (parts) { place.innerHTML = parts[name] ?? ""; } else { place.replaceChildren(...own); }
  }
  const slider = find("#number");
  if (slider) {
    slider.value = index;
    slider.setAttribute("aria-valuetext", `${k} clusters`);
    find("#shown").textContent = k;
    find("#back").disabled = index === data.chosen;
  }
  nameClusters();
  for (const each of all(".several")) { each.hidden = k === 1; }
  for (const each of all(".single")) { each.hidden = k > 1; }
  drawHeatmap();
  drawSignatures();
  drawDots();
  drawClusters();
  drawConfidence();
  drawItems();
  drawTracking();
  drawMiddles();
  drawMaps();
  drawList();
}

function nameClusters() {
  for (const place of all(".swatch[data-cluster]")) {
    place.style.background = colour(+place.dataset.cluster);
  }
  for (const place of all(".alias")) {
    const name = alias(+place.dataset.cluster);
    place.textContent = name && " " + name;
  }
}

find("#number")?.addEventListener("input", (event) => show(+event.target.value));
find("#back")?.addEventListener("click", () => { show(data.chosen); find("#number").focus(); });
for (const button of all("[data-show]")) {
  button.addEventListener("click", () => heard.cut(button.dataset.show));
}
all("#fig-tracking .track").forEach((row, i) => row.addEventListener("click", () => show(i)));
paintChoice.addEventListener("input", drawMaps);

// ---- What is under the pointer

const tip = document.getElementById("tip");
function describe(sample) {
  const shown = paints[paintChoice.value];
  const paint = data.columns.find((column) => column.name === shown.name)
    ?? (shown.number && { name: shown.name,
      cells: { [sample]: short(shown.number(sample)) } });
  return `${data.names[sample]}\ncluster ${called(solution().cluster[sample])}, confidence `
    + fixed(solution().sure[sample])
    + (solution().k > 1 ? `\nsecond choice ${solution().second[sample]}` : "")
    + (paint ? `\n${paint.name}: ${paint.cells[sample] || "missing"}` : "");
}
// The values of a picture under the pointer: two samples, or a sample and a row.
function describePlace(image, event) {
  const box = image.getBoundingClientRect();
  const { heat, features } = solution();
  const across = heat[Math.floor((event.clientX - box.left) / box.width * count)];
  const down = (event.clientY - box.top) / box.height;
  if (across === undefined || down < 0 || down >= 1) { return ""; }
  const words = (i) => `${data.names[i]} (cluster ${called(solution().cluster[i])})`;
  if (image === matrix) {
    const other = heat[Math.floor(down * count)];
    return `${words(other)}\n${words(across)}\nconsensus `
      + fixed(consensusOf(solution(), across, other));
  }
  if (image.matches(".values")) {
    const feature = features[Math.floor(down * features.length)];
    return `${words(across)}\n${data.signature.names[feature]}: ${fixed(scoreOf(feature, across))}`
      + " standard deviations from the mean";
  }
  const column = image.matches(".beside")
    && data.columns.filter((each) => each.kind !== "words")[all(".beside").indexOf(image)];
  return words(across) + (column ? `\n${column.name}: ${column.cells[across] || "missing"}` : "");
}

const describeChip = ({ inside, outside, high }) =>
  `mean ${inside} in the cluster, ${outside} outside\nhigh in ${high} of the samples`;

function point(event) {
  const target = event.target;
  const marked = target.closest("svg .block, svg .matrix, svg > .strip, .beside, .values, "
    + ".samples circle, .item, .chip, [data-tip]");
  tip.hidden = !marked;
  if (target.closest("#fig-map, #fig-pca, #fig-items")) { mark(sampleOf(target)); }
  if (!marked) { return; }
  const image = marked.matches(".block") ? matrix : marked.matches("image") && marked;
  tip.textContent = image ? describePlace(image, event)
    : marked.matches(".chip") ? describeChip(marked.dataset)
      : marked.dataset.tip ?? describe(+marked.dataset.i);
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
  functions: () => cells("#functions"),
  features: () => cells("#feature-table [data-follow]"),
  known: () => cells("#known-table [data-follow]"),
  samples: () => sampleColumns(listSamples()),
  signatures: () => [["cluster", "feature", "effect", "mean inside", "mean outside"],
    ...all("#signature-list [data-follow] .chip").map((chip) => [
      chip.closest("tr").cells[0].textContent.trim().split(/\s/)[0],
      find("i", chip).textContent, find("b", chip).textContent,
      chip.dataset.inside, chip.dataset.outside])],
  cdf: () => [["consensus", ...data.criteria.map((row) => `K = ${row.n_clusters}`)],
    ...data.cdf.levels.map((level, i) => [level, ...data.cdf.shares.map((row) => row[i])])],
  tracking: () => [["sample", ...ofRun().map((each) => `K = ${each.k}`)],
    ...Array.from(data.tracked, (i) => [data.names[i], ...ofRun().map((each) => each.cluster[i])])],
  map: () => [["sample", "cluster", "confidence", "x", "y",
    ...(data.axes ?? []), ...data.columns.map((column) => column.name)],
  ...data.names.map((name, i) => [name, solution().cluster[i], digits(solution().sure[i]),
    ...maps.flatMap(({ places }) => places[i]), ...data.columns.map((c) => c.cells[i])])],
  heatmap: () => {
    const { heat, cluster } = solution();
    return [["sample", "cluster", ...heat.map((i) => data.names[i])],
      ...heat.map((a) => [data.names[a], cluster[a],
        ...heat.map((b) => digits(consensusOf(solution(), a, b)))])];
  },
  items: () => [["sample", "cluster", "consensus", "consensus with the best other cluster"],
    ...solution().items.map((i) => [data.names[i], solution().cluster[i], digits(solution().own[i]),
      digits(solution().other[i])])],
  band: () => [["feature", ...solution().heat.map((i) => data.names[i])],
    ...solution().features.map((feature) => [data.signature.names[feature],
      ...solution().heat.map((i) => digits(scoreOf(feature, i)))])],
};

function save(name, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(content) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-csv]")?.dataset.csv;
  if (!name) { return; }
  const text = tables[name]().map((row) => row.map(plain).join(",")).join("\n") + "\n";
  save(`${name}-k${solution().k}.csv`, new Blob([text], { type: "text/csv" }));
});

// ---- Figures to save, with the style that they have on the page

const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray",
  "stroke-linecap", "opacity", "font", "paint-order", "visibility", "image-rendering", "filter"];

function copyFigure(figure) {
  const copy = figure.cloneNode(true);
  const { width, height } = figure.viewBox.baseVal;
  const sources = [figure, ...figure.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(sources[i]);
    const words = DRAWN.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";");
    node.setAttribute("style", words);
    const drawn = behind.get(sources[i]);
    if (drawn) { node.setAttribute("href", drawn.toDataURL()); }
  });
  const paper = getComputedStyle(figure.closest("figure")).backgroundColor;
  copy.prepend(svg("rect", { width, height, style: `fill:${paper}` }));
  for (const [name, value] of Object.entries({ width, height, xmlns: "http://www.w3.org/2000/svg" })) {
    copy.setAttribute(name, value);
  }
  return new XMLSerializer().serializeToString(copy);
}

async function saveFigure(figure, ending) {
  const name = `${figure.closest("figure").id.slice(4)}-k${solution().k}.${ending}`;
  const text = copyFigure(figure);
  if (ending === "svg") { save(name, new Blob([text], { type: "image/svg+xml" })); return; }
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = element("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((content) => save(name, content), "image/png");
}

for (const caption of all("figure > figcaption")) {
  const name = caption.parentNode.getAttribute("id").slice(4);
  caption.prepend(...["png", "svg"].map((ending) => {
    const button = element("button", { type: "button", class: "save", "data-figure": ending,
      "aria-label": `Download the figure ${name} as ${ending.toUpperCase()}` }, ending.toUpperCase());
    button.addEventListener("click", () => saveFigure(find("svg", caption.parentNode), ending));
    return button;
  }));
}

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

const heard = {
  // After those of the run comes the last that was sent; the app has the others.
  solution: (content) => {
    const features = data.signature
      ? content.dots.names.map((name) => data.signature.names.indexOf(name)).filter((i) => i >= 0) : [];
    data.solutions[stored] = unpackSolution({ ...content, features });
    show(stored);
    requestAnimationFrame(() => setTimeout(() => tell({ painted: true })));
  },
  cut: (k) => {
    const index = ofRun().findIndex((each) => each.k === +k);
    if (index >= 0) { show(index); }
  },
  clusters: (names) => {
    given = names;
    drawTracks();
    show(now);
  },
  feature: ({ name, values }) => {
    const numbers = unpack(values);
    const paint = paintNumbers(name, (i) => numbers[i]);
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
drawFixed();
drawTracks();
show(now);
tell({ ready: data.names, cuts: data.solutions.map((each) => each.k) });
