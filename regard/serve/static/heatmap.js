/** Heat maps: rows are tokens of the prediction, columns are inputs. */

import { announce, element, onThemeChange, percent, replace, svg } from "./dom.js";
import { shownToken, spokenToken } from "./tokens.js";

/** Bounds of the size of a cell, and of the width of labels, in pixels. */
const MIN_CELL = 9;
const MAX_CELL = 34;
const MAX_LABEL = 110;
const LETTER = 7.4;

/**
 * Create a heat map.
 *
 * @param {Object} [actions]
 * @param {function(number, number)} [actions.onCell] Called when a cell is chosen: row, column.
 * @param {function(?Object)} [actions.onHover] Called with `{target: i, source: j}` or null.
 */
export function createHeatmap({ onCell, onHover } = {}) {
  const readout = element("p.readout", {}, "\u00a0");
  const frame = element("div.scroll");
  const node = element("div.heatmap", {}, frame, readout);
  let map = null;
  let cell = [0, 0];
  let plot = null;

  /**
   * Show a map.
   *
   * @param {Object} shown
   * @param {string[]} shown.source Labels of the columns.
   * @param {string[]} shown.target Labels of the rows.
   * @param {number[][]} shown.weights The cells.
   * @param {number} [shown.scale] The value with the strongest colour.
   * @param {boolean} [shown.isSigned] Whether negative values have another colour.
   * @param {string} [shown.label] What the values are.
   */
  function update(shown) {
    map = { scale: 1, isSigned: false, label: "weight", ...shown };
    const ends = [map.target.length - 1, map.source.length - 1];
    cell = cell.map((index, axis) => Math.max(0, Math.min(index, ends[axis])));
    draw();
  }

  function draw() {
    if (!map || !node.clientWidth) return;
    plot = layout(map, node.clientWidth);
    const chart = svg(
      "svg",
      {
        width: plot.width,
        height: plot.height,
        viewBox: `0 0 ${plot.width} ${plot.height}`,
        role: "img",
        tabindex: 0,
        "aria-label": summary(),
        onpointermove: (event) => point(cellAt(event)),
        onpointerleave: () => point(null),
        onclick: (event) => choose(cellAt(event)),
        onkeydown: (event) => walk(event),
        onfocus: () => point(cell),
        onblur: () => point(null),
      },
      svg("image", {
        href: paint(map),
        x: plot.left,
        y: plot.top,
        width: plot.cell * map.source.length,
        height: plot.cell * map.target.length,
        preserveAspectRatio: "none",
        "image-rendering": "pixelated",
      }),
      columnLabels(),
      rowLabels(),
      svg("rect.cross", { visibility: "hidden" }),
      svg("rect.cross", { visibility: "hidden" }),
      svg("rect.cell", { visibility: "hidden", width: plot.cell, height: plot.cell }),
    );
    replace(frame, chart);
  }

  const textOptions = () => ({ "font-size": Math.min(13, plot.cell + 2), "font-family": "sans-serif", fill: "currentColor" });

  function columnLabels() {
    return map.source.map((token, column) => {
      const x = plot.left + (column + 0.62) * plot.cell;
      return svg(
        "text",
        { ...textOptions(), transform: `translate(${x} ${plot.top - 5}) rotate(-55)`, "data-column": column },
        clip(shownToken(token)),
      );
    });
  }

  function rowLabels() {
    return map.target.map((token, row) =>
      svg(
        "text",
        {
          ...textOptions(),
          x: plot.left - 6,
          y: plot.top + (row + 0.5) * plot.cell + Math.min(13, plot.cell + 2) * 0.35,
          "text-anchor": "end",
          "data-row": row,
        },
        clip(shownToken(token)),
      ),
    );
  }

  function cellAt(event) {
    const box = frame.firstChild.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - plot.left) / plot.cell);
    const row = Math.floor((event.clientY - box.top - plot.top) / plot.cell);
    const isInside = row >= 0 && row < map.target.length && column >= 0 && column < map.source.length;
    return isInside ? [row, column] : null;
  }

  function walk(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter" || event.key === " ") choose(cell);
    const move = moves[event.key];
    if (!move && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (!move) return;
    const sizes = [map.target.length, map.source.length];
    point(cell.map((index, axis) => Math.min(Math.max(index + move[axis], 0), sizes[axis] - 1)));
    announce(readout.textContent);
  }

  function choose(position) {
    if (position && onCell) onCell(...position);
  }

  function point(position) {
    if (position) cell = position;
    show(position && { target: position[0], source: position[1] });
    onHover?.(position && { target: position[0], source: position[1] });
  }

  /** Mark a cell, a row or a column. */
  function show(position) {
    const chart = frame.firstChild;
    if (!chart) return;
    const [across, down, box] = chart.querySelectorAll("rect");
    const hasRow = position?.target !== undefined && position.target < map.target.length;
    const hasColumn = position?.source !== undefined && position.source < map.source.length;
    const y = plot.top + (position?.target ?? 0) * plot.cell;
    const x = plot.left + (position?.source ?? 0) * plot.cell;
    set(across, hasRow, { x: plot.left, y, width: plot.cell * map.source.length, height: plot.cell });
    set(down, hasColumn, { x, y: plot.top, width: plot.cell, height: plot.cell * map.target.length });
    set(box, hasRow && hasColumn, { x, y });
    for (const text of chart.querySelectorAll("text")) {
      const isLit =
        (hasRow && Number(text.dataset.row) === position.target) ||
        (hasColumn && Number(text.dataset.column) === position.source);
      text.classList.toggle("is-lit", isLit);
    }
    replace(readout, hasRow && hasColumn ? describe(position.target, position.source) : "\u00a0");
  }

  const describe = (row, column) =>
    `${spokenToken(map.target[row])} ← ${spokenToken(map.source[column])}: ${format(map.weights[row]?.[column])}`;

  const format = (value) =>
    value === undefined ? "no weight" : map.isSigned ? `${map.label} ${value.toFixed(3)}` : `${map.label} ${percent(value)}`;

  function summary() {
    const rows = map.target.slice(0, 30).map((token, row) => {
      const weights = map.weights[row] ?? [];
      const best = weights.indexOf(Math.max(...weights));
      return best < 0 ? "" : `${spokenToken(token)}: ${spokenToken(map.source[best])} ${format(weights[best])}`;
    });
    return `Map of ${map.target.length} rows and ${map.source.length} columns. Largest of each row: ${rows.join("; ")}`;
  }

  new ResizeObserver(() => draw()).observe(node);
  onThemeChange(node, draw);
  return { node, update, show, image: () => frame.firstChild };
}

function set(rect, isShown, box) {
  rect.setAttribute("visibility", isShown ? "visible" : "hidden");
  if (isShown) for (const [name, value] of Object.entries(box)) rect.setAttribute(name, value);
}

const clip = (text) => (text.length > 16 ? `${text.slice(0, 15)}…` : text);

/** Return the sizes of a map for the width that there is. */
function layout(map, available) {
  const longest = (labels) => Math.min(Math.max(...labels.map((one) => clip(shownToken(one)).length), 1) * LETTER + 10, MAX_LABEL);
  const left = longest(map.target);
  const top = longest(map.source) * 0.85 + 4;
  const slant = 0.5 * longest(map.source);
  const cell = Math.max(MIN_CELL, Math.min(MAX_CELL, Math.floor((available - left - slant) / map.source.length)));
  return {
    left,
    top,
    cell,
    width: Math.ceil(left + cell * map.source.length + slant),
    height: Math.ceil(top + cell * map.target.length + 2),
  };
}

/** Return the colours of a map as a data URL with one pixel per cell. */
export function paint({ weights, source, target, scale, isSigned }) {
  const canvas = element("canvas", { width: Math.max(source.length, 1), height: Math.max(target.length, 1) });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  const ramp = colors();
  weights.forEach((row, y) => {
    row.forEach((weight, x) => {
      const share = Math.min(Math.abs(weight) / scale, 1);
      const color = isSigned && weight < 0 ? ramp.negative : ramp.positive;
      pixels.data.set(mix(ramp.none, color, share), 4 * (y * canvas.width + x));
    });
  });
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

/** Return the colours of maps in the current theme as [red, green, blue]. */
function colors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).match(/[\d.]+/g).slice(0, 3).map(Number);
  return { none: read("--map-none"), positive: read("--map-positive"), negative: read("--map-negative") };
}

function mix(from, to, share) {
  const amount = share ** 0.75;
  return [...from.map((value, index) => value + (to[index] - value) * amount), 255];
}
