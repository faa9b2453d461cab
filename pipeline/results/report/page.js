"use strict";
// Search and choice of the lists. Their labels come compressed; a list is unfolded when somebody wants to see it.
(async () => {
  const search = document.getElementById("search");
  if (!search) return;
  if (!("DecompressionStream" in window)) {
    document.getElementById("hits").textContent = "The search, the choice, and lists that unfold need a newer browser.";
    return;
  }
  const data = await unpacked(document.getElementById("labels").textContent);
  const lists = [...document.querySelectorAll("[data-by]")];
  const lower = Object.fromEntries(Object.entries(data.labels).map(([side, own]) => [side, own.map((x) => x.toLowerCase())]));
  const SIDES = Object.keys(lower), MOST_TOLD = 5;

  // Members of every row, as positions among the labels of their side; they come as differences.
  for (const rows of Object.values(data.lists)) {
    for (const row of rows) {
      for (const members of Object.values(row)) for (let k = 1; k < members.length; k += 1) members[k] += members[k - 1];
    }
  }

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function show() {
    const by = document.querySelector("input[name=by]:checked").value;
    const words = search.value.trim().toLowerCase();
    const isHit = {};
    for (const side of SIDES) isHit[side] = lower[side].map((label) => words !== "" && label.includes(words));
    let hits = 0, rows = 0;
    for (const list of lists) {
      list.hidden = list.dataset.by !== by;
      for (const [k, row] of list.querySelectorAll("tbody tr").entries()) {
        const members = data.lists[list.dataset.by][k];
        const found = SIDES.flatMap((side) => members[side].filter((at) => isHit[side][at]).map((at) => data.labels[side][at]));
        mark(row, words, found);
        row.hidden = words !== "" && found.length === 0;
        if (!list.hidden) { rows += 1; hits += found.length ? 1 : 0; }
      }
    }
    document.getElementById("hits").textContent = words === "" ? "" : verdict(hits, rows);
  }

  function unfold(more) {
    if (more.childElementCount > 1) return;
    const list = more.closest("[data-by]"), side = more.dataset.side;
    const k = [...list.querySelectorAll("tbody tr")].indexOf(more.closest("tr"));
    const members = data.lists[list.dataset.by][k][side], shown = members.slice(data.shown, data.unfolded);
    for (const at of shown) more.append(Object.assign(document.createElement("b"), { textContent: data.labels[side][at] }), " ");
    const missing = Number(more.dataset.more) - shown.length;
    if (missing > 0) {
      more.append(Object.assign(document.createElement("em"), { textContent: `and ${told(missing)} that are not on this page` }));
    }
  }

  // Outline what is shown, unfold what is folded, and name what is not in the lists.
  function mark(row, words, found) {
    const shown = new Set();
    for (const more of found.length ? row.querySelectorAll("details") : []) unfold(more);
    for (const label of row.querySelectorAll(".members b")) {
      const hit = words !== "" && label.textContent.toLowerCase().includes(words);
      label.classList.toggle("hit", hit);
      if (hit) shown.add(label.textContent);
    }
    for (const more of row.querySelectorAll("details")) more.open = more.querySelector(".hit") !== null;
    const others = [...new Set(found)].filter((label) => !shown.has(label));
    const place = row.querySelector(".found");
    place.replaceChildren();
    place.hidden = others.length === 0;
    if (others.length === 0) return;
    place.append("also with");
    for (const label of others.slice(0, MOST_TOLD)) {
      place.append(" ", Object.assign(document.createElement("b"), { textContent: label }));
    }
    if (others.length > MOST_TOLD) place.append(` and ${told(others.length - MOST_TOLD)} more that fit`);
  }

  function verdict(hits, rows) {
    const where = data.most === null ? "" : `; of each, the first ${told(data.most)} members of a side were looked at`;
    return `${search.value.trim()}: ${hits} of ${rows} bicliques on this page${where}`;
  }

  function told(number) {
    return number.toLocaleString("en-US");
  }

  search.disabled = false;
  search.addEventListener("input", show);
  for (const choice of document.querySelectorAll("input[name=by]")) choice.addEventListener("change", show);
  for (const more of document.querySelectorAll(".top details")) more.addEventListener("toggle", () => more.open && unfold(more));
  if (search.value || !document.querySelector("input[name=by]").checked) show();  // what a browser kept of the last visit
})();
