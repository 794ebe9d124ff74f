// @ts-check
// The lines of a run's logs in this tab, within a limit.

const MOST_LINES = 1_000_000;
const MOST_CHARACTERS = 128_000_000;

/**
 * @typedef {object} Chunk
 * @property {number} first The number of its first line.
 * @property {string[]} tasks
 * @property {Uint16Array} task The task of each line.
 * @property {Float64Array} time In milliseconds, or NaN.
 * @property {Uint8Array} gap Whether the line reports missing lines.
 * @property {string[]} text
 * @property {number} characters
 */

/**
 * @typedef {object} Line
 * @property {string} task
 * @property {number} time
 * @property {boolean} isGap
 * @property {string} text
 */

export class Lines {
  constructor() {
    this.clear();
  }

  clear() {
    /** @type {Chunk[]} */
    this.chunks = [];
    /** The number of chunks at the beginning of `chunks` that were dropped. */
    this.gone = 0;
    this.characters = 0;
    /** The numbers of the first line, and of the line after the last. */
    this.first = 0;
    this.next = 0;
    /** The number of lines that this tab has dropped. */
    this.dropped = 0;
  }

  /** @param {{first: number, tasks: string[], lines: [number, number | null, string, boolean][]}} data */
  add(data) {
    const count = data.lines.length;
    if (count === 0 || data.first < this.next) return;
    const chunk = {
      first: data.first,
      tasks: data.tasks,
      task: Uint16Array.from(data.lines, (line) => line[0]),
      time: Float64Array.from(data.lines, (line) => line[1] ?? NaN),
      gap: Uint8Array.from(data.lines, (line) => (line[3] ? 1 : 0)),
      text: data.lines.map((line) => line[2]),
      characters: data.lines.reduce((sum, line) => sum + line[2].length, 0),
    };
    if (this.chunks.length === 0) this.first = chunk.first;
    this.chunks.push(chunk);
    this.characters += chunk.characters;
    this.next = chunk.first + count;
    while (
      this.chunks.length - this.gone > 1 &&
      (this.next - this.first > MOST_LINES || this.characters > MOST_CHARACTERS)
    ) {
      this.drop();
    }
  }

  /** Drops the oldest chunk. */
  drop() {
    const old = this.chunks[this.gone];
    this.gone += 1;
    this.characters -= old.characters;
    this.dropped += old.text.length;
    this.first = this.chunks[this.gone].first;
    if (this.gone >= 1000) {
      this.chunks.splice(0, this.gone);
      this.gone = 0;
    } else {
      this.chunks[this.gone - 1] = { ...old, text: [], characters: 0 };
    }
  }

  /** The number of lines from the first to the last. */
  get length() {
    return this.next - this.first;
  }

  /**
   * Calls back for the lines from a number on, until the callback returns false. Returns the
   * number at which it stopped.
   * @param {number} from
   * @param {(number: number, task: string, text: string) => boolean} callback
   */
  each(from, callback) {
    let number = Math.max(from, this.first);
    for (let at = this.find(number); at < this.chunks.length; at++) {
      const chunk = this.chunks[at];
      number = Math.max(number, chunk.first);
      for (let n = number - chunk.first; n < chunk.text.length; n++) {
        if (!callback(chunk.first + n, chunk.tasks[chunk.task[n]], chunk.text[n])) {
          return chunk.first + n + 1;
        }
      }
      number = chunk.first + chunk.text.length;
    }
    return number;
  }

  /**
   * A line.
   * @param {number} number
   * @returns {Line | null}
   */
  get(number) {
    const chunk = this.chunks[this.find(number)];
    const n = chunk ? number - chunk.first : -1;
    if (!chunk || n < 0 || n >= chunk.text.length) return null;
    return {
      task: chunk.tasks[chunk.task[n]],
      time: chunk.time[n],
      isGap: chunk.gap[n] === 1,
      text: chunk.text[n],
    };
  }

  /**
   * The position of the chunk that has a line.
   * @param {number} number
   */
  find(number) {
    let [low, high] = [this.gone, this.chunks.length];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.chunks[middle].first <= number) low = middle;
      else high = middle;
    }
    return low;
  }
}
