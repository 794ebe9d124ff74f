// @ts-check
// The terms of the filter above a table.

/**
 * A pattern with `*` for any text.
 * @param {string} pattern
 * @param {string} text
 */
function isLike(pattern, text) {
  const parts = pattern.split("*");
  if (parts.length === 1) return text === pattern;
  const [first, last] = [parts[0], parts[parts.length - 1]];
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}

/**
 * @typedef {object} Entry What a row offers to the filter, in lower case.
 * @property {string} text
 * @property {string} name
 * @property {string} state
 * @property {string} note
 * @property {Record<string, string>} tags
 */

/**
 * @param {string} term
 * @param {Entry} entry
 */
function matchesTerm(term, entry) {
  const at = term.indexOf(":");
  const value = term.slice(at + 1);
  switch (at < 0 ? "" : term.slice(0, at)) {
    case "state":
      return entry.state.startsWith(value);
    case "name":
      return isLike(value, entry.name);
    case "note":
      return entry.note.includes(value);
    case "tag": {
      const [key, wanted] = value.split(/=(.*)/s);
      if (!Object.hasOwn(entry.tags, key)) return false;
      return wanted === undefined || isLike(wanted, entry.tags[key]);
    }
    default:
      return entry.text.includes(term);
  }
}

/**
 * Whether an entry has all terms of a text, and none of those after `!`.
 * @param {string} text
 * @param {Entry} entry
 */
export function matches(text, entry) {
  const terms = text.toLowerCase().split(/\s+/).filter((term) => term !== "" && term !== "!");
  return terms.every((term) => {
    const isExcluded = term.startsWith("!");
    return matchesTerm(isExcluded ? term.slice(1) : term, entry) !== isExcluded;
  });
}

/**
 * @param {HTMLElement} row
 * @returns {Entry}
 */
export function entryOf(row) {
  const { name = "", state = "", note = "", tags = "{}" } = row.dataset;
  const lower = Object.entries(JSON.parse(tags)).map(([key, value]) => [key, String(value)].map((text) => text.toLowerCase()));
  return {
    text: row.textContent?.toLowerCase() ?? "",
    name: name.toLowerCase(),
    state: state.toLowerCase(),
    note: note.toLowerCase(),
    tags: Object.fromEntries(lower),
  };
}
