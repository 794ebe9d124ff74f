// @ts-check
// The merged logs of a run. Only the visible lines have elements.

import { parts, stripped, styled } from "./ansi.js";
import { Lines } from "./lines.js";
import { Live } from "./live.js";
import { Search, matcher } from "./search.js";

/** The height of a line in pixels, as in style.css. */
const ROW = 18;
/** Browsers limit the height of elements. With more lines, a pixel of the scroll bar is more. */
const MOST_PIXELS = 4_000_000;
/** The time after which logs that could not be read are read again, in milliseconds. */
const RETRY_INTERVAL = 5000;
const numbers = new Intl.NumberFormat("en");

/** @param {string} id */
const get = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @param {string} id */
const input = (id) => /** @type {HTMLInputElement} */ (document.getElementById(id));

export class Logs {
  /** @param {string} path The path of the run's page. */
  constructor(path) {
    this.path = path;
    this.lines = new Lines();
    this.search = new Search(this.lines);
    this.serverDropped = 0;
    this.lastId = "";
    /** The first visible row, which may be a fraction. */
    this.top = 0;
    this.isFollowing = true;
    this.current = -1;
    this.isRequested = false;
    this.voices = new Map();
    this.box = get("lines");
    this.sizer = get("sizer");
    this.rows = get("rows");
    this.setUpInputs();
    this.setUpScrolling();
    this.live = new Live({
      url: () => `${path}/logs${this.lastId ? `?after=${encodeURIComponent(this.lastId)}` : ""}`,
      on: {
        message: (event) => this.receive(event),
        reset: () => this.reset(),
        dropped: (event) => {
          this.serverDropped += JSON.parse(event.data).lines;
        },
        end: () => this.ended("complete"),
        failed: (event) => this.failed(JSON.parse(event.data).error),
      },
      state: (isLost) => {
        if (isLost) this.say("reconnecting\u2026");
      },
    });
  }

  /** @param {MessageEvent} event */
  receive(event) {
    this.lastId = event.lastEventId;
    this.say("");
    const data = JSON.parse(event.data);
    const first = this.lines.length > 0 ? this.lines.first : data.first;
    this.lines.add(data);
    // The visible lines stay where they are when earlier lines are dropped.
    this.top = Math.max(0, this.top - this.search.trim(first));
    for (const task of data.tasks) this.addTask(task);
    this.request();
  }

  reset() {
    this.lines.clear();
    this.search.reset();
    this.serverDropped = 0;
    this.lastId = "";
    this.request();
  }

  /** @param {string} state */
  ended(state) {
    this.live.end();
    this.say(state);
    this.request();
  }

  /** @param {string} error */
  failed(error) {
    this.live.close();
    this.say(`incomplete: ${error}`);
    setTimeout(() => this.live.update(), RETRY_INTERVAL);
  }

  /** @param {string} state */
  say(state) {
    const target = get("log-state");
    if (target.textContent !== state) target.textContent = state;
  }

  /** @param {string} task */
  addTask(task) {
    if (this.voices.has(task)) return;
    this.voices.set(task, this.voices.size % 6);
    const name = task.split(" ")[0];
    const select = /** @type {HTMLSelectElement} */ (get("task"));
    if (![...select.options].some((option) => option.value === name)) {
      select.add(new Option(name, name));
    }
  }

  setUpInputs() {
    const changed = () => this.filter();
    for (const id of ["only", "regex"]) input(id).addEventListener("change", changed);
    input("search").addEventListener("input", changed);
    input("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.jump(!event.shiftKey);
    });
    get("task").addEventListener("change", () => this.select(input("task").value));
    input("times").addEventListener("change", () => this.request());
    input("follow").addEventListener("change", () => this.follow(input("follow").checked));
    get("next").addEventListener("click", () => this.jump(true));
    get("previous").addEventListener("click", () => this.jump(false));
  }

  /** Applies the inputs. */
  filter() {
    const search = input("search");
    try {
      this.search.regex = matcher(search.value, input("regex").checked);
      search.setCustomValidity("");
      search.removeAttribute("aria-invalid");
    } catch {
      search.setCustomValidity("invalid regular expression");
      search.setAttribute("aria-invalid", "true");
      this.search.regex = null;
    }
    const number = this.search.lineAt(Math.floor(this.top)) ?? 0;
    this.search.isOnly = input("only").checked;
    this.search.reset();
    this.current = -1;
    if (this.search.isUnfiltered) this.top = this.search.rowOf(number);
    else this.top = 0;
    this.request();
  }

  /**
   * Shows the lines of one task, or of all.
   * @param {string} task
   */
  select(task) {
    const select = /** @type {HTMLSelectElement} */ (get("task"));
    if (task && ![...select.options].some((option) => option.value === task)) {
      select.add(new Option(task, task));
    }
    select.value = task;
    this.search.task = task;
    this.markTask();
    this.filter();
  }

  /** Marks the selected task in the grid. */
  markTask() {
    for (const cell of document.querySelectorAll("[data-task]")) {
      const isSelected = cell.getAttribute("data-task") === this.search.task;
      if (isSelected) cell.setAttribute("aria-pressed", "true");
      else cell.removeAttribute("aria-pressed");
    }
  }

  /** @param {boolean} isFollowing */
  follow(isFollowing) {
    this.isFollowing = isFollowing;
    input("follow").checked = isFollowing;
    this.request();
  }

  /** @param {boolean} isForward */
  jump(isForward) {
    const from = this.current >= 0 ? this.current : (this.search.lineAt(Math.floor(this.top)) ?? 0) - 1;
    const found = this.search.nextMatch(from, isForward);
    if (!found) return;
    this.current = found.number;
    this.isFollowing = false;
    input("follow").checked = false;
    this.moveTo(this.search.rowOf(found.number) - Math.floor(this.visible() / 3));
  }

  /** The number of rows that fit. */
  visible() {
    return Math.max(1, Math.floor(this.box.clientHeight / ROW));
  }

  /** The largest first row. */
  last() {
    return Math.max(0, this.search.rows - this.visible());
  }

  /** @param {number} row */
  moveTo(row) {
    this.top = Math.max(0, Math.min(this.last(), row));
    this.request();
  }

  /** @param {number} row */
  moveByUser(row) {
    this.moveTo(row);
    this.isFollowing = this.top >= this.last();
    input("follow").checked = this.isFollowing;
  }

  setUpScrolling() {
    this.box.addEventListener("scroll", () => {
      // The position that `render` has set.
      if (Math.abs(this.box.scrollTop - this.expected) < 1) return;
      const range = this.box.scrollHeight - this.box.clientHeight;
      const part = range > 0 ? this.box.scrollTop / range : 0;
      this.expected = this.box.scrollTop;
      this.moveByUser(part >= 0.9999 ? this.last() : part * this.last());
    });
    this.box.addEventListener(
      "wheel",
      (event) => {
        if (!this.isScaled() || event.deltaY === 0 || event.ctrlKey) return;
        event.preventDefault();
        const rows = event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW;
        this.moveByUser(this.top + rows);
      },
      { passive: false },
    );
    this.box.addEventListener("keydown", (event) => {
      /** @type {Record<string, number>} */
      const rows = {
        ArrowDown: this.top + 1,
        ArrowUp: this.top - 1,
        PageDown: this.top + this.visible() - 1,
        PageUp: this.top - this.visible() + 1,
        Home: 0,
        End: this.last(),
      };
      if (event.key in rows && !event.ctrlKey && !event.altKey && !event.metaKey) {
        event.preventDefault();
        this.moveByUser(rows[event.key]);
      }
    });
    new ResizeObserver(() => this.request()).observe(this.box);
    this.expected = 0;
  }

  isScaled() {
    return this.search.rows * ROW > MOST_PIXELS;
  }

  /** Renders with the next frame. */
  request() {
    if (this.isRequested) return;
    this.isRequested = true;
    requestAnimationFrame(() => {
      this.isRequested = false;
      this.search.step();
      this.render();
      if (!this.search.isDone) this.request();
    });
  }

  render() {
    const rows = this.search.rows;
    if (this.isFollowing) this.top = this.last();
    this.top = Math.min(this.top, this.last());
    const height = Math.min(rows * ROW, MOST_PIXELS);
    this.sizer.style.height = `${Math.max(0, height - this.box.clientHeight)}px`;
    const first = Math.floor(this.top);
    const count = Math.min(rows - first, this.visible() + 2);
    this.showRows(first, count);
    this.rows.style.setProperty("--shift", `${Math.round((first - this.top) * ROW)}px`);
    const range = this.box.scrollHeight - this.box.clientHeight;
    const wanted = this.last() > 0 ? (this.top / this.last()) * range : 0;
    if (Math.abs(this.box.scrollTop - wanted) >= 1) this.box.scrollTop = wanted;
    this.expected = this.box.scrollTop;
    this.showCounts(rows);
  }

  /**
   * @param {number} first
   * @param {number} count
   */
  showRows(first, count) {
    const hasTimes = input("times").checked;
    const isAlone = this.voices.size <= 1;
    const fresh = [];
    for (let row = first; row < first + count; row++) {
      const number = this.search.lineAt(row);
      const line = this.lines.get(number);
      if (line) fresh.push(this.element(number, line, hasTimes, isAlone));
    }
    this.rows.replaceChildren(...fresh);
  }

  /**
   * @param {number} number
   * @param {import("./lines.js").Line} line
   * @param {boolean} hasTimes
   * @param {boolean} isAlone
   */
  element(number, line, hasTimes, isAlone) {
    const element = document.createElement("div");
    element.className = line.isGap ? "line gap" : "line";
    if (number === this.current) element.classList.add("current");
    if (hasTimes && !Number.isNaN(line.time)) {
      element.append(span("time", `${new Date(line.time).toISOString().slice(11, 23)} `));
    }
    if (!isAlone) element.append(span(`task v${this.voices.get(line.task) ?? 0}`, `${line.task} `));
    element.append(this.text(line.text));
    return element;
  }

  /** @param {string} text */
  text(text) {
    const all = document.createElement("span");
    all.className = "text";
    const marks = this.marks(text);
    let at = 0;
    for (const part of parts(text)) {
      const parent = part.style ? styled(part.style) : all;
      if (parent !== all) all.append(parent);
      let from = at;
      const end = at + part.text.length;
      for (const [begin, until] of marks) {
        const [low, high] = [Math.max(begin, from), Math.min(until, end)];
        if (low >= high) continue;
        parent.append(part.text.slice(from - at, low - at));
        const mark = document.createElement("mark");
        mark.textContent = part.text.slice(low - at, high - at);
        parent.append(mark);
        from = high;
      }
      parent.append(part.text.slice(from - at));
      at = end;
    }
    return all;
  }

  /**
   * The places that match, in the text without sequences.
   * @param {string} text
   * @returns {[number, number][]}
   */
  marks(text) {
    const { regex } = this.search;
    if (!regex) return [];
    /** @type {[number, number][]} */
    const found = [];
    regex.lastIndex = 0;
    for (const match of stripped(text).matchAll(regex)) {
      if (match[0] !== "") found.push([match.index, match.index + match[0].length]);
      if (found.length >= 100) break;
    }
    return found;
  }

  /** @param {number} rows */
  showCounts(rows) {
    const all = this.lines.length;
    const shown = rows === all ? "" : `${numbers.format(rows)} of `;
    const noun = all === 1 ? "line" : "lines";
    get("count").textContent = all === 0 ? "no lines" : `${shown}${numbers.format(all)} ${noun}`;
    const { regex, matches, isDone } = this.search;
    const at = this.current >= 0 ? `${numbers.format(matches.indexOf(this.current) + 1)} of ` : "";
    const state = isDone ? "" : "\u2026";
    get("matches").textContent = regex ? `${at}${numbers.format(matches.length)}${state} ${matches.length === 1 ? "match" : "matches"}` : "";
    const dropped = this.serverDropped + this.lines.dropped;
    const notice = get("dropped");
    notice.hidden = dropped === 0;
    if (dropped > 0) {
      const name = this.path.split("/").pop();
      notice.textContent = `${numbers.format(dropped)} earlier lines are not kept here; \`longshore logs ${name}\` prints all that the cluster has.`;
    }
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
function span(name, text) {
  const element = document.createElement("span");
  element.className = name;
  element.textContent = text;
  return element;
}
