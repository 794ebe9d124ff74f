// @ts-check
// Server-sent events while the tab is visible. A browser opens only a few connections to a
// server, so hidden tabs close theirs, and continue when they are shown again.

/**
 * @typedef {object} Options
 * @property {() => string} url The address, each time a connection is opened.
 * @property {Record<string, (event: MessageEvent) => void>} on What to do with each event.
 * @property {(isLost: boolean, isRefused: boolean) => void} state Called when the connection is
 *   lost or there again. A refused connection is not tried again.
 */

export class Live {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    /** @type {EventSource | null} */
    this.source = null;
    this.isOver = false;
    document.addEventListener("visibilitychange", () => this.update());
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("pageshow", () => this.update());
    this.update();
  }

  /** Opens or closes the connection. */
  update() {
    if (this.isOver || document.visibilityState === "hidden") {
      this.close();
    } else if (!this.source) {
      this.open();
    }
  }

  open() {
    const source = new EventSource(this.options.url());
    this.source = source;
    for (const [name, handler] of Object.entries(this.options.on)) {
      source.addEventListener(name, (event) => {
        if (this.source === source) handler(/** @type {MessageEvent} */ (event));
      });
    }
    source.onopen = () => this.options.state(false, false);
    source.onerror = () => {
      if (this.source !== source) return;
      this.options.state(true, source.readyState === EventSource.CLOSED);
    };
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  /** Connects again, if the address has changed. */
  reopen() {
    if (!this.source || this.source.url === new URL(this.options.url(), location.href).href) return;
    this.close();
    this.update();
  }

  /** Ends the events for good. */
  end() {
    this.isOver = true;
    this.close();
  }
}
