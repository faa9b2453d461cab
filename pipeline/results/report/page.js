"use strict";
// Search and choice of the lists; light and dark for the pictures, whose canvas no style sheet reaches.
(() => {
  const search = document.getElementById("search");
  const lists = [...document.querySelectorAll("[data-by]")];
  const data = search ? JSON.parse(document.getElementById("labels").textContent) : null;
  const lower = data ? data.labels.map((label) => label.toLowerCase()) : [];
  const MOST_TOLD = 5;

  // Members of every row, as positions among the labels; they come as differences.
  for (const rows of data ? Object.values(data.lists) : []) {
    for (const members of rows) for (let k = 1; k < members.length; k += 1) members[k] += members[k - 1];
  }

  function show() {
    const by = document.querySelector("input[name=by]:checked").value;
    const words = search.value.trim().toLowerCase();
    const isHit = lower.map((label) => words !== "" && label.includes(words));
    let hits = 0, rows = 0;
    for (const list of lists) {
      list.hidden = list.dataset.by !== by;
      for (const [k, row] of list.querySelectorAll("tbody tr").entries()) {
        const found = data.lists[list.dataset.by][k].filter((label) => isHit[label]);
        mark(row, words, found);
        row.hidden = words !== "" && found.length === 0;
        if (!list.hidden) { rows += 1; hits += found.length ? 1 : 0; }
      }
    }
    document.getElementById("hits").textContent = words === "" ? "" : verdict(hits, rows);
  }

  // Outline what is shown, unfold what is folded, and name what is not in the lists.
  function mark(row, words, found) {
    const shown = new Set();
    for (const label of row.querySelectorAll(".members span")) {
      const hit = words !== "" && label.textContent.toLowerCase().includes(words);
      label.classList.toggle("hit", hit);
      if (hit) shown.add(label.textContent);
    }
    for (const more of row.querySelectorAll("details")) more.open = more.querySelector(".hit") !== null;
    const others = found.map((label) => data.labels[label]).filter((label) => !shown.has(label));
    const place = row.querySelector(".found");
    place.replaceChildren();
    place.hidden = others.length === 0;
    if (others.length === 0) return;
    place.append("also with");
    for (const label of others.slice(0, MOST_TOLD)) {
      place.append(" ", Object.assign(document.createElement("b"), { textContent: label }));
    }
    if (others.length > MOST_TOLD) place.append(` and ${(others.length - MOST_TOLD).toLocaleString("en-US")} more that fit`);
  }

  function verdict(hits, rows) {
    const where = data.most === null ? "" : `; of each, the first ${data.most.toLocaleString("en-US")} members of a side were looked at`;
    return `${search.value.trim()}: ${hits} of ${rows} bicliques on this page${where}`;
  }

  if (search) {
    search.addEventListener("input", show);
    for (const choice of document.querySelectorAll("input[name=by]")) choice.addEventListener("change", show);
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function paint() {
    const ink = dark.matches ? "#e6e9ed" : "#1b1f24", line = dark.matches ? "#343b44" : "#d9dee4";
    const sheet = dark.matches ? "#1d2127" : "#f6f7f9";
    for (const view of Bokeh.documents.flatMap((page) => [...page._all_models.values()])) {
      const wanted = {
        axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink, major_tick_line_color: ink,
        minor_tick_line_color: ink, grid_line_color: line, outline_line_color: line, label_text_color: ink,
        title_text_color: ink,
      };
      if (view.type === "Legend") Object.assign(wanted, { background_fill_color: sheet, border_line_color: line });
      if (view.type === "ColorBar") Object.assign(wanted, { background_fill_color: sheet, bar_line_color: line });
      const known = Object.keys(wanted).filter((name) => name in view.properties && view[name] !== null);
      if (known.length) view.setv(Object.fromEntries(known.map((name) => [name, wanted[name]])));
    }
  }

  window.addEventListener("load", () => {
    const ready = () => (Bokeh.documents.length && Bokeh.documents.every((page) => page.is_idle) ? paint() : setTimeout(ready, 20));
    if (window.Bokeh) { ready(); dark.addEventListener("change", paint); }
  });
})();
