// @ts-check
// Connects the parts of a page.

import { setUpActions } from "./actions.js";
import { entryOf, matches } from "./filter.js";
import { Live } from "./live.js";
import { Logs } from "./logs.js";
import { morph } from "./morph.js";
import { Sweep } from "./sweep.js";
import { Tabs, read } from "./tabs.js";

/** The shortest time between two explanations, in milliseconds. */
const WHY_INTERVAL = 3000;

/** @type {Live | undefined} */
let live;
const base = document.body.dataset.base ?? "/";
const run = document.getElementById("run");
const path = (run ?? document.getElementById("schedule"))?.dataset.path ?? "";
/** The tabs whose content the server sends while they are shown. */
const SENT = ["usage", "sweep"];
const tabs = run ? new Tabs(path, () => live?.reopen()) : null;
const logs = run ? new Logs(path) : null;
const combinations = document.getElementById("sweep");
const sweep = combinations ? new Sweep(combinations, showLines) : null;

/** @param {string} task */
function showLines(task) {
  tabs?.show("logs");
  logs?.select(task);
}

/**
 * @param {string} text Empty if there is nothing to say.
 */
function notice(text) {
  const lost = document.getElementById("lost");
  if (!lost || lost.textContent === text) return;
  lost.hidden = text === "";
  lost.textContent = text;
}

/** @param {MessageEvent} event */
function update(event) {
  for (const { id, html } of JSON.parse(event.data)) {
    const target = document.getElementById(id);
    if (target) morph(target, html);
  }
  tick();
  filterRuns();
  logs?.markTask();
  sweep?.update();
  whyIfChanged();
}

/** The address of the events, with those of the shown tab. */
function eventsAddress() {
  const address = document.body.dataset.events ?? "";
  const shown = tabs?.shown() ?? "";
  return SENT.includes(shown) ? `${address}?shown=${shown}` : address;
}

live = new Live({
  url: eventsAddress,
  on: {
    parts: update,
    gone: (event) => {
      update(event);
      live?.end();
      notice("The run was removed. What is shown is its last known state.");
      document.querySelector(".actions")?.remove();
    },
  },
  state: (isLost, isRefused) => {
    if (!isLost) notice("");
    else if (isRefused) notice("The session has ended. Open a new link of `longshore ui`.");
    else notice("No connection to `longshore ui`. Reconnecting\u2026");
  },
});

/* Times */

/** @param {number} milliseconds */
function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
  if (days > 0) return `${days}d${hours % 24}h`;
  if (hours > 0) return `${hours}h${minutes % 60}m`;
  if (minutes > 0) return `${minutes}m${seconds % 60}s`;
  return seconds === 0 ? "<1s" : `${seconds}s`;
}

function tick() {
  for (const clock of document.querySelectorAll("[data-since]")) {
    const text = span(Date.now() - Number(clock.getAttribute("data-since")));
    if (clock.textContent !== text) clock.textContent = text;
  }
}
setInterval(tick, 1000);
tick();

/* Why */

let whyState = "";
let whyTime = 0;
let isWhyPending = false;

function whyIfChanged() {
  const tasks = document.querySelector("#tasks .counts")?.textContent ?? "";
  const state = document.querySelector("#head .title")?.getAttribute("data-state") ?? "";
  const isOpen = state === "pending" || state === "running";
  if (!run || isWhyPending) return;
  if (`${state} ${tasks}` === whyState && !(isOpen && Date.now() - whyTime > 2 * WHY_INTERVAL)) return;
  const wait = Math.max(0, whyTime + WHY_INTERVAL - Date.now());
  isWhyPending = true;
  setTimeout(async () => {
    whyState = `${state} ${tasks}`;
    const html = await read(`${path}/why`);
    const target = document.getElementById("why");
    if (target) morph(target, html);
    whyTime = Date.now();
    isWhyPending = false;
    whyIfChanged();
  }, wait);
}
whyIfChanged();
if (path) setUpActions(path, path.split("/").pop() ?? "");
if (run) setUpGrid();

function setUpGrid() {
  document.getElementById("tasks")?.addEventListener("click", (event) => {
    const cell = event.target instanceof Element ? event.target.closest("[data-task]") : null;
    if (!cell) return;
    const task = cell.getAttribute("data-task") ?? "";
    showLines(cell.getAttribute("aria-pressed") === "true" ? "" : task);
  });
}

/* The list of runs or objects */

const filter = /** @type {HTMLInputElement | null} */ (document.getElementById("filter"));

function filterRuns() {
  if (!filter) return;
  const rows = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("table.runs tbody tr, table.objects tbody tr"));
  let shown = 0;
  for (const row of rows) {
    row.hidden = !matches(filter.value, entryOf(row));
    shown += Number(!row.hidden);
  }
  const count = document.getElementById("filter-count");
  if (count) count.textContent = filter.value.trim() === "" ? "" : `${shown} of ${rows.length}`;
}
filter?.addEventListener("input", filterRuns);
// The browser may have kept a text, or it was typed before this module was loaded.
filterRuns();

/** @param {number} step */
function moveInList(step) {
  const links = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("table.runs tbody tr:not([hidden]) a, table.objects tbody tr:not([hidden]) a"))];
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
}

/* Keys */

const help = /** @type {HTMLDialogElement} */ (document.getElementById("help"));
document.getElementById("help-button")?.addEventListener("click", () => help.showModal());

document.addEventListener("keydown", (event) => {
  const target = event.target;
  const isTyping = target instanceof HTMLInputElement && target.type === "search" || target instanceof HTMLSelectElement;
  if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (isTyping) /** @type {HTMLElement} */ (target).blur();
    else if (logs?.search.task) logs.select("");
    return;
  }
  if (isTyping) return;
  /** @type {Record<string, () => void>} */
  const keys = {
    "?": () => help.showModal(),
    "/": () => {
      if (run) tabs?.show("logs");
      document.getElementById(run ? "search" : "filter")?.focus();
    },
    r: () => location.assign(base),
    j: () => moveInList(1),
    k: () => moveInList(-1),
    f: () => logs?.follow(!logs.isFollowing),
    n: () => logs?.jump(true),
    N: () => logs?.jump(false),
  };
  if (/^[1-9]$/.test(event.key)) keys[event.key] = () => tabs?.showAt(Number(event.key) - 1);
  const action = keys[event.key];
  if (!action || (!run && /^[fnN1-9]$/.test(event.key))) return;
  event.preventDefault();
  action();
});

// For tests: keys and clicks have an effect from now on.
document.documentElement.dataset.ready = "true";
