/** Elements of the page, built without markup, so that no text is ever parsed as HTML. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an HTML element.
 *
 * @param {string} tag Its name, perhaps with classes: `div.card.wide`.
 * @param {Object} [options] Attributes and properties; `on…` are functions for events, `undefined` and `false`
 *   leave an attribute out.
 * @param {...(Node|string|null|undefined)} children Its content.
 */
export function element(tag, options = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name), { class: classes.join(" ") || undefined, ...options }, children);
}

/** Create an SVG element; the arguments are those of `element`. */
export function svg(tag, options = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElementNS(SVG, name), { class: classes.join(" ") || undefined, ...options }, children);
}

function fill(node, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === false || value === null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Replace the content of a node. */
export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Create a labelled selection; `choices` are pairs of value and label. */
export function select(label, choices, { value, onchange, ...options } = {}) {
  const node = element("select", { onchange: () => onchange?.(node.value), ...options });
  replace(node, choices.map(([key, text]) => element("option", { value: key, selected: key === value }, text)));
  return element("label.field", {}, element("span", {}, label), node);
}

/** Create a button. */
export function button(label, onclick, options = {}) {
  return element("button", { type: "button", onclick, ...options }, label);
}

/** Say a sentence to screen readers. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

/** Return a function that calls another one only when it has not been called for a while, and its method `cancel`. */
export function debounce(wait, call) {
  let timer;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Return the index of the next item for an arrow key, Home or End; undefined for other keys. */
export function step(key, index, length, { previous = "ArrowLeft", next = "ArrowRight" } = {}) {
  const moved = { [previous]: index - 1, [next]: index + 1, Home: 0, End: length - 1 }[key];
  return moved === undefined ? undefined : Math.min(Math.max(moved, 0), length - 1);
}

/** Call a function when the colours of the page change, as long as an element is part of it. */
export function onThemeChange(node, call) {
  const change = () => {
    if (node.isConnected) call();
    else document.removeEventListener("themechange", change);
  };
  document.addEventListener("themechange", change);
}

/** Whether the user prefers no animations. */
export const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Return a probability or weight for display. */
export function percent(value) {
  const number = 100 * value;
  return `${number >= 9.95 || number < 0.05 ? Math.round(number) : number.toFixed(1)} %`;
}
