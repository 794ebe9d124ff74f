// @ts-check
// Selects ranges on the axes of a plot, with the mouse and with keys. Positions are from 0 to 1000.

/** @typedef {[number, number]} Range */

const END = 1000;
/** How far an arrow key moves a range. */
const STEP = 50;
/** A shorter drag is a click, which removes the range. */
const SHORTEST_DRAG = 15;

/**
 * The range after a key. Without a range, the keys select the upper or lower half.
 * @param {Range | undefined} range
 * @param {string} key
 * @param {boolean} isSized Whether the key changes the size.
 * @returns {Range | undefined}
 */
export function moved(range, key, isSized) {
  const step = key === "ArrowUp" ? STEP : -STEP;
  if (!range) return step > 0 ? [END / 2, END] : [0, END / 2];
  const [low, high] = range;
  if (isSized) return [low, Math.min(END, Math.max(low + STEP, high + step))];
  const shift = Math.max(-low, Math.min(END - high, step));
  return [low + shift, high + shift];
}

export class Ranges {
  /**
   * @param {HTMLElement} root
   * @param {() => void} changed
   */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    /** @type {Map<number, Range>} */
    this.all = new Map();
    root.addEventListener("pointerdown", (event) => this.drag(event));
    root.addEventListener("keydown", (event) => this.press(event));
  }

  clear() {
    this.all.clear();
    this.changed();
  }

  /**
   * Whether positions are within all ranges.
   * @param {string[]} positions
   */
  has(positions) {
    return [...this.all].every(([axis, [low, high]]) => {
      const position = Number(positions[axis]);
      return position >= low && position <= high;
    });
  }

  /**
   * Draws the ranges, after the plot was updated.
   * @param {number} count The number of selected combinations.
   */
  draw(count) {
    for (const axis of this.root.querySelectorAll("g.axis")) {
      const range = this.all.get(axisOf(axis));
      const [brush, rect] = [axis.querySelector(".brush"), axis.querySelector(".selected")];
      const [top, height] = ["y", "height"].map((name) => Number(brush?.getAttribute(name)));
      const [low, high] = range ?? [0, 0];
      rect?.setAttribute("y", String(top + height * (1 - high / END)));
      rect?.setAttribute("height", String((height * (high - low)) / END));
      const text = range ? `${low / 10}% to ${high / 10}% of the axis, ${count} combinations` : "all";
      brush?.setAttribute("aria-valuetext", text);
      brush?.setAttribute("aria-valuenow", String(range ? (low + high) / 20 : 50));
    }
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const brush = event.target;
    if (!(brush instanceof SVGElement) || !brush.classList.contains("brush") || event.button !== 0) return;
    const axis = axisOf(brush.closest("g.axis"));
    const box = brush.getBoundingClientRect();
    /** @param {PointerEvent} at */
    const position = (at) => Math.max(0, Math.min(END, Math.round((1 - (at.clientY - box.top) / box.height) * END)));
    const begin = position(event);
    brush.setPointerCapture(event.pointerId);
    /** @param {PointerEvent} at */
    const move = (at) => {
      const end = position(at);
      if (Math.abs(end - begin) < SHORTEST_DRAG) this.all.delete(axis);
      else this.all.set(axis, [Math.min(begin, end), Math.max(begin, end)]);
      this.changed();
    };
    brush.addEventListener("pointermove", move);
    const end = () => brush.removeEventListener("pointermove", move);
    brush.addEventListener("pointerup", (at) => (move(at), end()), { once: true });
    brush.addEventListener("pointercancel", end, { once: true });
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const brush = event.target;
    if (!(brush instanceof SVGElement) || !brush.classList.contains("brush")) return;
    const axis = axisOf(brush.closest("g.axis"));
    if (event.key === "Escape" || event.key === "Delete") {
      this.all.delete(axis);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const range = moved(this.all.get(axis), event.key, event.shiftKey);
      if (range) this.all.set(axis, range);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.changed();
  }
}

/** @param {Element | null} axis */
function axisOf(axis) {
  return Number(axis?.getAttribute("data-axis"));
}
