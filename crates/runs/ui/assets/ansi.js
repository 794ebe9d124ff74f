// @ts-check
// Colours of terminals (SGR sequences) become elements. The server has removed all other
// sequences.

/** The start of a sequence, its parameters, and its end. */
const SEQUENCE = /\x1b\[([0-9;:]*)m/g;

/**
 * @typedef {object} Style
 * @property {boolean} bold
 * @property {boolean} dim
 * @property {boolean} italic
 * @property {boolean} underline
 * @property {boolean} strike
 * @property {boolean} inverse
 * @property {string} front A class, or a CSS colour.
 * @property {string} back
 */

/** @returns {Style} */
function plainStyle() {
  return {
    bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false,
    front: "", back: "",
  };
}

/**
 * A text without sequences.
 * @param {string} text
 */
export function stripped(text) {
  return text.includes("\x1b") ? text.replace(SEQUENCE, "") : text;
}

/**
 * The parts of a text with their styles.
 * @param {string} text
 * @returns {{text: string, style: Style | null}[]}
 */
export function parts(text) {
  if (!text.includes("\x1b")) return [{ text, style: null }];
  const found = [];
  /** @type {Style | null} */
  let style = null;
  let end = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index), style });
    style = apply(style, match[1]);
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end), style });
  return found;
}

/**
 * @param {Style | null} old
 * @param {string} parameters
 * @returns {Style | null}
 */
function apply(old, parameters) {
  const codes = parameters.split(/[;:]/).map((code) => Number(code || "0"));
  let style = old ? { ...old } : plainStyle();
  for (let n = 0; n < codes.length; n++) {
    const code = codes[n];
    if (code === 0) style = plainStyle();
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 9) style.strike = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code === 29) style.strike = false;
    else if (code >= 30 && code <= 37) style.front = `fg${code - 30}`;
    else if (code === 39) style.front = "";
    else if (code >= 40 && code <= 47) style.back = `bg${code - 40}`;
    else if (code === 49) style.back = "";
    else if (code >= 90 && code <= 97) style.front = `fg${code - 82}`;
    else if (code >= 100 && code <= 107) style.back = `bg${code - 92}`;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes, n + 1, code === 38 ? "fg" : "bg");
      if (code === 38) style.front = colour;
      else style.back = colour;
      n += used;
    }
  }
  return style;
}

/**
 * A colour of 256, or of red, green and blue; and the number of codes that it has.
 * @param {number[]} codes
 * @param {number} at
 * @param {string} prefix
 * @returns {[string, number]}
 */
function extended(codes, at, prefix) {
  const byte = (/** @type {number | undefined} */ value) => Math.max(0, Math.min(255, Number(value) || 0));
  if (codes[at] === 2) {
    const [red, green, blue] = [1, 2, 3].map((offset) => byte(codes[at + offset]));
    return [`rgb(${red} ${green} ${blue})`, 4];
  }
  if (codes[at] !== 5) return ["", 1];
  const number = byte(codes[at + 1]);
  if (number < 16) return [`${prefix}${number}`, 2];
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return [`rgb(${grey} ${grey} ${grey})`, 2];
  }
  const cube = number - 16;
  const level = (/** @type {number} */ value) => (value === 0 ? 0 : 55 + value * 40);
  const [red, green, blue] = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level);
  return [`rgb(${red} ${green} ${blue})`, 2];
}

/**
 * An element with a style.
 * @param {Style} style
 */
export function styled(style) {
  const element = document.createElement("span");
  for (const name of /** @type {const} */ (["bold", "dim", "italic", "underline", "strike", "inverse"])) {
    if (style[name]) element.classList.add(name);
  }
  // Set by a script, which the content security policy permits, unlike attributes.
  if (style.front.startsWith("rgb")) element.style.color = style.front;
  else if (style.front) element.classList.add(style.front);
  if (style.back.startsWith("rgb")) element.style.backgroundColor = style.back;
  else if (style.back) element.classList.add(style.back);
  return element;
}
