"use strict";
// Answers what the page of mdec app asks from a recording (answers.js), where there is no
// server. The page, its script and its style are those of the app.
{
  // A request as text, as live_demo.py writes it: keys in order, no spaces.
  const sorted = (value) => (value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]))
    : value);
  const REFUSED = "This copy shows recorded answers only, and none to this question; run "
    + "mdec app on your machine.";

  window.fetch = async (address, { body }) => {
    const act = address.split("/").at(-1);
    if (act === "prepare") { return Response.json(null); }
    if (act === "jobs") { return Response.json([]); }
    const found = window.answers[`${act} ${JSON.stringify(sorted(JSON.parse(body)))}`];
    return found === undefined ? Response.json({ error: REFUSED }, { status: 400 })
      : Response.json(found);
  };
  XMLHttpRequest.prototype.send = function refuse() {
    Object.defineProperty(this, "responseText", { value: JSON.stringify({ error: REFUSED }) });
    this.dispatchEvent(new ProgressEvent("loadend"));
  };

  // The server's addresses of a result, as files beside this page.
  const beside = (address) => address.slice(1).replace(/\/report$/, "/report.html");
  const report = document.querySelector("#report");
  Object.defineProperty(report, "src", {
    set: (address) => report.setAttribute("src", beside(address)),
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='/results/']");
    if (link) { link.href = beside(link.getAttribute("href")); }
  }, true);
  if (!location.hash) { location.hash = "explore/mdec-demo"; }
}
