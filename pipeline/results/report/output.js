// What leaves the page: files, and lines that ask all bicliques.

// A spreadsheet takes text that begins with one of these for a formula. Some begin a cell at a semicolon or a tab, too.
const FORMULA = /(?<=^|[;\t\r\n])(?=[=+\-@\t\r＝＋－＠])/g;

function field(value) {
  if (typeof value !== "string") return String(value);
  return `"${value.replace(FORMULA, "'").replaceAll('"', '""')}"`;
}

function csvOf(lines) {
  return `\ufeff${lines.map((line) => line.map(field).join(",")).join("\r\n")}\r\n`;
}

function save(name, lines) {
  const url = URL.createObjectURL(new Blob([csvOf(lines)], { type: "text/csv;charset=utf-8" }));
  made("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function labelValue(data, side, at) {
  const label = data.labels[side][at];
  return data.numeric[side] && Number.isSafeInteger(Number(label)) ? Number(label) : label;
}

// One line per member, because a cell of a spreadsheet has no room for a thousand labels.
function linesOf(data, rows) {
  const lines = rows.flatMap(({ row, number }) => {
    const start = [number, BigInt(data.ids[row]), data.n.left[row] * data.n.right[row]];
    return SIDES.flatMap((side) => data.members[side][row].map((at) => [...start, data.names[side], labelValue(data, side, at)]));
  });
  return [["number", "id", data.edges, "side", "label"], ...lines];
}

// A control as its number, because a terminal would take it for a key.
function sqlText(text) {
  const parts = text.split(CONTROLS).map((part, k) => k % 2 ? `chr(${part.codePointAt(0)})` : `'${part.replaceAll("'", "''")}'`);
  return parts.filter((part) => part !== "''" || parts.length === 1).join(" || ");
}

function questionOf(data, { find, cell, label }) {
  const sizes = cellOf(cell), member = labelOf(label), wanted = find.trim().toLowerCase();
  const sql = [], filters = [], python = [];
  for (const side of sizes ? SIDES : []) {
    const [least, most] = sizes[side];
    sql.push(least === most ? `n_${side} = ${least}` : `n_${side} BETWEEN ${least} AND ${most}`);
    filters.push(...(least === most ? [`("n_${side}", "==", ${least})`] : [`("n_${side}", ">=", ${least})`, `("n_${side}", "<=", ${most})`]));
  }
  if (member) {
    const number = data.numeric[member.side];
    sql.push(`list_contains("${member.side}", ${number ? member.text : sqlText(member.text)})`);
    const value = number ? `${member.text} in row` : `${JSON.stringify(member.text)} in list(row)`;  // NumPy ends text at a NUL
    python.push(`bicliques = bicliques[[${value} for row in bicliques["${member.side}"]]]`);
  }
  if (wanted) {
    const has = SIDES.map((side) => `contains(lower(array_to_string("${side}", chr(10))), ${sqlText(wanted)})`);
    sql.push(`(${has.join(" OR ")})`);
    python.push(`wanted = ${JSON.stringify(wanted)}`);
    python.push(`has = lambda row: any(wanted in str(label).lower() for label in row)`);
    python.push(`bicliques = bicliques[bicliques["left"].map(has) | bicliques["right"].map(has)]`);
  }
  const where = sql.length ? `\nWHERE ${sql.join("\n  AND ")}` : "";
  const order = "\nORDER BY n_left::BIGINT * n_right DESC LIMIT 100";
  const options = filters.length ? `, filters=[${filters.join(", ")}]` : "";
  return {
    duckdb: `SELECT * FROM read_parquet(${sqlText(`${data.folder}/*.parquet`)})${where}${order};`,
    pandas: ["import pandas as pd", "", `bicliques = pd.read_parquet(${JSON.stringify(data.folder)}${options})`, ...python].join("\n"),
  };
}

async function copy(button) {
  const code = document.getElementById(button.dataset.of);
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {  // no permission, or a page that came over plain http
    getSelection().selectAllChildren(code);
    done = "Selected: press Ctrl-C";
  }
  const before = button.dataset.before ??= button.textContent;
  button.textContent = done;
  setTimeout(() => { button.textContent = before; }, 2500);
}
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
