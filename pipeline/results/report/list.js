// The list of the largest bicliques: search, order, pages, and what is chosen in the pictures.
const SIDES = ["left", "right"], MOST_TOLD = 5, MOST_OF_AN_ID = 20;
const WHICH = { surprise: "most surprising", edges: "largest", balance: "most balanced", all: "bicliques on this page" };
const at = (id) => document.getElementById(id);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(stream).text());
  for (const side of SIDES) {
    data.labels[side] = wholeLabels(data.labels[side]);
    data.members[side] = wholeRows(data.members[side]);
  }
  data.lists.all = data.ids.map((_, k) => k);
  data.common = new Map();
  return data;
}

// Labels, of which packing.py says how many letters each has in common with the one before.
function wholeLabels(labels) {
  let before = "";
  return labels.map((label) => (before = before.slice(0, label.charCodeAt(0) - 48) + label.slice(1)));
}

// Members of every row, as positions among the labels of their side: see packing.py.
function wholeRows(rows) {
  const found = [];
  for (const [above, ...steps] of rows) {
    let position = 0;
    const own = steps.map((step) => (position += step));
    found.push(above < 0 ? own : inOne(found[above], own));
  }
  return found;
}

// The numbers that are in one of two ascending lists, and not in both.
function inOne(one, other) {
  const found = [];
  for (let i = 0, j = 0; i < one.length || j < other.length;) {
    if (j === other.length || one[i] < other[j]) found.push(one[i++]);
    else if (i === one.length || other[j] < one[i]) found.push(other[j++]);
    else { i += 1; j += 1; }
  }
  return found;
}

function startList(data) {
  const lower = Object.fromEntries(SIDES.map((side) => [side, data.labels[side].map((label) => label.toLowerCase())]));
  const search = at("search"), table = at("list"), body = table.querySelector("tbody"), paper = matchMedia("print");
  let place = placeOf(location.hash), jump = location.hash.includes("=");

  function go(changes, replace = false) {
    place = { ...place, page: "1", ...changes };
    history[replace ? "replaceState" : "pushState"](null, "", hashOf(place));
    show();
  }

  // The rows of the list, what is left of them, and what the chosen label or the search found in each.
  function chosen() {
    const by = Object.hasOwn(data.lists, place.by) ? place.by : Object.keys(data.lists)[0];
    const listed = data.lists[by].map((row, k) => ({ row, number: data.numbers[by]?.[k] ?? k + 1, repeats: data.repeats[by][k], found: {} }));
    const largest = by === "all" ? listed : listed.filter(({ number }) => number <= data.largest);
    const among = by === "all" || place.repeats ? largest.length : data.looked[by];
    const numbers = new Map(listed.map(({ row, number }) => [row, number]));
    const ids = idsOf(place.ids);
    const base = ids ? listed.filter(({ row }) => ids.includes(data.ids[row])) : place.repeats ? largest : listed.filter(({ repeats }) => repeats < 0);
    const sizes = cellOf(place.cell), member = labelOf(place.label), wanted = place.find.trim().toLowerCase();
    let rows = base;
    if (sizes) rows = rows.filter(({ row }) => SIDES.every((side) => sizes[side][0] <= data.n[side][row] && data.n[side][row] <= sizes[side][1]));
    if (member) {
      const position = data.labels[member.side].indexOf(member.text);
      rows = rows.filter((each) => has(each, member.side, (k) => k === position));
    }
    if (wanted) {
      const isHit = Object.fromEntries(SIDES.map((side) => [side, lower[side].map((label) => label.includes(wanted))]));
      rows = rows.filter((each) => SIDES.map((side) => has(each, side, (k) => isHit[side][k])).some(Boolean));
    }
    const missing = ids?.filter((id) => !base.some(({ row }) => data.ids[row] === id));
    return { by, among, base, rows: sorted(rows), numbers, wanted, ids, missing };
  }

  function has(each, side, isHit) {
    const found = data.members[side][each.row].filter(isHit);
    each.found[side] = new Set([...(each.found[side] ?? []), ...found]);
    return found.length > 0;
  }

  function sorted(rows) {
    const key = place.sort.replace("-", ""), sign = place.sort.startsWith("-") ? -1 : 1;
    const value = { left: (row) => data.n.left[row], right: (row) => data.n.right[row], edges: (row) => data.n.left[row] * data.n.right[row] }[key];
    return value ? [...rows].sort((a, b) => sign * (value(a.row) - value(b.row)) || a.number - b.number) : rows;
  }

  function show() {
    const view = chosen(), { rows } = view;
    const pages = Math.max(Math.ceil(rows.length / data.page), 1);
    const page = Math.min(Math.max(Math.trunc(Number(place.page)) || 1, 1), pages);
    const first = paper.matches ? 0 : (page - 1) * data.page;
    const shown = rows.slice(first, paper.matches ? rows.length : first + data.page);
    body.replaceChildren(...shown.map((each) => rowOf(each, view)));
    if (search.value !== place.find) search.value = place.find;
    for (const choice of document.querySelectorAll("input[name=by]")) choice.checked = choice.value === view.by;
    at("distinct").checked = !place.repeats;
    for (const button of table.querySelectorAll("th button")) {
      const order = { [button.dataset.sort]: "ascending", [`-${button.dataset.sort}`]: "descending" }[place.sort];
      button.closest("th").setAttribute("aria-sort", order ?? "none");
    }
    at("told").textContent = verdict(view) + amongParticipants(view.wanted);
    at("filters").replaceChildren(...filters(view));
    at("pager").hidden = pages === 1 || paper.matches;
    at("range").textContent = `${told(first + 1)} to ${told(first + shown.length)} of ${told(rows.length)}`;
    at("back").disabled = page === 1;
    at("on").disabled = page === pages;
    Object.assign(at("pager").dataset, { page, pages });
    for (const [name, text] of Object.entries(questionOf(data, place))) at(name).textContent = text;
    showOverlap(rows);
    if (jump) {
      at("top").scrollIntoView();
      at("told").focus({ preventScroll: true });
    }
    jump = false;
  }

  function showOverlap(rows) {
    const few = rows.length < 2, { plot, words } = few ? { words: "Fewer than two are listed, so there is nothing to compare." } : matrixOf(data, rows);
    at("matrix").replaceChildren(...(few ? [] : [plot]));
    if (plot) ready(plot);
    at("compared").textContent = rows.length > MOST_COMPARED ? `${words} The matrix has the first ${MOST_COMPARED} of the ${told(rows.length)} in the list.` : words;
  }

  // The roles are named, because on a phone the style sheet makes blocks of the table.
  function cell(more, ...children) {
    return made("td", { ...more, role: "cell" }, ...children);
  }

  function rowOf(each, view) {
    const { row, number, repeats, found } = each, n = [data.n.left[row], data.n.right[row]];
    const cells = [...n, n[0] * n[1]].map((value) => cell({ className: "n" }, told(value)));
    const link = made("a", { href: hashOf({ ...ALL, ids: data.ids[row] }), title: "a link to this one" }, told(number));
    const file = made("button", { type: "button", title: `number ${number} as CSV` }, "CSV");
    file.addEventListener("click", () => save(`biclique-${data.ids[row]}.csv`, linesOf(data, [each])));
    const members = cell({}, ...data.sides.map((side) => membersOf(row, side, data.n[side][row], found[side] ?? new Set())));
    if (repeats >= 0) {
      const other = view.numbers.get(repeats);
      const share = shareOf(data, row, repeats);
      members.append(made("div", { className: "repeats" }, `${share === null ? "most" : `${share} %`} of its ${data.edges} are in number ${other}`));
    }
    const tools = cell({ className: "tools" }, file);
    return made("tr", { role: "row" }, cell({ className: "n" }, link), ...cells, members, tools);
  }

  function membersOf(row, side, n, found) {
    const members = data.members[side][row], first = members.slice(0, data.shown[side]);
    const list = made("div", { className: `members ${side}${side === data.sides[0] ? " main" : ""}`, role: "group" });
    list.setAttribute("aria-label", `${told(n)} ${data.names[side]}`);
    list.append(...chips(first, side, found));
    if (list.firstElementChild) list.firstElementChild.tabIndex = 0;
    if (n > first.length) {
      const more = made("details", {}, made("summary", {}, `${told(n - first.length)} more`));
      const folded = members.slice(data.shown[side], data.unfolded);
      more.addEventListener("toggle", () => {
        if (!more.open || more.childElementCount > 1) return;
        more.append(...chips(folded, side, found));
        const missing = n - first.length - folded.length;
        if (missing > 0) more.append(made("em", {}, `and ${told(missing)} that are not shown`));
      });
      list.append(more);
    }
    const others = [...found].filter((k) => !first.includes(k));
    if (others.length) {
      const also = made("div", { className: "found" }, "also with ", ...chips(others.slice(0, MOST_TOLD), side, found));
      if (others.length > MOST_TOLD) also.append(`and ${told(others.length - MOST_TOLD)} more that fit`);
      list.append(also);
    }
    return list;
  }

  function chips(members, side, found) {
    return members.flatMap((k) => [chip(side, data.labels[side][k], found.has(k)), " "]);
  }

  function chip(side, text, isHit) {
    return made("a", { className: `label ${side}${isHit ? " hit" : ""}`, href: hashOf({ ...ALL, label: `${side}:${text}` }), tabIndex: -1 }, ...marked(text));
  }

  function filters({ ids, missing }) {
    const sizes = cellOf(place.cell), member = labelOf(place.label), found = [];
    if (sizes) found.push(SIDES.map((side) => `${rangeOf(sizes[side])} ${data.names[side]}`).join(" × "));
    if (member) found.push(`with ${member.text} (${data.names[member.side]})`);
    if (ids) found.push(missing.length ? `${told(ids.length - missing.length)} of ${told(ids.length)} in the address` : ids.length === 1 ? "this one" : `the ${ids.length === 2 ? "two" : told(ids.length)} that were chosen`);
    return found.map((words) => {
      const button = made("button", { type: "button" }, ...marked(words), " ", made("span", { ariaHidden: "true" }, "×"));
      button.setAttribute("aria-label", `no longer only: ${words}`);
      button.addEventListener("click", () => go({ ...START, find: place.find }));
      return button;
    });
  }

  function verdict({ by, among, base, rows, wanted, ids, missing }) {
    const cell = place.cell && document.querySelector(`[data-cell="${CSS.escape(place.cell)}"]`);
    const which = `the ${told(among)} ${WHICH[by]}`, hidden = among - base.length;
    const words = [];
    if (cell) words.push(`${told(Number(cell.dataset.n))} ${Number(cell.dataset.n) === 1 ? "biclique has" : "bicliques have"} these sizes.`);
    if (wanted) words.push(`${place.find.trim()}:`);
    words.push(`${told(rows.length)} of ${hidden && (wanted || cell) ? `${told(base.length)} distinct among ${which}` : which}.`);
    if (cell && !wanted && rows.length < Number(cell.dataset.n)) words.push("The lines for DuckDB and pandas below the list find all of these sizes.");
    if (missing?.length) words.push(`No biclique of this list has the ${missing.length === 1 ? "id" : "ids"} ${idWords(missing)}. The command bicliques explain finds every id of the run.`);
    if (hidden && !ids) words.push(`${told(hidden)} left out: ${by === "all" ? "one before it" : "a better one"} has more than ${data.distinct} % of the ${data.edges} of each.`);
    if (wanted || place.label && data.most !== null) words.push(data.most === null ? "All their members were looked at." : `The first ${told(data.most)} members of each side were looked at.`);
    if (wanted && data.count > data.ids.length) words.push(`The lines for DuckDB and pandas below the list look at all ${told(data.count)}.`);
    return words.join(" ");
  }

  function idWords(ids) {
    const first = ids.slice(0, MOST_TOLD).map((id) => id.length > MOST_OF_AN_ID ? `${id.slice(0, MOST_OF_AN_ID - 1)}\u2026` : id);
    return first.join(", ") + (ids.length > first.length ? ` and ${told(ids.length - first.length)} more` : "");
  }

  // Those who take part most are on the page, too, whether or not they are in a listed biclique.
  function amongParticipants(wanted) {
    const labels = [...document.querySelectorAll("#participation .label > *")];
    for (const label of labels) label.classList.toggle("hit", wanted !== "" && label.textContent.toLowerCase().includes(wanted));
    const hits = labels.filter((label) => label.classList.contains("hit")).length;
    return wanted ? ` Of the ${told(labels.length)} who take part most, ${told(hits)} fit${hits === 1 ? "s" : ""}.` : "";
  }

  search.addEventListener("input", () => go({ find: search.value }, true));
  at("distinct").addEventListener("change", (event) => go({ repeats: event.target.checked ? "" : "1", ids: "" }));
  for (const choice of document.querySelectorAll("input[name=by]")) choice.addEventListener("change", () => go({ by: choice.value, ids: "" }));
  for (const button of table.querySelectorAll("th button")) {
    const key = button.dataset.sort;
    button.addEventListener("click", () => go({ sort: key && place.sort === `-${key}` ? key : key && `-${key}` }));
  }
  for (const [id, step] of [["back", -1], ["on", 1]]) {
    at(id).addEventListener("click", () => {
      go({ page: String(Number(at("pager").dataset.page) + step) });
      at("top").scrollIntoView();
    });
  }
  at("csv").addEventListener("click", () => save("bicliques.csv", linesOf(data, chosen().rows)));
  document.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-cell], [data-ids]");
    if (mark) {
      jump = true;
      go({ ...ALL, ...(mark.dataset.cell ? { cell: mark.dataset.cell } : { ids: mark.dataset.ids }) });
    } else if (event.target.closest("a[href^='#']")) jump = true;
  });
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=") && location.hash.length > 1) { jump = false; return; }  // a part of the page
    place = placeOf(location.hash);
    show();
  });
  paper.addEventListener("change", show);
  // One stop of the tabulator key per list of members; arrows go on.
  body.addEventListener("focusin", (event) => event.target.matches(".label") && keep(event.target));
  body.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !event.target.matches(".label")) return;
    const labels = [...event.target.closest(".members").querySelectorAll(".label")].filter((label) => label.checkVisibility());
    event.preventDefault();
    labels[labels.indexOf(event.target) + step]?.focus();
  });
  function keep(label) {
    for (const other of label.closest(".members").querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    label.tabIndex = 0;
  }
  for (const label of document.querySelectorAll("#participation .label [data-side]")) {
    const text = label.dataset.label === undefined ? label.textContent : decodeURIComponent(label.dataset.label);
    label.replaceChildren(made("a", { href: hashOf({ ...ALL, label: `${label.dataset.side}:${text}` }) }, ...marked(text)));
  }
  for (const control of document.querySelectorAll("#top [disabled]")) control.disabled = false;
  if (data.most !== null) at("files").append(` Of each side they have at most the first ${told(data.most)} members, because the page has no room for more.`);
  at("overlap").hidden = false;
  document.querySelector("#sizes .cells")?.classList.add("pick");
  show();
}

(async () => {
  const labels = at("labels");
  if (!labels) return;
  if ("DecompressionStream" in window) startList(await unpacked(labels.textContent));
  else at("told").textContent = "The search, the choice, and lists that unfold need a newer browser.";
})();
