// How much the listed bicliques overlap: a square for each pair.
const MOST_COMPARED = 50, PLOT_WIDTH = 600, MATRIX_WIDTH = 430, LARGEST_SQUARE = 26;
// Room of a number of so many letters on a narrow and on a wide screen, in units of the picture.
const ROOM = { narrow: (n) => 10 * n + 6, wide: (n) => 5 * n + 3 };

function drawn(tag, more, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(more)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function sizeWords(data, row) {
  return `${told(data.n.left[row])} × ${told(data.n.right[row])}`;
}

// How many percent of the edges of a biclique another one has, too. Nobody knows if their members are cut.
function shareOf(data, row, other) {
  if (data.shares[row]?.[other] !== undefined) return data.shares[row][other];
  const ends = [Math.min(row, other), Math.max(row, other)], key = ends.join();
  if (!data.common.has(key)) {
    const isCut = (side) => ends.some((each) => data.members[side][each].length < data.n[side][each]);
    data.common.set(key, SIDES.some(isCut) ? null : SIDES.reduce((edges, side) => edges * inBoth(...ends.map((each) => data.members[side][each])), 1));
  }
  const common = data.common.get(key);
  return common === null ? null : Math.floor(100 * common / (data.n.left[row] * data.n.right[row]));
}

// How many numbers two ascending lists have in common.
function inBoth(one, other) {
  let n = 0;
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) { n += 1; i += 1; j += 1; }
    else if (one[i] < other[j]) i += 1;
    else j += 1;
  }
  return n;
}

function matrixOf(data, rows) {
  const shown = rows.slice(0, MOST_COMPARED), n = shown.length;
  const square = Math.min(MATRIX_WIDTH / n, LARGEST_SQUARE), left = 62, top = 40, end = n * square;
  const marks = [], numbers = [];
  let pairs = 0, unknown = 0, most = [0, ""];
  for (const [i, one] of shown.entries()) {
    for (const [j, other] of shown.entries()) {
      const share = shareOf(data, one.row, other.row);
      if (share === null && i < j) unknown += 1;
      if (share === null && i !== j || share === 0 && shareOf(data, other.row, one.row) === 0) continue;
      const words = i === j ? `number ${one.number}: ${sizeWords(data, one.row)}`
        : `${share || "less than 1"} % of the ${data.edges} of number ${one.number} (${sizeWords(data, one.row)})\nare in number ${other.number} (${sizeWords(data, other.row)})`;
      if (i < j) pairs += 1;
      if (i !== j && share > most[0]) most = [share, words.replace("\n", " ")];
      marks.push(drawn("rect", {
        x: j, y: i, width: 1, height: 1, class: i === j ? "own" : "share", "fill-opacity": (i === j ? 1 : 0.1 + 0.9 * share / 100).toFixed(2),
        "data-ids": i === j ? data.ids[one.row] : `${data.ids[one.row]},${data.ids[other.row]}`,
      }, drawn("title", {}, words)));
    }
  }
  const letters = Math.max(2, ...shown.map(({ number }) => told(number).length)), wide = ROOM.wide(letters);
  const steps = [ROOM.narrow(letters), wide].map((room) => Math.ceil(room / square));
  for (const [k, { number }] of shown.entries()) {
    if (k % steps[0] && k % steps[1]) continue;
    const only = k % steps[0] ? " wide" : "", at = (k + 0.5) * square;
    if (only && steps[0] > 1 && Math.min(k % steps[0], steps[0] - k % steps[0]) * square < wide) continue;
    numbers.push(drawn("text", { x: left - 6, y: top + at, dy: ".35em", class: `end${only}` }, told(number)));
    numbers.push(drawn("text", { x: left + at, y: top - 6, class: `middle${only}` }, told(number)));
  }
  const words = `Matrix of ${n} bicliques. Of ${told(n * (n - 1) / 2)} ${n === 2 ? "pair" : "pairs"}, ${told(pairs)} ${pairs === 1 ? "has" : "have"} 1 % of the ${data.edges} of one of them in common, or more.` + (most[1] ? ` At most, ${most[1]}.` : "") + (unknown ? ` Of ${told(unknown)} ${unknown === 1 ? "pair" : "pairs"} it is not known, because the page has no room for all members.` : "");
  const plot = drawn("svg", { class: "plot", role: "img", viewBox: `0 0 ${PLOT_WIDTH} ${Math.ceil(top + end + 8)}`, "aria-label": words },
    drawn("text", { x: 0, y: 12, class: "title" }, "in number"),
    drawn("rect", { x: left, y: top, width: end, height: end, class: "ground" }),
    drawn("g", { class: "marks matrix", transform: `translate(${left} ${top}) scale(${square})` }, ...marks),
    drawn("g", {}, ...numbers));
  return { plot, words };
}
