// @ts-check
// Finds lines, in small steps, so that a search in a million lines does not block the tab.

import { stripped } from "./ansi.js";

/** How long a step may take, in milliseconds. */
const STEP = 8;
/** The number of lines after which the clock is read. */
const LINES_PER_LOOK = 500;

/**
 * A function that finds the matches in a text. Throws if the expression is invalid.
 * @param {string} pattern
 * @param {boolean} isRegex
 * @returns {RegExp | null}
 */
export function matcher(pattern, isRegex) {
  if (pattern === "") return null;
  const source = isRegex ? pattern : pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // As in most pagers: upper-case letters are significant only if there are some.
  return new RegExp(source, /[A-Z]/.test(pattern) ? "gu" : "giu");
}

/** The lines that are shown, and those that match. */
export class Search {
  /** @param {import("./lines.js").Lines} lines */
  constructor(lines) {
    this.lines = lines;
    this.task = "";
    /** @type {RegExp | null} */
    this.regex = null;
    this.isOnly = false;
    this.reset();
  }

  /** Whether all lines are shown. */
  get isUnfiltered() {
    return this.task === "" && !(this.isOnly && this.regex);
  }

  /** Starts again from the first line. */
  reset() {
    /** @type {number[]} The numbers of the shown lines, if not all are. */
    this.shown = [];
    /** @type {number[]} The numbers of the matching lines. */
    this.matches = [];
    this.scanned = 0;
  }

  /** Whether all lines were scanned. */
  get isDone() {
    return this.scanned >= this.lines.next || (this.isUnfiltered && !this.regex);
  }

  /** Scans for a few milliseconds. */
  step() {
    if (this.isDone) return;
    const end = performance.now() + STEP;
    let looks = 0;
    this.scanned = this.lines.each(this.scanned, (number, task, text) => {
      if (this.task === "" || task === this.task || task.startsWith(`${this.task} `)) {
        const isMatch = this.isMatch(text);
        if (isMatch) this.matches.push(number);
        if (!this.isUnfiltered && (isMatch || !this.isOnly || !this.regex)) this.shown.push(number);
      }
      looks += 1;
      return looks % LINES_PER_LOOK !== 0 || performance.now() < end;
    });
  }

  /** @param {string} text */
  isMatch(text) {
    if (!this.regex) return false;
    this.regex.lastIndex = 0;
    return this.regex.test(stripped(text));
  }

  /**
   * Forgets lines that were dropped. Returns the number of rows that are gone.
   * @param {number} first The number of the first line before.
   */
  trim(first) {
    let rows = this.isUnfiltered ? this.lines.first - first : 0;
    for (const list of [this.shown, this.matches]) {
      if (list.length === 0 || list[0] >= this.lines.first) continue;
      const gone = list.splice(0, position(list, this.lines.first));
      if (list === this.shown) rows = gone.length;
    }
    return rows;
  }

  /** The number of rows. */
  get rows() {
    return this.isUnfiltered ? this.lines.length : this.shown.length;
  }

  /**
   * The number of the line in a row.
   * @param {number} row
   */
  lineAt(row) {
    return this.isUnfiltered ? this.lines.first + row : this.shown[row];
  }

  /**
   * The row of a line, or of the next shown line.
   * @param {number} number
   */
  rowOf(number) {
    return this.isUnfiltered ? number - this.lines.first : position(this.shown, number);
  }

  /**
   * The next match after a line, or the previous; the first or last if there is none.
   * @param {number} number
   * @param {boolean} isForward
   */
  nextMatch(number, isForward) {
    if (this.matches.length === 0) return null;
    const at = position(this.matches, isForward ? number + 1 : number);
    const index = isForward ? at % this.matches.length : (at - 1 + this.matches.length) % this.matches.length;
    return { number: this.matches[index], index };
  }
}

/**
 * The position of the first element that is not less.
 * @param {number[]} list
 * @param {number} value
 */
function position(list, value) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
