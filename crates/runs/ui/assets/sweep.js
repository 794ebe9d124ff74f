// @ts-check
// The table and the plot of a sweep: sorting, colours, the best combination, and what is selected.
// The server renders both; this module changes only classes, the order and what is hidden, and
// does so again after each update.

import { Ranges } from "./axes.js";

/** The number of colours, from the worst to the best. */
const COLOURS = 7;
/** Metrics whose highest value is the best, by their name. Of others, it is the lowest. */
const HIGHEST = /acc|auc|f1|score|reward|precision|recall|r2|iou|bleu|throughput|per_sec/i;

/**
 * The colour of a position on the axis of a metric.
 * @param {string | undefined} position
 * @param {boolean} isLow Whether the lowest value is the best.
 */
export function colourOf(position, isLow) {
  const colour = Math.floor((Number(position) * COLOURS) / 1001);
  if (Number.isNaN(colour)) return "kx";
  return `k${isLow ? COLOURS - 1 - colour : colour}`;
}

/**
 * Compares the values of two cells. Missing values are last.
 * @param {string | undefined} one
 * @param {string | undefined} other
 * @param {boolean} isReverse
 */
export function compare(one, other, isReverse) {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  const [first, second] = [Number(one), Number(other)];
  const isNumeric = one !== "" && other !== "" && !Number.isNaN(first) && !Number.isNaN(second);
  const order = isNumeric ? first - second || 0 : one < other ? -1 : Number(one > other);
  return isReverse ? -order : order;
}

export class Sweep {
  /**
   * @param {HTMLElement} root
   * @param {(task: string) => void} showLines
   */
  constructor(root, showLines) {
    this.root = root;
    this.key = "";
    this.isReverse = false;
    this.metric = "";
    this.hot = "";
    this.ranges = new Ranges(root, () => this.update());
    root.addEventListener("click", (event) => {
      const target = event.target instanceof Element ? event.target.closest("button") : null;
      if (target?.id === "sweep-clear") this.ranges.clear();
      else if (target?.dataset.lines) showLines(target.dataset.lines);
      else if (target?.classList.contains("sort")) this.sortBy(target.closest("th")?.dataset.key ?? "");
    });
    root.addEventListener("change", () => this.update());
    for (const [name, isOver] of /** @type {[string, boolean][]} */ ([["pointerover", true], ["focusin", true], ["pointerout", false], ["focusout", false]])) {
      root.addEventListener(name, (event) => this.highlight(event, isOver));
    }
  }

  /** @param {string} id */
  select(id) {
    return /** @type {HTMLSelectElement | null} */ (this.root.querySelector(`#${id}`));
  }

  rows() {
    return /** @type {HTMLTableRowElement[]} */ ([...this.root.querySelectorAll("table.sweep tbody tr")]);
  }

  /**
   * @param {Event} event
   * @param {boolean} isOver
   */
  highlight(event, isOver) {
    const target = event.target instanceof Element ? event.target.closest("tbody tr, g.lines path") : null;
    // Without a row or line below the mouse, the row with the focus stays highlighted.
    const item = (isOver ? target : null) ?? document.activeElement?.closest("table.sweep tbody tr");
    const hot = item?.getAttribute("data-key") ?? "";
    if (hot === this.hot) return;
    this.hot = hot;
    this.markHot();
  }

  markHot() {
    this.root.querySelector("#plot")?.classList.toggle("has-hot", this.hot !== "");
    for (const item of this.root.querySelectorAll(".hot")) item.classList.remove("hot");
    if (this.hot === "") return;
    for (const item of this.root.querySelectorAll(`[data-key="${this.hot}"]`)) item.classList.add("hot");
  }

  /**
   * Sorts by a column: first the lowest, then the highest, then by index again.
   * @param {string} key
   */
  sortBy(key) {
    if (this.key !== key) [this.key, this.isReverse] = [key, false];
    else if (!this.isReverse) this.isReverse = true;
    else [this.key, this.isReverse] = ["", false];
    this.update();
  }

  sort() {
    const headers = /** @type {HTMLTableCellElement[]} */ ([...this.root.querySelectorAll("table.sweep thead th")]);
    let column = 0;
    for (const header of headers) {
      const isOwn = header.dataset.key === this.key;
      if (isOwn) column = header.cellIndex;
      header.setAttribute("aria-sort", !isOwn ? "none" : this.isReverse ? "descending" : "ascending");
    }
    const rows = this.rows();
    /** @param {HTMLTableRowElement} row @param {number} at */
    const value = (row, at) => row.cells[at]?.dataset.sort;
    const sorted = [...rows].sort((one, other) =>
      compare(value(one, column), value(other, column), this.isReverse) || compare(value(one, 0), value(other, 0), false));
    if (sorted.every((row, at) => row === rows[at])) return;
    const focused = document.activeElement;
    rows[0].parentElement?.append(...sorted);
    if (focused instanceof HTMLElement && this.root.contains(focused)) focused.focus({ preventScroll: true });
  }

  /** Applies everything again. */
  update() {
    if (!this.root.querySelector("table.sweep")) return;
    const [metric, best] = [this.select("sweep-metric"), this.select("sweep-best")];
    const name = metric?.selectedOptions[0]?.dataset.name ?? "";
    if (best && name !== this.metric) best.value = HIGHEST.test(name) ? "high" : "low";
    this.metric = name;
    const isLow = best?.value !== "high";
    const axis = metric ? Number(metric.value) : -1;
    /** @type {Map<string, [string, boolean]>} */
    const looks = new Map();
    for (const line of this.root.querySelectorAll("g.lines path")) {
      const positions = line.getAttribute("data-at")?.split(" ") ?? [];
      const [colour, isIn] = [colourOf(positions[axis], isLow), this.ranges.has(positions)];
      looks.set(line.getAttribute("data-key") ?? "", [colour, isIn]);
      line.setAttribute("class", isIn ? colour : `${colour} out`);
    }
    let shown = 0;
    const rows = this.rows();
    for (const row of rows) {
      const [colour, isIn] = looks.get(row.dataset.key ?? "") ?? ["kx", true];
      row.className = colour;
      row.hidden = !isIn;
      shown += Number(isIn);
    }
    this.markBest(rows, name, isLow);
    this.sort();
    this.ranges.draw(shown);
    this.markHot();
    const isSelected = this.ranges.all.size > 0;
    const clear = /** @type {HTMLElement | null} */ (this.root.querySelector("#sweep-clear"));
    if (clear) clear.hidden = !isSelected;
    const count = this.root.querySelector("#combinations");
    if (count) count.textContent = isSelected ? `${shown} of ${rows.length} combinations` : `${rows.length} combinations`;
  }

  /**
   * Marks the best value of a metric, of combinations that succeeded.
   * @param {HTMLTableRowElement[]} rows
   * @param {string} name
   * @param {boolean} isLow
   */
  markBest(rows, name, isLow) {
    /** @type {HTMLElement | null} */
    let best = null;
    for (const row of rows) {
      for (const cell of row.cells) {
        cell.classList.remove("best");
        const isOwn = cell.dataset.metric === name && cell.dataset.sort !== undefined;
        if (!isOwn || row.dataset.state !== "succeeded" || Number.isNaN(Number(cell.dataset.sort))) continue;
        if (!best || compare(cell.dataset.sort, best.dataset.sort, !isLow) < 0) best = cell;
      }
    }
    best?.classList.add("best");
  }
}
