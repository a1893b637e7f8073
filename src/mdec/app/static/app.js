// The page asks the server for everything that it shows, and keeps only what a person has
// set: the file, the roles of its columns and the options of the run.

function complain(words) {
  find("#notice span").textContent = words;
  find("#notice").hidden = !words;
}
find("#notice button").addEventListener("click", () => complain(""));

async function ask(act, content = {}) {
  let answer;
  try {
    answer = await fetch("/api/" + act, { method: "POST", body: JSON.stringify(content),
      headers: { "content-type": "application/json" } });
  } catch {
    throw new Error("mdec app does not answer; is it still running in its terminal?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) { throw new Error(found.error ?? `refused (${answer.status})`); }
  return found;
}

// Work that may fail says so in one sentence.
const doing = (work) => async (...given) => {
  try { return await work(...given); } catch (error) { complain(error.message); return null; }
};

function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) { return `${whole} s`; }
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s`
    : `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

// ---- Which part of the page is shown

const views = ["table", "runs", "explore"];
const place = () => location.hash.slice(1).split("/").map(decodeURIComponent);

function follow() {
  const [view = "table", name] = place();
  const shown = views.includes(view) ? view : "table";
  views.forEach((each) => { find("#" + each).hidden = each !== shown; });
  all("header nav a").forEach((link) => (link.dataset.view === shown
    ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
  document.title = { table: "Table", runs: "Runs", explore: name ?? "Explore" }[shown] + " – mdec";
  if (shown === "explore") { openResult(name); }
  if (shown === "table" && name && name !== state.file) { openTable(name); }
}
window.addEventListener("hashchange", follow);
const go = (...parts) => { location.hash = parts.map(encodeURIComponent).join("/"); };

// ---- Tables and results of the folder

let known = { tables: [], results: [] };

const refresh = doing(async () => {
  known = await ask("start");
  find("#root").textContent = known.root;
  find("#tables").replaceChildren(...known.tables.map((name) => element("option", { value: name })));
  const rows = known.results.map((each) => element("li", {},
    each.stopped ? element("b", {}, each.name)
      : element("a", { href: "#explore/" + encodeURIComponent(each.name) }, each.name),
    element("span", { class: "soft" }, each.stopped ? "stopped; run it again to go on"
      : `${each.n_samples} samples, K = ${each.n_clusters}`)));
  find("#past").replaceChildren(...(rows.length
    ? [element("h3", {}, "Results in this folder"), element("ul", {}, ...rows)] : []));
  const results = known.results.filter((each) => !each.stopped);
  find("#result").replaceChildren(...results.map((each) =>
    element("option", { value: each.name }, each.name)));
  find("#no-result").hidden = results.length > 0;
  return known;
});

// ---- A table: how it is read, and what people say of it

const state = { file: "", roles: {}, options: {}, out: "" };
const ROLES = { feature: "feature", category: "category", class: "class", id: "name",
  annotation: "colour only", ignore: "ignore" };
const NO_LINES = "# Several tables are clustered by mdec.MultiViewMDEC.";
let latest = 0;

// Roles are the options that the command has.
function options() {
  const found = { ...state.options };
  const lists = { annotation: "annotate", ignore: "drop", category: "category_columns" };
  for (const [name, role] of Object.entries(state.roles)) {
    if (role === "class") { found.label_column = name; }
    if (role === "id") { found.id_column = name; }
    if (role === "feature") { found.features = ["*"]; }
    if (lists[role]) { (found[lists[role]] ??= []).push(name); }
  }
  return found;
}

const openTable = doing(async (file) => {
  Object.assign(state, { file, roles: {}, options: {}, out: "" });
  for (const field of all("[data-option]")) {
    if (field.type === "checkbox") { field.checked = false; } else { field.value = ""; }
  }
  find("#path").value = file;
  find("#find").value = "";
  if (place()[1] !== file) { history.replaceState(null, "", "#table/" + encodeURIComponent(file)); }
  await look();
  find("#h-reading").focus();
});

const look = doing(async () => {
  const mine = ++latest;
  find("#reading").setAttribute("aria-busy", "true");
  const found = await ask("look", { file: state.file, out: state.out, options: options(),
    find: find("#find").value });
  if (mine !== latest) { return; }
  state.out = found.out;
  find("#out").value = found.out;
  drawReading(found);
  find("#reading").removeAttribute("aria-busy");
});

function drawReading(found) {
  find("#table").classList.add("opened");
  find("#reading").hidden = false;
  const { preview } = found;
  find("#h-reading").textContent = found.file + (found.shape ? `: ${found.shape}` : "");
  find("#doubt").hidden = !found.error;
  find("#doubt p").textContent = found.error ?? "";
  const cure = Object.keys(found.cure).length > 0;
  find("#cure").hidden = !cure;
  find("#cure").textContent = cure ? "Do that: " + Object.entries(found.cure)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${[value].flat().join(", ")}`)
    .join("; ") : "";
  find("#cure").onclick = () => {
    for (const [name, value] of Object.entries(found.cure)) { say(name, value); }
    look();
  };
  find("#plan").replaceChildren(...found.lines.map((line) => element("li", {}, line)));
  find("#views").replaceChildren(...(state.options.view ?? []).map((name) => {
    const button = element("button", { type: "button", "aria-label": `Leave out ${name}` }, "×");
    button.addEventListener("click", () => setViews((views) => views.filter((each) => each !== name)));
    return element("li", {}, name, button);
  }));
  find("#run").disabled = Boolean(found.error);
  find("#command").textContent = found.command;
  find("#python").textContent = found.python ?? (found.error ? "" : NO_LINES);
  const sheets = find("#sheet select");
  sheets.replaceChildren(element("option", { value: "" }, "look"),
    ...found.parts.map((name) => element("option", {}, name)));
  sheets.value = state.options.variable ?? "";
  find("#sheet").hidden = found.parts.length < 2;
  if (preview) { drawCells(preview); }
}

// Further tables of the same samples.
function setViews(change) {
  state.options.view = change(state.options.view ?? []);
  look();
}
const addView = (file) => { if (file) { setViews((views) => [...new Set([...views, file])]); } };
find("#add-view").addEventListener("click", () => {
  addView(find("#view").value.trim());
  find("#view").value = "";
});

// What cures a doubt becomes a role where it names columns.
function say(name, value) {
  const roles = { label_column: "class", id_column: "id", drop: "ignore",
    category_columns: "category" };
  if (roles[name]) { [value].flat().forEach((each) => { state.roles[each] = roles[name]; }); return; }
  state.options[name] = value;
  const field = find(`[data-option="${name}"]`);
  if (field?.type === "checkbox") { field.checked = value; } else if (field) { field.value = value; }
}

function drawCells({ n_rows: rows, n_columns: width, columns, samples }) {
  find("#shape").textContent = `${rows} rows, ${width} columns`
    + (columns.length < width ? `; ${columns.length} shown` : "");
  const turned = find('[data-option="transpose"]').checked;
  const heads = columns.map((column) => {
    const menu = element("select", { "aria-label": `Role of ${column.name}` },
      ...Object.entries(ROLES).map(([value, words]) => element("option", { value }, words)));
    menu.value = column.role;
    menu.addEventListener("change", () => {
      for (const [name, role] of Object.entries(state.roles)) {
        // There is one column of names and one of classes.
        if (role === menu.value && ["class", "id"].includes(role)) { delete state.roles[name]; }
      }
      state.roles[column.name] = column.words && menu.value === "feature" ? "category" : menu.value;
      look();
    });
    return element("th", { scope: "col", title: column.name, class: `role-${column.role}`
      + (column.doubt ? " doubt" : "") }, column.name, ...(turned ? [] : [menu]));
  });
  if (samples.length) { heads.unshift(element("th", { scope: "col" }, "name")); }
  find("#cells thead").replaceChildren(element("tr", {}, ...heads));
  const n = Math.max(...columns.map((column) => column.cells.length), 0);
  find("#cells tbody").replaceChildren(...Array.from({ length: n }, (_, i) => element("tr", {},
    ...(samples.length ? [element("th", { scope: "row" }, samples[i])] : []),
    ...columns.map((column) => element("td", { class: (column.words ? "" : "number ")
      + `role-${column.role}` }, column.cells[i])))));
  find("#cells .doubt")?.scrollIntoView({ block: "nearest", inline: "center" });
}

for (const field of all("[data-option]")) {
  field.addEventListener("change", () => {
    let value = field.type === "checkbox" ? field.checked : field.value.trim();
    if (field.dataset.kind === "number" && value) { value = Number(value); }
    if (field.dataset.kind === "switch" && value) { value = value === "true"; }
    if (value === "" || (field.type === "checkbox" && !value)) {
      delete state.options[field.dataset.option];
    } else {
      state.options[field.dataset.option] = value;
    }
    look();
  });
}
find("#find").addEventListener("change", () => look());
find("#out").addEventListener("change", (event) => { state.out = event.target.value.trim(); look(); });
find("#by-path").addEventListener("submit", (event) => {
  event.preventDefault();
  openTable(find("#path").value.trim());
});
find("#settings").addEventListener("submit", doing(async (event) => {
  event.preventDefault();
  find("#run").disabled = true;
  try {
    await ask("run", { file: state.file, out: state.out, options: options() });
    state.out = "";
    go("runs");
  } finally {
    find("#run").disabled = false;
  }
}));
for (const button of all("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(find("#" + button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// ---- Files that arrive

function send(file) {
  return new Promise((resolve, reject) => {
    const bar = find("#arriving");
    const request = new XMLHttpRequest();
    bar.hidden = false;
    request.upload.addEventListener("progress", (event) => { bar.value = event.loaded / event.total; });
    request.addEventListener("loadend", () => {
      bar.hidden = true;
      let found = {};
      try { found = JSON.parse(request.responseText); } catch { /* it broke off */ }
      if (request.status === 200) { resolve(found.file); return; }
      reject(new Error(found.error ?? "The upload was interrupted, and nothing was kept; try again."));
    });
    request.open("POST", "/upload?name=" + encodeURIComponent(file.name));
    request.send(file);
  });
}

const receive = doing(async (file, use) => {
  if (!file) { return; }
  if (file.size > known.max_bytes) {
    throw new Error(`${file.name} is larger than the limit; give its path, or start mdec app with `
      + "a larger --max-gb.");
  }
  use(await send(file));
});
// What becomes of a file, by the field that chooses it.
const uses = { file: (name) => openTable(name), "view-file": addView, "new-file": (name) => {
  find("#new-path").value = name;
  placeNew(name);
} };
for (const [field, use] of Object.entries(uses)) {
  find("#" + field).addEventListener("change", (event) => {
    receive(event.target.files[0], use);
    event.target.value = "";
  });
}
const drop = find("#drop");
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) {
      go("table");
      receive(event.dataTransfer.files[0], openTable);
    }
  });
}

// ---- Runs

const ended = new Map();
const begun = new Map();

// From what was done since the step was first seen.
function timeLeft(job) {
  const seen = begun.get(job.number);
  if (seen?.step !== job.step || job.done < seen.done) {
    begun.set(job.number, { step: job.step, done: job.done, time: Date.now() });
    return "";
  }
  if (!job.total || job.done <= seen.done) { return ""; }
  const rate = (Date.now() - seen.time) / (job.done - seen.done);
  return `, about ${duration(rate * (job.total - job.done) / 1000)} left`;
}

function drawJobs(jobs) {
  const open = jobs.filter((job) => ["waiting", "running", "stopping"].includes(job.state));
  find("#n-open").hidden = !open.length;
  find("#n-open").textContent = open.length;
  find("#no-runs").hidden = jobs.length > 0;
  const list = find("#jobs");
  // The last one stands first, also where several come at once.
  for (const job of jobs.toReversed()) {
    let item = find(`[data-job="${job.number}"]`, list);
    if (!item) {
      const bar = element("progress", { "aria-label": `Progress of run ${job.number}` });
      item = element("li", { "data-job": job.number }, element("h2", {}, job.folder),
        element("code", {}, "mdec " + job.words.join(" ")),
        element("div", { class: "line" }, bar, element("span", { class: "step" }),
          element("button", { type: "button", class: "act" }),
          element("a", { class: "open", href: "#explore/" + encodeURIComponent(job.folder) },
            "Explore the result")));
      list.prepend(item);
    }
    const running = ["running", "stopping"].includes(job.state);
    const bar = find("progress", item);
    bar.hidden = !running;
    if (job.total) { bar.max = job.total; bar.value = job.done; } else { bar.removeAttribute("value"); }
    const words = {
      waiting: job.ahead ? `waits for ${job.ahead} other run${job.ahead > 1 ? "s" : ""}` : "waits",
      running: job.step + (job.total ? `: ${job.done} of ${job.total}` : "")
        + timeLeft(job),
      stopping: "stopping, what is finished is kept",
      done: "done", stopped: job.message, failed: job.message }[job.state];
    const step = find(".step", item);
    if (step.textContent !== words) { step.textContent = words; }
    step.classList.toggle("failed", job.state === "failed");
    const act = find(".act", item);
    const again = ["stopped", "failed"].includes(job.state);
    act.hidden = job.state === "done" || job.state === "stopping";
    act.textContent = again ? "Resume" : "Cancel";
    act.onclick = doing(() => ask(again ? "resume" : "stop", { number: job.number }));
    find(".open", item).hidden = job.state !== "done";
    if (ended.get(job.number) !== "done" && job.state === "done") {
      const watched = ended.has(job.number) && place()[0] === "runs";
      refresh().then(() => { if (watched) { go("explore", job.folder); } });
    }
    ended.set(job.number, job.state);
  }
}

// That the server has ended is said where something is asked of it.
let latestJobs = "";
async function watch() {
  const jobs = await ask("jobs").catch(() => null);
  if (jobs && JSON.stringify(jobs) !== latestJobs) {
    latestJobs = JSON.stringify(jobs);
    drawJobs(jobs);
  }
  setTimeout(watch, 400);
}
watch();

// ---- A result: the report, and what the server finds for it

const shown = { name: "", ready: false, cuts: [], about: null, prepared: false };
const frame = find("#report");
const tell = (words) => frame.contentWindow.postMessage({ mdec: words }, "*");
// What was told is seen before more work begins; a hidden page paints nothing.
const painted = () => new Promise((done) => {
  shown.painted = done;
  setTimeout(done, 1000);
});
const explore = (act, content = {}) => ask(act, { ...content, result: shown.name });

const openResult = doing(async (name) => {
  const wanted = name || find("#result").value;
  find(".split").hidden = !wanted;
  if (!wanted || wanted === shown.name) { return; }
  Object.assign(shown, { name: wanted, ready: false, about: null });
  find("#result").value = wanted;
  busy("opening");
  frame.src = `/results/${encodeURIComponent(wanted)}/report`;
  const about = await explore("describe");
  if (shown.name !== wanted) { return; }
  shown.about = { ...about, found: new Set() };
  find("#k").max = about.most;
  find("#k").value = about.n_clusters;
  find("#k-shown").textContent = about.n_clusters;
  find("#consensus").replaceChildren(...about.choices.map((each) => element("option", {}, each)));
  find("#consensus").value = about.consensus;
  find("#feature").disabled = !about.features.length;
  find("#feature").value = "";
  suggest();
  find("#place").disabled = !about.model;
  drawFiles(about.files);
  drawNames(Array.from({ length: about.n_clusters }, (_, i) => i));
  busy("");
  meet();
});
const busy = (words) => { find("#busy").textContent = words; };

// Both the report and what the server says of it have arrived.
function meet() {
  if (!shown.ready || !shown.about) { return; }
  const { samples, clusters } = shown.about;
  if (samples.length && samples.join("\n") !== shown.ready.join("\n")) {
    complain("The report shows samples that the result does not have; run it again.");
  }
  tell({ clusters });
  prepare(shown.about.n_clusters, shown.about.consensus);
}

// One request at a time: of a slider that moves on, the last place counts.
let solving = false;
const wanted = () => ({ k: Number(find("#k").value), consensus: find("#consensus").value });
const solve = doing(async () => {
  find("#k-shown").textContent = wanted().k;
  // The report has cuts of its dendrogram: they are shown until the clusters come.
  if (wanted().consensus === "hierarchical") { tell({ cut: wanted().k }); }
  if (solving) { return; }
  solving = true;
  busy("clustering");
  let solution;
  try {
    let given;
    do {
      given = JSON.stringify(wanted());
      // Those of the samples of the report come first where all take seconds.
      const there = wanted().consensus === "hierarchical" && shown.cuts.includes(wanted().k);
      if (shown.about.drawn && !there) {
        tell({ solution: await explore("recluster", { ...wanted(), quick: true }) });
        await painted();
      }
      solution = given === JSON.stringify(wanted()) && await explore("recluster", wanted());
    } while (given !== JSON.stringify(wanted()));
    tell({ solution });
    drawNames(solution.clusters.map(({ cluster }) => cluster));
  } finally {
    solving = false;
    busy("");
  }
  prepare(solution.k, solution.consensus);
});

// What may be asked for next is found while the reader looks, the nearest numbers first: of
// many samples the clusters of those of the report alone, which are painted at once.
const prepare = doing(async (k, consensus) => {
  const { name, about } = shown;
  shown.prepared = false;
  const nearest = range(about.most).map((i) => i + 1)
    .sort((a, b) => Math.abs(a - k) - Math.abs(b - k));
  for (const number of nearest) {
    for (const how of about.choices) {
      const idle = wanted().k === k && wanted().consensus === consensus && shown.name === name;
      if (solving || !idle) { return; }
      if (about.found.has(`${number} ${how}`)) { continue; }
      // What is refused is said when it is asked for.
      await explore("prepare", { k: number, consensus: how, quick: about.drawn }).catch(() => null);
      about.found.add(`${number} ${how}`);
    }
  }
  shown.prepared = true;
});
find("#k").addEventListener("input", solve);
find("#consensus").addEventListener("change", solve);
find("#result").addEventListener("change", (event) => go("explore", event.target.value));

window.addEventListener("message", (event) => {
  // The report has no rights and no origin: what it says is data.
  if (event.source !== frame.contentWindow || !event.data?.mdec) { return; }
  const { ready, cuts, selection, painted: seen } = event.data.mdec;
  if (seen) { shown.painted?.(); }
  if (Array.isArray(ready)) {
    Object.assign(shown, { ready: ready.map(String), cuts: [cuts ?? []].flat() });
    meet();
  }
  if (Array.isArray(selection)) { compare(selection.map(Number)); }
});

const compare = doing(async (samples) => {
  const names = samples.map((i) => shown.ready[i]);
  find("#chosen").replaceChildren(element("p", { class: "soft" }, samples.length
    ? `${samples.length} samples: ${names.slice(0, 4).join(", ")}${names.length > 4 ? ", ..." : ""}`
    : "Draw a line around samples on the map of the report, or choose a cluster."));
  find("#compared").replaceChildren();
  if (!samples.length) { find("#choose").value = ""; return; }
  const rows = await explore("compare", { samples });
  const short = (value) => numberCell(String(Number(value.toPrecision(2))));
  find("#compared").replaceChildren(element("p", { class: "soft" },
    "Against the other samples, in standard deviations. Description, not proof."),
  drawTable(["feature", "effect", "inside", "rest"], rows.map((row) => [
    element("td", { title: row.name }, row.name),
    element("td", { class: "number " + (row.effect > 0 ? "up" : "down") },
      (row.effect > 0 ? "+" : "") + row.effect.toFixed(1)),
    short(row.inside), short(row.outside)])));
});
const numberCell = (words) => element("td", { class: "number" }, String(words));

// ---- Features, names, new samples, files

function suggest() {
  const words = find("#feature").value.toLowerCase();
  const names = shown.about.features.filter((name) => name.toLowerCase().includes(words));
  find("#features").replaceChildren(...names.slice(0, 40).map((name) =>
    element("option", { value: name })));
}
find("#feature").addEventListener("input", suggest);
find("#feature").addEventListener("change", doing(async (event) => {
  if (event.target.value) { tell({ feature: await explore("feature", { name: event.target.value }) }); }
}));

const colourOf = (cluster) => shown.about.palette[cluster % shown.about.palette.length];

function drawNames(order) {
  const kept = shown.about?.clusters ?? {};
  const numbers = [...order].sort((a, b) => a - b);
  find("#names").replaceChildren(...numbers.map((cluster) => element("div", { "data-cluster": cluster },
    element("input", { type: "color", "aria-label": `Colour of cluster ${cluster}`,
      value: kept[cluster]?.colour ?? colourOf(cluster) }),
    element("span", {}, String(cluster)),
    element("input", { "aria-label": `Name of cluster ${cluster}`, maxlength: 60,
      value: kept[cluster]?.name ?? "", placeholder: "name" }))),
  element("p", { class: "soft" }, "Saved in the folder of the result."));
  find("#choose").replaceChildren(element("option", { value: "" }, "a cluster"),
    ...numbers.map((cluster) => element("option", { value: cluster }, `cluster ${cluster}`)));
  nameChoices();
}
function nameChoices() {
  for (const option of all("#choose option").slice(1)) {
    const name = shown.about?.clusters[option.value]?.name ?? "";
    option.textContent = `cluster ${option.value} ${name}`;
  }
}
find("#names").addEventListener("submit", (event) => event.preventDefault());
// Names go to the server one after the other, and are seen before they come back.
let naming = Promise.resolve();
find("#names").addEventListener("change", () => {
  const { about, name: result } = shown;
  const clusters = { ...about.clusters };
  for (const row of all("#names [data-cluster]")) {
    const cluster = Number(row.dataset.cluster);
    const [colour, name] = all("input", row).map((field) => field.value);
    const own = colour !== colourOf(cluster);
    clusters[cluster] = { name, ...(own ? { colour } : {}) };
  }
  const name = (given) => {
    about.clusters = given;
    if (shown.about !== about) { return; }
    tell({ clusters: given });
    nameChoices();
  };
  name(clusters);
  naming = naming.then(doing(async () => {
    const kept = await ask("rename", { clusters, result });
    if (about.clusters === clusters) { name(kept); }
  }));
});
find("#choose").addEventListener("change", (event) => {
  tell({ choose: event.target.value === "" ? null : Number(event.target.value) });
});

function drawFiles(names) {
  const base = `/results/${encodeURIComponent(shown.name)}/`;
  find("#files").replaceChildren(element("li", {}, element("a",
    { href: base + "everything.zip" }, "everything, as one .zip")),
  ...names.map((name) => element("li", {}, element("a", { download: name,
    href: base + encodeURIComponent(name) }, name))));
}

const placeNew = doing(async (file) => {
  find("#placed").replaceChildren(element("p", { class: "soft" }, "placing ..."));
  try {
    const found = await explore("predict", { file });
    const rows = found.clusters.map((row) => [row.cluster, row.size, fixed(row.confidence),
      row.unlike_training].map(numberCell));
    find("#placed").replaceChildren(
      drawTable(["cluster", "samples", "confidence", "unlike"], rows),
    ...found.notes.map((note) => element("p", { class: "soft" }, note + ".")),
    element("p", {}, element("a", { download: found.out,
      href: `/results/${encodeURIComponent(shown.name)}/${encodeURIComponent(found.out)}` },
    found.out)));
    drawFiles([...new Set([...shown.about.files, found.out])].sort());
  } catch (error) {
    find("#placed").replaceChildren();
    throw error;
  }
});
find("#place").addEventListener("click", () => placeNew(find("#new-path").value.trim()));
refresh().then((found) => {
  if (!location.hash && found?.start) {
    const result = found.results.some((each) => each.name === found.start);
    go(result ? "explore" : "table", found.start);
  }
  follow();
});
