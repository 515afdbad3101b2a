/** The beam tree: all hypotheses that a search kept or finished, which can be walked. */

import { announce, button, element, percent, replace, svg } from "./dom.js";
import { shownToken, spokenToken, wordStarts } from "./tokens.js";

const COLUMN = 116;
const ROW = 26;
const WIDTH = 88;
const MAX_LETTERS = 11;

/**
 * Create a beam tree.
 *
 * @param {function(string[])} onContinue Called with the tokens of a hypothesis to continue from.
 */
export function createTree(onContinue) {
  const frame = element("div.scroll");
  const details = element("div.hypothesis");
  const node = element("div.tree", {}, frame, details);
  let nodes = [];
  let items = [];
  let current = 0;

  /** Show the nodes of a reply of `/v1/beam`. */
  function update(shown) {
    nodes = shown.map((one) => ({ ...one, children: [] }));
    const roots = [];
    for (const one of nodes) (one.parent === null ? roots : nodes[one.parent].children).push(one);
    const height = arrange(roots);
    for (const best of nodes.filter((one) => one.rank === 1)) {
      for (let at = best; at; at = nodes[at.parent]) at.isBest = true;
    }
    const width = Math.max(...nodes.map((one) => one.step)) * COLUMN + 8;
    items = nodes.map(drawNode);
    const links = nodes.filter((one) => one.parent !== null).map(drawLink);
    replace(
      frame,
      svg(
        "svg",
        { width, height, viewBox: `0 0 ${width} ${height}`, role: "tree", "aria-label": "Beam tree", onkeydown: walk },
        links,
        items,
      ),
    );
    select(nodes.find((one) => one.rank === 1) ?? nodes[0], false);
  }

  function drawLink(one) {
    const from = nodes[one.parent];
    const [x, u] = [from.x + WIDTH - 6, one.x - 6];
    const middle = (x + u) / 2;
    return svg("path", {
      d: `M${x} ${from.y}C${middle} ${from.y} ${middle} ${one.y} ${u} ${one.y}`,
      class: one.isBest ? "branch is-best" : "branch",
      "stroke-width": (0.8 + 4 * Math.exp(one.log_prob)).toFixed(2),
    });
  }

  function drawNode(one) {
    const text = shownToken(one.token);
    const label = text.length > MAX_LETTERS ? `${text.slice(0, MAX_LETTERS - 1)}…` : text;
    const probability = Math.exp(one.log_prob);
    return svg(
      "g",
      {
        class: one.isBest ? "node is-best" : "node",
        role: "treeitem",
        tabindex: -1,
        "aria-level": one.step,
        "aria-selected": "false",
        "aria-label": `${spokenToken(one.token)}, probability ${percent(probability)}${one.rank ? `, result ${one.rank}` : ""}`,
        transform: `translate(${one.x} ${one.y})`,
        onclick: () => select(one, true),
        onfocus: () => current !== one.id && select(one, false),
      },
      svg("rect", { x: -5, y: -11, width: WIDTH, height: 22, rx: 5 }),
      svg("text", { y: 4.5, "font-size": 13, "font-family": "sans-serif" }, label),
      svg(
        "text.probability",
        { x: WIDTH - 10, y: 4, "text-anchor": "end", "font-size": 10, "font-family": "sans-serif" },
        one.rank ? `#${one.rank}` : Math.round(100 * probability),
      ),
    );
  }

  /** Move by arrow keys: to the parent, to the best child, and to the neighbours of a step. */
  function walk(event) {
    const one = nodes[current];
    const column = nodes.filter((other) => other.step === one.step).sort((a, b) => a.y - b.y);
    const at = column.indexOf(one);
    const found = {
      ArrowLeft: nodes[one.parent],
      ArrowRight: one.children[0],
      ArrowUp: column[at - 1],
      ArrowDown: column[at + 1],
      Home: nodes[0],
    }[event.key];
    if (event.key === "Enter" && !one.is_finished) onContinue(path(one).map((part) => part.token));
    if (!found) return;
    event.preventDefault();
    select(found, true);
  }

  function select(one, hasFocus) {
    items[current]?.setAttribute("tabindex", -1);
    items[current]?.setAttribute("aria-selected", "false");
    current = one.id;
    items[current].setAttribute("tabindex", 0);
    items[current].setAttribute("aria-selected", "true");
    for (const item of items) item.classList.remove("is-on-path");
    for (const part of path(one)) items[part.id].classList.add("is-on-path");
    if (hasFocus) items[current].focus();
    const tokens = path(one).map((part) => part.token);
    const starts = wordStarts(tokens);
    const text = tokens.map((token, index) => (starts[index] && index ? " " : "") + shownToken(token)).join("");
    const rank = one.rank ? `Result ${one.rank}. ` : one.is_finished ? "Finished. " : "";
    replace(
      details,
      element("p", {}, element("strong", { dir: "auto" }, text)),
      element(
        "p.note",
        {},
        `${rank}log p = ${one.total.toFixed(2)}; this token: ${percent(Math.exp(one.log_prob))}.`,
        one.is_finished ? null : button("Continue from here", () => onContinue(tokens), { class: "small" }),
      ),
    );
    if (hasFocus) announce(`${text}; ${rank}log-probability ${one.total.toFixed(2)}`);
  }

  function path(one) {
    const parts = [];
    for (let at = one; at; at = nodes[at.parent]) parts.unshift(at);
    return parts;
  }

  return { node, update, image: () => frame.firstChild };
}

/** Give each node its position: columns by step, the best child first; return the height. */
function arrange(roots) {
  let row = 0;
  const best = (one) => Math.max(one.is_finished ? (one.rank ? 1e6 - one.rank : one.total) : -1e9, ...one.children.map(best));
  const visit = (one) => {
    one.x = (one.step - 1) * COLUMN + 10;
    one.children.sort((a, b) => best(b) - best(a) || b.total - a.total);
    one.y = 18 + row * ROW;
    if (!one.children.length) row++;
    one.children.forEach(visit);
  };
  roots.sort((a, b) => best(b) - best(a) || b.total - a.total).forEach(visit);
  return row * ROW + 14;
}
