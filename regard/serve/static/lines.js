/** Lines between the tokens of a source and of a prediction, one per weight. */

import { element, percent, replace, step, svg } from "./dom.js";
import { shownToken, spokenToken, directionOf, wordStarts } from "./tokens.js";

/** Weights below this share of the largest possible one have no line. */
const MIN_WEIGHT = 0.04;
/** Maximum number of lines of a token. */
const MAX_LINES = 8;
/** Height of the lines between two rows of tokens. */
const HEIGHT = 120;

/**
 * Create the plot.
 *
 * Tokens stand in two rows, or in two columns if they do not fit. Hovering or focusing a token shows
 * its weights.
 *
 * @param {Object} [actions]
 * @param {function(number, Element)} [actions.onSource] Called when a source token is chosen.
 * @param {function(number, Element)} [actions.onTarget] Called when a target token is chosen.
 * @param {function(?Object)} [actions.onHover] Called with `{source: j}`, `{target: i}` or null.
 */
export function createLines({ onSource, onTarget, onHover } = {}) {
  const links = svg("svg.links", { "aria-hidden": "true" });
  const rows = { source: row("source", "Source"), target: row("target", "Prediction") };
  const node = element("div.lines", {}, rows.source.node, links, rows.target.node);
  let map = { source: [], target: [], weights: [], scale: 1 };
  let highlighted = null;

  function row(side, label) {
    const act = side === "source" ? onSource : onTarget;
    const list = element("ol.tokens", {
      "aria-label": label,
      "data-side": side,
      onkeydown: (event) => moveFocus(event),
      onmouseleave: () => hover(null),
      onfocusout: () => hover(null),
    });
    const find = (event) => event.target.closest?.("[data-index]");
    const point = (event) => {
      const token = find(event);
      if (token) hover({ [side]: Number(token.dataset.index) });
    };
    list.addEventListener("mouseover", point);
    list.addEventListener("focusin", point);
    list.addEventListener("click", (event) => {
      const token = find(event);
      if (token && act) act(Number(token.dataset.index), token);
    });
    return { node: list, tokens: [] };
  }

  function moveFocus(event) {
    const tokens = rows[event.currentTarget.dataset.side].tokens;
    const isDown = node.dataset.layout === "down";
    const isBackward = !isDown && event.currentTarget.dir === "rtl";
    const keys = isDown ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const [previous, next] = isBackward ? keys.reverse() : keys;
    const moved = step(event.key, tokens.indexOf(document.activeElement), tokens.length, { previous, next });
    if (moved === undefined) return;
    event.preventDefault();
    tokens.forEach((token, index) => (token.tabIndex = index === moved ? 0 : -1));
    tokens[moved].focus();
  }

  /**
   * Show a map.
   *
   * @param {Object} shown
   * @param {string[]} shown.source Source tokens.
   * @param {string[]} shown.target Target tokens.
   * @param {number[][]} shown.weights Rows by target token; rows may be missing.
   * @param {number} [shown.scale] Weight of the thickest line.
   * @param {number[]} [shown.logProbs] Log-probability of each target token.
   * @param {number} [shown.numForced] Number of first target tokens that were given.
   */
  function update(shown) {
    map = { scale: 1, logProbs: [], numForced: 0, ...shown };
    fillRow(rows.source, map.source, []);
    fillRow(rows.target, map.target, map.logProbs);
    arrange();
    hover(null);
  }

  function fillRow(row, tokens, logProbs) {
    row.node.dir = directionOf(tokens.map(shownToken).join(" "));
    const starts = wordStarts(tokens);
    const focused = row.tokens.indexOf(document.activeElement);
    row.tokens = tokens.map((token, index) =>
      element(
        "button.token",
        {
          type: "button",
          "data-index": index,
          "data-start": starts[index],
          "data-forced": row === rows.target && index < map.numForced,
          tabindex: index === Math.max(focused, 0) ? 0 : -1,
          title: row === rows.target && index < map.numForced ? "given by hand" : undefined,
        },
        element("span.text", { dir: "auto" }, shownToken(token)),
        element("span.weight", { "aria-hidden": "true" }),
      ),
    );
    row.tokens.forEach((token, index) => {
      const logProb = logProbs[index];
      if (logProb !== undefined && logProb !== null) token.style.setProperty("--probability", Math.exp(logProb));
      token.setAttribute("aria-label", describe(row === rows.target, index));
    });
    replace(row.node, row.tokens.map((token) => element("li", {}, token)));
    if (focused >= 0) row.tokens[Math.min(focused, row.tokens.length - 1)]?.focus({ preventScroll: true });
  }

  /** Describe a token with its largest weights. */
  function describe(isTarget, index) {
    const token = (isTarget ? map.target : map.source)[index];
    const logProb = isTarget ? map.logProbs[index] : undefined;
    const others = isTarget ? map.source : map.target;
    const weights = isTarget ? map.weights[index] ?? [] : map.weights.map((line) => line[index]);
    const largest = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3);
    const parts = [spokenToken(token)];
    if (logProb !== undefined && logProb !== null) parts.push(`probability ${percent(Math.exp(logProb))}`);
    const named = largest.filter((other) => weights[other] > MIN_WEIGHT * map.scale);
    if (named.length) {
      parts.push(`weights: ${named.map((other) => `${spokenToken(others[other])} ${showWeight(weights[other])}`).join(", ")}`);
    }
    return parts.join("; ");
  }

  const showWeight = (weight) => (map.isSigned ? weight.toFixed(2) : percent(weight));

  /** Choose two rows or two columns, and draw the lines. */
  function arrange() {
    node.dataset.layout = "across";
    node.dataset.hasSource = map.source.length > 0;
    const isWide = [rows.source, rows.target].some(({ node: list }) => list.scrollWidth > list.clientWidth + 1);
    if (isWide) node.dataset.layout = "down";
    draw();
  }

  function draw() {
    const box = node.getBoundingClientRect();
    const isDown = node.dataset.layout === "down";
    const ends = (row, edge) =>
      row.tokens.map((token) => {
        const rect = token.getBoundingClientRect();
        const middle = [rect.left + rect.width / 2 - box.left, rect.top + rect.height / 2 - box.top];
        return isDown ? [rect[edge] - box.left, middle[1]] : [middle[0], rect[edge] - box.top];
      });
    const sources = ends(rows.source, isDown ? "right" : "bottom");
    const targets = ends(rows.target, isDown ? "left" : "top");
    const size = { width: box.width, height: box.height };
    for (const [name, value] of Object.entries(size)) links.setAttribute(name, value);
    const paths = [];
    map.weights.forEach((weights, target) => {
      if (!targets[target]) return;
      const order = [...weights.keys()].sort((a, b) => Math.abs(weights[b]) - Math.abs(weights[a]));
      for (const source of order.slice(0, MAX_LINES)) {
        const share = Math.min(Math.abs(weights[source]) / map.scale, 1);
        if (share < MIN_WEIGHT || !sources[source]) break;
        paths.push(line(sources[source], targets[target], { isDown, share, weight: weights[source], source, target }));
      }
    });
    replace(links, paths);
    showHighlight();
  }

  function line([x, y], [u, v], { isDown, share, weight, source, target }) {
    const middle = isDown ? (x + u) / 2 : (y + v) / 2;
    const curve = isDown ? `${middle} ${y} ${middle} ${v}` : `${x} ${middle} ${u} ${middle}`;
    return svg("path", {
      d: `M${x} ${y}C${curve} ${u} ${v}`,
      class: weight < 0 ? "negative" : "positive",
      "stroke-width": (0.5 + 4.5 * share).toFixed(2),
      "stroke-opacity": (0.15 + 0.75 * share).toFixed(2),
      "data-source": source,
      "data-target": target,
    });
  }

  function hover(position) {
    if (position?.source === highlighted?.source && position?.target === highlighted?.target) return;
    highlighted = position;
    showHighlight();
    onHover?.(position);
  }

  function showHighlight() {
    node.dataset.isHovered = highlighted !== null;
    const side = highlighted && ("source" in highlighted ? "source" : "target");
    const index = highlighted?.[side];
    for (const path of links.children) {
      path.classList.toggle("is-lit", side !== null && Number(path.dataset[side]) === index);
    }
    const other = side === "source" ? "target" : "source";
    const weights = !side ? [] : side === "target" ? map.weights[index] ?? [] : map.weights.map((one) => one[index]);
    for (const name of ["source", "target"]) {
      rows[name].tokens.forEach((token, position) => {
        const weight = name === other ? weights[position] : undefined;
        const share = weight === undefined ? 0 : Math.min(Math.abs(weight) / map.scale, 1);
        token.classList.toggle("is-lit", name === side && position === index);
        token.classList.toggle("is-negative", weight < 0);
        token.style.setProperty("--weight", share.toFixed(3));
        token.lastChild.textContent = share >= 0.01 ? showWeight(weight) : "";
      });
    }
  }

  /** Light a position from outside. */
  function highlight(position) {
    highlighted = position;
    showHighlight();
  }

  new ResizeObserver(() => node.isConnected && arrange()).observe(node);
  document.fonts?.ready.then(() => node.isConnected && arrange());
  node.style.setProperty("--height", `${HEIGHT}px`);
  return { node, update, highlight, links, rows };
}

/** Return the plot as a standalone SVG element, with the tokens as text. */
export function linesImage({ node, links, rows }) {
  const box = node.getBoundingClientRect();
  const lines = links.cloneNode(true);
  const tokens = [...rows.source.tokens, ...rows.target.tokens].flatMap((token) => {
    const rect = token.getBoundingClientRect();
    const style = getComputedStyle(token);
    const [x, y] = [rect.left - box.left, rect.top - box.top];
    return [
      svg("rect", { x, y, width: rect.width, height: rect.height, rx: 4, fill: style.backgroundColor }),
      svg(
        "text",
        { x: x + rect.width / 2, y: y + rect.height / 2 + 5, "text-anchor": "middle", fill: style.color },
        token.firstChild.textContent,
      ),
    ];
  });
  [...lines.children].forEach((path, index) => {
    path.setAttribute("stroke", getComputedStyle(links.children[index]).stroke);
    path.setAttribute("fill", "none");
  });
  const size = { width: Math.ceil(box.width), height: Math.ceil(box.height) };
  return svg("svg", { ...size, "font-size": 15, "font-family": "sans-serif" }, [...lines.children], tokens);
}
