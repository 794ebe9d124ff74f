// @ts-check
// The tabs of a run's page, and the parts that are read when they are shown.

import { morph } from "./morph.js";

/** The tabs in their order. */
const NAMES = [...document.querySelectorAll("[role=tab]")].map((tab) => tab.id.replace("tab-", ""));

export class Tabs {
  /**
   * @param {string} path The path of the run's page.
   * @param {() => void} changed Called when another tab is shown.
   */
  constructor(path, changed) {
    this.path = path;
    this.changed = changed;
    for (const name of NAMES) {
      this.tab(name).addEventListener("click", () => this.show(name));
    }
    this.tab(NAMES[0]).parentElement?.addEventListener("keydown", (event) => {
      const at = NAMES.indexOf(this.shown());
      const last = NAMES.length - 1;
      /** @type {Record<string, number>} */
      const next = {
        ArrowRight: at === last ? 0 : at + 1,
        ArrowLeft: at === 0 ? last : at - 1,
        Home: 0,
        End: last,
      };
      if (!(event.key in next)) return;
      event.preventDefault();
      this.show(NAMES[next[event.key]]);
      this.tab(this.shown()).focus();
    });
    document.addEventListener("toggle", (event) => this.openObject(event), true);
    const wanted = location.hash.slice(1);
    if (NAMES.includes(wanted)) this.show(wanted);
  }

  /** @param {string} name */
  tab(name) {
    return /** @type {HTMLElement} */ (document.getElementById(`tab-${name}`));
  }

  /** The name of the shown tab. */
  shown() {
    return NAMES.find((name) => this.tab(name).getAttribute("aria-selected") === "true") ?? NAMES[0];
  }

  /** @param {number} position */
  showAt(position) {
    if (position < NAMES.length) this.show(NAMES[position]);
  }

  /** @param {string} name */
  show(name) {
    for (const other of NAMES) {
      const tab = this.tab(other);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      const panel = document.getElementById(`panel-${other}`);
      if (panel) panel.hidden = other !== name;
    }
    history.replaceState(null, "", `#${name}`);
    this.changed();
    this.load();
  }

  /** Reads the content of the shown tab, if it has content of its own. */
  async load() {
    const panel = document.getElementById(`panel-${this.shown()}`);
    const part = panel?.dataset.load;
    if (!panel || !part) return;
    morph(panel, await read(`${this.path}/${part}`));
  }

  /** @param {Event} event */
  async openObject(event) {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement) || !details.open) return;
    const address = details.dataset.object;
    const target = details.querySelector("pre");
    if (!address || !target) return;
    const response = await fetch(address).catch(() => null);
    target.textContent = response ? await response.text() : "`longshore ui` does not respond.";
  }
}

/**
 * A part of the page.
 * @param {string} address
 */
export async function read(address) {
  const response = await fetch(address).catch(() => null);
  if (!response) return "<p class=notice>`longshore ui` does not respond.</p>";
  if (!response.ok) return "<p class=notice>The cluster or `longshore ui` did not answer this.</p>";
  return response.text();
}
