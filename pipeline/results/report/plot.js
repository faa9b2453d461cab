// What a mark of a picture says, in a box beside it: under the pointer, or where the arrow keys have moved.
const ready = (() => {
  const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const MARKS = ".marks > *", GAP = 6;
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  let current = null;

  function tell(mark) {
    if (current) current.classList.remove("on");
    current = mark;
    tip.hidden = mark === null;
    if (mark === null) return;
    const title = mark.querySelector("title");
    if (title) {  // or else the browser shows its own box, too
      mark.dataset.tip = title.textContent;
      title.remove();
    }
    mark.classList.add("on");
    tip.textContent = mark.dataset.tip;
    tip.style.left = "0px";  // or else its lines would be broken at the edge of the page
    const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(at.left + at.width / 2 - own.width / 2, document.documentElement.clientWidth - own.width - GAP);
    const top = at.top - own.height - GAP < 0 ? at.bottom + GAP : at.top - own.height - GAP;
    tip.style.left = `${Math.max(left, GAP) + scrollX}px`;
    tip.style.top = `${top + scrollY}px`;
  }

  // The nearest mark in a direction, where a step to the side counts three times.
  function beside(plot, [across, down]) {
    const middle = (box) => [box.left + box.width / 2, box.top + box.height / 2];
    const [x, y] = middle(current.getBoundingClientRect());
    let found = current, least = Infinity;
    for (const mark of plot.querySelectorAll(MARKS)) {
      const [a, b] = middle(mark.getBoundingClientRect());
      const ahead = (a - x) * across + (b - y) * down, aside = Math.abs((a - x) * down) + Math.abs((b - y) * across);
      if (ahead > 0.1 && ahead + 3 * aside < least) [found, least] = [mark, ahead + 3 * aside];
    }
    return found;
  }

  // A page that scrolls below a pointer at rest puts another mark there, and the arrow keys go on from their own.
  let pointer = "";
  const placeOfPointer = (event) => `${event.screenX} ${event.screenY}`;
  document.addEventListener("pointermove", (event) => { pointer = placeOfPointer(event); });
  document.addEventListener("pointerover", (event) => {
    if (placeOfPointer(event) === pointer) return;
    const mark = event.target.closest(MARKS);
    if (mark || current) tell(mark);
  });

  function speak(plot) {
    if (current && !current.isConnected) tell(null);  // the picture before this one
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-roledescription", "picture");
    plot.setAttribute("aria-description", "The arrow keys go from mark to mark. Enter chooses where there is something to choose.");
    plot.addEventListener("blur", () => tell(null));
    plot.addEventListener("keydown", (event) => {
      if (event.key === "Escape") tell(null);
      if (event.key === "Enter" && current) current.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      const arrow = ARROWS[event.key];
      if (!arrow) return;
      event.preventDefault();
      tell(current && plot.contains(current) ? beside(plot, arrow) : plot.querySelector(MARKS));
      current?.scrollIntoView({ block: "nearest" });
    });
  }

  for (const plot of document.querySelectorAll(".plot")) speak(plot);
  return speak;
})();
