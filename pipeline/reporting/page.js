"use strict";
// Search and choice of the lists; light and dark for the pictures, whose canvas no style sheet reaches.
(() => {
  const search = document.getElementById("search");
  const lists = [...document.querySelectorAll("[data-by]")];

  function show() {
    const by = document.querySelector("input[name=by]:checked").value;
    const words = search.value.trim().toLowerCase();
    let hits = 0, rows = 0;
    for (const list of lists) {
      list.hidden = list.dataset.by !== by;
      for (const row of list.querySelectorAll("tbody tr")) {
        let found = words === "";
        for (const label of row.querySelectorAll(".members span")) {
          const hit = words !== "" && label.textContent.toLowerCase().includes(words);
          label.classList.toggle("hit", hit);
          found ||= hit;
        }
        for (const more of row.querySelectorAll("details")) more.open = more.querySelector(".hit") !== null;
        row.hidden = !found;
        if (!list.hidden) { rows += 1; hits += found ? 1 : 0; }
      }
    }
    document.getElementById("hits").textContent = words === "" ? "" : `${hits} of ${rows}`;
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
