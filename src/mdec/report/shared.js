"use strict";
// What the scripts of the report and of the app both begin with.

const find = (words, inside = document) => inside.querySelector(words);
const all = (words, inside = document) => [...inside.querySelectorAll(words)];
const range = (n) => Array.from({ length: n }, (_, i) => i);
const decode = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
const fixed = (value) => value.toFixed(2);

function element(name, attributes = {}, ...inside) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) { node.setAttribute(key, value); }
  node.append(...inside);
  return node;
}

// A table with a name above each column; a row is a list of cells.
function drawTable(names, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...names.map((name) =>
      element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row))));
}
