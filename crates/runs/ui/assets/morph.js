// @ts-check
// Changes an element so that it has the content of an HTML text, and keeps what has not changed:
// the focus, the selection and the position of scrolling. This is the only module that creates
// elements from HTML, which the server has escaped.

/** Attributes that belong to the page and not to the server. */
const OWN = new Set(["aria-pressed", "open", "hidden"]);

/** @type {{createHTML(html: string): any} | undefined} */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("parts", {
  /** @param {string} html */
  createHTML: (html) => html,
});

/**
 * @param {Element} target
 * @param {string} html
 */
export function morph(target, html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  updateChildren(target, template.content);
}

/** @param {Node | null} node */
function keyOf(node) {
  return node instanceof Element ? node.getAttribute("data-key") : null;
}

/**
 * @param {Node} old
 * @param {Node} wanted
 */
function isSame(old, wanted) {
  return old.nodeName === wanted.nodeName && keyOf(old) === keyOf(wanted);
}

/**
 * @param {Element} old
 * @param {ParentNode & Node} fresh
 */
function updateChildren(old, fresh) {
  /** @type {Map<string, Element>} */
  const keyed = new Map();
  for (const child of old.children) {
    const key = keyOf(child);
    if (key !== null) keyed.set(key, child);
  }
  let cursor = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    const found = key === null ? cursor : keyed.get(key);
    if (!found || !isSame(found, wanted)) {
      old.insertBefore(wanted, cursor);
      continue;
    }
    if (found === cursor) {
      cursor = cursor.nextSibling;
    } else {
      old.insertBefore(found, cursor);
    }
    update(found, wanted);
  }
  while (cursor) {
    const next = cursor.nextSibling;
    cursor.remove();
    cursor = next;
  }
}

/**
 * @param {Node} old
 * @param {Node} wanted
 */
function update(old, wanted) {
  if (!(old instanceof Element) || !(wanted instanceof Element)) {
    if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
    return;
  }
  const since = old.getAttribute("data-since");
  const isClock = since !== null && since === wanted.getAttribute("data-since");
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value && !OWN.has(name)) old.setAttribute(name, value);
  }
  // The page itself advances the text of a clock.
  if (!isClock) updateChildren(old, wanted);
}
