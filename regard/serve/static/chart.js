/** Line charts of several series, drawn as SVG, with a legend that shows the values at one position. */

import { announce, element, replace, svg } from "./dom.js";
import { exportButtons } from "./export.js";

const HEIGHT = 230;
const MARGIN = { top: 10, right: 14, bottom: 34, left: 52 };
/** Space above and below the curves, as a share of their height. */
const MARGIN_SHARE = 0.06;
/** Steps of an axis of times, in seconds. */
const TIMES = [1, 2, 5, 10, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];
/** Maximum number of points of a curve that are drawn. */
const MAX_POINTS = 800;
/** Maximum number of points that have a mark. */
const MAX_MARKS = 60;

/**
 * Create a chart.
 *
 * @param {Object} options
 * @param {string} options.title
 * @param {function(number): string} options.format Returns a value of the y axis for display.
 * @param {function(?number)} options.onPoint Called with the x that is pointed to, or null.
 */
export function createChart({ title, format, onPoint }) {
  // The image stays while its content changes, so that it keeps the focus.
  const image = svg("svg", {
    role: "img",
    tabindex: 0,
    height: HEIGHT,
    onpointermove: (event) => onPoint(positionOf(event)),
    onpointerleave: () => onPoint(null),
    onkeydown: (event) => walk(event),
    onblur: () => onPoint(null),
  });
  const frame = element("div.chart-frame", {}, image);
  const legend = element("ul.legend");
  const where = element("span.note");
  const name = () => title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const heading = element("h3", {}, title);
  const node = element(
    "section.card.chart",
    { "aria-label": title },
    element("div.card-head", {}, heading, where, exportButtons(() => image, name)),
    frame,
    legend,
  );
  let shown = { series: [], x: "", formatX: String, isLog: false };
  let plot = null;
  let pointed = null;

  /**
   * Show series.
   *
   * @param {Object} next
   * @param {Object[]} next.series `{name, label, color, points: [[x, y]], isThin, isMarked, best}`.
   * @param {string} next.x Label of the x axis.
   * @param {function(number): string} next.formatX Returns a value of the x axis for display.
   * @param {number[]} next.range Bounds of the x axis.
   * @param {boolean} [next.isTime] Whether the x axis has seconds.
   * @param {boolean} [next.isLog] Whether the y axis is logarithmic.
   */
  function update(next) {
    shown = { isLog: false, isTime: false, ...next };
    draw();
  }

  function draw() {
    if (!node.clientWidth) return;
    plot = layout(shown, frame.clientWidth);
    const size = { width: plot.width, viewBox: `0 0 ${plot.width} ${HEIGHT}`, "aria-label": summary() };
    for (const [key, value] of Object.entries(size)) image.setAttribute(key, value);
    replace(
      image,
      axes(),
      shown.series.map(drawSeries),
      svg("line.crosshair", { visibility: "hidden", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
      svg("g.dots"),
    );
    show(pointed);
  }

  function axes() {
    const { x, y } = plot;
    const [left, right, bottom] = [MARGIN.left, plot.width - MARGIN.right, HEIGHT - MARGIN.bottom];
    const rows = y.ticks.flatMap((tick) => [
      svg("line.grid", { x1: left, x2: right, y1: y.at(tick), y2: y.at(tick) }),
      svg("text.tick", { x: left - 7, y: y.at(tick) + 4, "text-anchor": "end" }, format(tick)),
    ]);
    const columns = x.ticks.map((tick) =>
      svg("text.tick", { x: x.at(tick), y: bottom + 16, "text-anchor": "middle" }, shown.formatX(tick)),
    );
    const label = svg("text.tick", { x: right, y: HEIGHT - 4, "text-anchor": "end" }, shown.x);
    return [...rows, svg("line.axis", { x1: left, x2: right, y1: bottom, y2: bottom }), ...columns, label];
  }

  function drawSeries(one) {
    const pixels = thin(visible(one)).map(([x, y]) => [plot.x.at(x), plot.y.at(y)]);
    const path = pixels.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const hasMarks = one.isMarked && pixels.length <= MAX_MARKS;
    const isSingle = pixels.length === 1;
    const marks = hasMarks || isSingle ? pixels.map(([cx, cy]) => svg("circle.mark", { cx, cy, r: 2.6 })) : [];
    const best = one.best && visible({ points: [one.best] })[0];
    const ring = best ? [svg("circle.best", { cx: plot.x.at(best[0]), cy: plot.y.at(best[1]), r: 6 })] : [];
    return svg("g", { class: `series series-${one.color}${one.isThin ? " is-thin" : ""}` }, svg("path", { d: path }), marks, ring);
  }

  const visible = ({ points }) => (shown.isLog ? points.filter(([, y]) => y > 0) : points);

  function positionOf(event) {
    const box = image.getBoundingClientRect();
    return plot.x.value(event.clientX - box.left);
  }

  /** All positions with a point, in order. */
  function positions() {
    return [...new Set(shown.series.flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  }

  function walk(event) {
    if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    const all = positions();
    if (!all.length) return;
    event.preventDefault();
    const now = pointed === null ? all.length : nearest(all, pointed);
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: all.length - 1 };
    onPoint(all[Math.min(Math.max(moves[event.key], 0), all.length - 1)]);
    announce(`${where.textContent}: ${[...legend.children].map((item) => [...item.children].map((part) => part.textContent).join(" ").trim()).join("; ")}`);
  }

  /** Show the values at a position, or the last ones. */
  function show(x) {
    pointed = x;
    if (!plot) return;
    const found = shown.series.map((one) => {
      if (!one.points.length) return null;
      return x === null ? one.points.at(-1) : one.points[nearest(one.points, x, ([value]) => value)];
    });
    const at = x === null ? null : Math.min(Math.max(plot.x.at(x), MARGIN.left), plot.width - MARGIN.right);
    const crosshair = image.querySelector(".crosshair");
    crosshair.setAttribute("visibility", x === null ? "hidden" : "visible");
    if (x !== null) ["x1", "x2"].forEach((side) => crosshair.setAttribute(side, at));
    replace(
      image.querySelector(".dots"),
      x === null
        ? []
        : found.map((one, index) =>
            one && (!shown.isLog || one[1] > 0)
              ? svg("circle", { cx: plot.x.at(one[0]), cy: plot.y.at(one[1]), r: 4, class: `dot series-${shown.series[index].color}` })
              : null,
          ),
    );
    replace(where, x === null ? "last values" : `${shown.x} ${shown.formatX(x)}`);
    replace(
      legend,
      shown.series.map((one, index) =>
        element(
          "li",
          {},
          element(`span.swatch.series-${one.color}${one.isThin ? ".is-thin" : ""}`, { "aria-hidden": "true" }),
          element("span.legend-name", {}, one.label),
          element("span.number", {}, found[index] ? format(found[index][1]) : "–"),
        ),
      ),
    );
  }

  function summary() {
    const parts = shown.series
      .filter((one) => one.points.length)
      .map((one) => `${one.label} from ${format(one.points[0][1])} to ${format(one.points.at(-1)[1])}`);
    return `${title} by ${shown.x}. ${parts.join("; ")}. Arrow keys move along the curves.`;
  }

  new ResizeObserver(() => draw()).observe(node);
  return { node, update, show, heading };
}

/** Return the index of the item whose value is nearest to a wanted one, of items in ascending order. */
function nearest(items, wanted, valueOf = (item) => item) {
  let [low, high] = [0, items.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueOf(items[middle]) < wanted) low = middle + 1;
    else high = middle;
  }
  const isBefore = low > 0 && wanted - valueOf(items[low - 1]) < valueOf(items[low]) - wanted;
  return isBefore ? low - 1 : low;
}

/** Return fewer points of a curve: the lowest and the highest of each part of it. */
export function thin(points, max = MAX_POINTS) {
  if (points.length <= max) return points;
  const size = Math.ceil((2 * points.length) / max);
  const kept = [points[0]];
  for (let start = 0; start < points.length; start += size) {
    const part = points.slice(start, start + size);
    const [low, high] = part.reduce(
      ([lowest, highest], one) => [one[1] < lowest[1] ? one : lowest, one[1] > highest[1] ? one : highest],
      [part[0], part[0]],
    );
    kept.push(...(part.indexOf(low) <= part.indexOf(high) ? [low, high] : [high, low]));
  }
  return [...kept, points.at(-1)];
}

function layout({ series, isLog, isTime, range }, available) {
  const width = Math.max(available, 200);
  const points = series.flatMap((one) => one.points).filter(([, y]) => !isLog || y > 0);
  const down = bounds(points.map(([, y]) => (isLog ? Math.log10(y) : y)));
  const x = scale(range, [MARGIN.left, width - MARGIN.right]);
  const y = scale(down, [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const numColumns = Math.max(3, Math.floor(width / 110));
  return {
    width,
    x: { ...x, ticks: ticks(range, numColumns, isTime ? TIMES : undefined) },
    y: isLog
      ? { at: (value) => y.at(Math.log10(value)), ticks: logTicks(down) }
      : { at: y.at, ticks: ticks(down, 5) },
  };
}

/** Return the bounds of values, with a margin. */
function bounds(values) {
  const [low, high] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  if (low > high) return [0, 1];
  const size = high - low || Math.abs(high) || 1;
  return high === low ? [low - size / 2, high + size / 2] : [low - MARGIN_SHARE * size, high + MARGIN_SHARE * size];
}

function scale([low, high], [start, end]) {
  const factor = (end - start) / (high - low);
  return { at: (value) => start + (value - low) * factor, value: (pixel) => low + (pixel - start) / factor };
}

/** Return round numbers within bounds. */
function ticks([low, high], num, steps) {
  const rough = (high - low) / num;
  const power = 10 ** Math.floor(Math.log10(rough));
  const rounded = [1, 2, 5, 10].map((factor) => factor * power);
  const step = [...(steps ?? []), ...rounded].find((one) => one >= rough * 0.999);
  const found = [];
  for (let index = Math.ceil(low / step); index * step <= high + step * 1e-9; index++) {
    found.push(Number((index * step).toPrecision(12)));
  }
  return found;
}

function logTicks([low, high]) {
  const found = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
    for (const factor of high - low > 2.5 ? [1] : [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (Math.log10(value) >= low && Math.log10(value) <= high) found.push(value);
    }
  }
  return found;
}
