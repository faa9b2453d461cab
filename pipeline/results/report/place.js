// What is shown of the list is in the URL, so that a link opens the same view, and the browser's button goes back.
const START = { by: "", repeats: "", sort: "", page: "1", find: "", cell: "", label: "", ids: "" };
const ALL = { ...START, by: "all", repeats: "1" };

function placeOf(hash) {
  const place = { ...START };
  for (const [key, value] of new URLSearchParams(hash.slice(1))) if (Object.hasOwn(START, key)) place[key] = value;
  return place;
}

function hashOf(place) {
  return `#${new URLSearchParams(Object.entries(place).filter(([key, value]) => value !== START[key]))}`;
}

// A size or a range of sizes on both sides, as "3-4.17-17".
function cellOf(text) {
  const found = /^(\d+)-(\d+)\.(\d+)-(\d+)$/.exec(text);
  return found && { left: [Number(found[1]), Number(found[2])], right: [Number(found[3]), Number(found[4])] };
}

// A label with its side, as "left:grass".
function labelOf(text) {
  const found = /^(left|right):([^]*)$/.exec(text);
  return found && { side: found[1], text: found[2] };
}

// Ids between commas, each once. Null if there is none.
function idsOf(text) {
  const found = new Set(text.split(",").map((id) => id.trim()).filter((id) => id));
  return found.size ? [...found] : null;
}

// What HTML does not allow: see rows/printable.py. People see a picture in its place. In the text it stays, so that it is copied.
const CONTROLS = /([\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff])/;

function picture(control) {
  return control < " " ? String.fromCharCode(0x2400 + control.charCodeAt(0)) : control === "\x7f" ? "\u2421" : "\ufffd";
}

// A text as nodes: the odd parts are the controls.
function marked(text) {
  return text.split(CONTROLS).map((part, k) => k % 2 ? made("span", { className: "control", data: { picture: picture(part) } }, part) : part);
}

function told(number) {
  return number.toLocaleString("en-US");
}

function made(tag, more, ...children) {
  const { data, role, ...others } = more;
  const element = Object.assign(document.createElement(tag), others);
  Object.assign(element.dataset, data);
  if (role) element.setAttribute("role", role);
  element.append(...children);
  return element;
}

function rangeOf([first, last]) {
  return first === last ? told(first) : `${told(first)} to ${told(last)}`;
}
