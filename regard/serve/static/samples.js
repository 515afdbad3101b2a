/** Samples of a training: predictions of one example at each validation, with their attention weights. */

import { announce, button, element, isCalm, percent, replace, select } from "./dom.js";
import { exportButtons } from "./export.js";
import { createHeatmap, paint } from "./heatmap.js";
import { readState, writeState } from "./state.js";
import { changedTokens, shownToken } from "./tokens.js";
import { formatInteger, validationsOf } from "./training_data.js";

/** Time that each validation is shown, in milliseconds. */
const PLAY_MS = 700;
/** Number of predictions in the list before all are asked for. */
const NUM_LISTED = 12;

/** Create the samples. */
export function createSamples() {
  const controls = element("div.controls");
  const texts = element("dl.sample-texts");
  const slider = element("input", { type: "range", min: 0, step: 1, "aria-label": "Validation", oninput: () => choose(Number(slider.value)) });
  const play = button("Play", () => (timer ? stop() : start()), { class: "small" });
  const follow = element("input", { type: "checkbox", onchange: () => choose(follow.checked ? validations.length - 1 : index()) });
  const where = element("output.number");
  const heatmap = createHeatmap();
  const tiles = element("div.tiles");
  const aboutMap = element("p.note");
  const exports = exportButtons(heatmap.image, () => "attention");
  const map = element(
    "div.sample-map",
    {},
    element(
      "div.player",
      {},
      play,
      slider,
      where,
      element("label.check", {}, follow, element("span", {}, "Follow the newest")),
    ),
    element("div.card-head", {}, aboutMap, exports),
    heatmap.node,
    tiles,
  );
  const list = element("ol.predictions", { reversed: true });
  const more = button("", () => ((isAllListed = true), showList()), { class: "plain small" });
  const empty = element("p.note");
  const content = element("div.sample-columns", {}, map, element("div", {}, element("h4", {}, "Predictions, the newest first"), list, more));
  const node = element("section.card.samples", { "aria-label": "Samples" }, element("h3", {}, "Samples"), controls, empty, texts, content);
  let trainings = [];
  let training = null;
  let example = Number(readState().example ?? 0) || 0;
  let at = Number(readState().at ?? NaN);
  let validations = [];
  let timer = null;
  let isAllListed = false;

  /** Show the samples of one of several trainings. */
  function update(next) {
    trainings = next;
    const wanted = training?.name ?? readState().run;
    const changed = trainings.find((one) => one.name === wanted) ?? trainings.find((one) => one.samples.length) ?? trainings[0] ?? null;
    const isOther = changed?.name !== training?.name;
    training = changed;
    showExample(isOther);
  }

  function showExample(isOther) {
    const examples = training ? [...new Set(training.samples.map((sample) => sample.example))].sort((a, b) => a - b) : [];
    if (examples.length && !examples.includes(example)) example = examples[0];
    const before = validations;
    validations = training ? validationsOf(training, example) : [];
    if (timer && (isOther || validations.length < before.length)) stop();
    const isNew = isOther || before.length !== validations.length || before.at(-1) !== validations.at(-1);
    node.hidden = !training;
    content.hidden = texts.hidden = !validations.length;
    const isRunning = training?.about.is_running;
    replace(empty, isRunning ? "This training has no samples yet: they are written at each validation." : "This training has no samples.");
    empty.hidden = validations.length > 0;
    showControls(examples);
    if (!isNew || !validations.length) return;
    const [{ source, reference }] = validations;
    replace(texts, source === null ? [] : field("Source", source), field("Reference", reference));
    showList();
    showMap();
  }

  const field = (name, text) => [element("dt", {}, name), element("dd", { dir: "auto" }, text)];

  function showControls(examples) {
    const key = JSON.stringify([trainings.map((one) => one.name), training?.name, examples, example]);
    if (controls.dataset.key === key) return;
    controls.dataset.key = key;
    const run = select("Run", trainings.map((one) => [one.name, one.name]), {
      value: training?.name,
      onchange: (name) => {
        writeState({ run: name });
        training = trainings.find((one) => one.name === name);
        showExample(true);
      },
    });
    const number = select("Example", examples.map((one) => [String(one), `Example ${one + 1}`]), {
      value: String(example),
      onchange: (value) => {
        example = Number(value);
        writeState({ example: value });
        showExample(true);
      },
    });
    replace(controls, trainings.length > 1 ? run : null, examples.length > 1 ? number : null);
  }

  /** Index of the validation that is shown: the newest, unless another one was chosen. */
  function index() {
    const found = Number.isNaN(at) ? -1 : validations.findIndex((one) => one.step === at);
    return found < 0 ? validations.length - 1 : found;
  }

  /** Show a validation; the last one is followed by later ones. */
  function choose(position) {
    const isLast = position >= validations.length - 1;
    at = isLast ? NaN : validations[position].step;
    writeState({ at: isLast ? "" : String(at) });
    showMap();
  }

  function showMap() {
    const position = index();
    const shown = validations[position];
    const { attention } = shown;
    slider.max = validations.length - 1;
    slider.value = position;
    slider.disabled = play.disabled = validations.length < 2;
    slider.setAttribute("aria-valuetext", `step ${formatInteger(shown.step)}`);
    follow.checked = Number.isNaN(at);
    replace(where, `step ${formatInteger(shown.step)}`);
    if (list.children.length < validations.length - position) showList();
    markListed(shown.step);
    const hasMaps = validations.some((one) => one.attention);
    replace(
      aboutMap,
      attention
        ? `${attention.kind[0].toUpperCase()}${attention.kind.slice(1)}${attention.kind === "attention" ? " weights, mean of layers and heads" : ""}. Rows: prediction; columns: ${attention.grid ? "cells of the image" : "source"}.`
        : hasMaps
          ? "The map of this validation is too large to be kept."
          : "This model has no attention weights.",
    );
    const parts = attention ? split(attention) : { text: null, cells: null };
    // The same colours at all validations; a cell of an image never gets much of the weight.
    const scale = attention?.grid ? Math.max(...validations.map((one) => largest(one.attention)), 1e-6) : 1;
    heatmap.node.hidden = exports.hidden = !parts.text;
    if (parts.text) heatmap.update({ ...parts.text, scale });
    showTiles(parts.cells, attention, scale);
  }

  /** Mark a validation in the list, and scroll the list to it. */
  function markListed(step) {
    for (const item of list.children) {
      const isCurrent = Number(item.dataset.step) === step;
      item.toggleAttribute("data-current", isCurrent);
      if (!isCurrent) continue;
      const [top, bottom] = [item.offsetTop - list.offsetTop, item.offsetTop - list.offsetTop + item.offsetHeight];
      if (top < list.scrollTop) list.scrollTop = top;
      else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    }
  }

  /** Show the weights of each token over the cells of an image. */
  function showTiles(cells, attention, scale) {
    tiles.hidden = !cells;
    if (!cells) return replace(tiles);
    const [rows, columns] = cells.grid;
    replace(
      tiles,
      attention.target.map((token, number) => {
        const weights = Array.from({ length: rows }, (_, row) => cells.weights[number].slice(row * columns, (row + 1) * columns));
        const image = paint({ weights, source: Array(columns).fill(""), target: Array(rows).fill(""), scale });
        const label = shownToken(token);
        return element("figure.cell-tile", {}, element("img", { src: image, alt: `Weights of ${label} over the image` }), element("figcaption", { dir: "auto" }, label));
      }),
    );
    return tiles;
  }

  function showList() {
    const focused = document.activeElement?.closest?.(".predictions li")?.dataset.step;
    const order = [...validations.keys()].reverse();
    // At least up to the one that is shown.
    const listed = isAllListed ? order : order.slice(0, Math.max(NUM_LISTED, validations.length - index()));
    replace(
      list,
      listed.map((position) => {
        const { step, prediction, probability } = validations[position];
        const before = position ? validations[position - 1].prediction : null;
        const isRight = prediction.trim() === validations[position].reference.trim();
        return element(
          "li",
          { "data-step": step, "data-right": isRight },
          button(
            [
              element("span.step.number", {}, formatInteger(step)),
              element("span.text", { dir: "auto" }, marked(prediction, before)),
              probability === undefined ? null : element("span.number", {}, percent(probability)),
              isRight ? element("span.right", { title: "equal to the reference" }, "✓", element("span.unseen", {}, " equal to the reference")) : null,
            ],
            () => choose(position),
            { class: "plain prediction-row" },
          ),
        );
      }),
    );
    if (focused) list.querySelector(`[data-step="${focused}"] button`)?.focus({ preventScroll: true });
    more.hidden = listed.length === order.length;
    replace(more, `Show all ${formatInteger(order.length)}`);
  }

  function start() {
    let position = index() >= validations.length - 1 ? 0 : index();
    choose(position);
    timer = setInterval(
      () => {
        position = Math.min(position + 1, validations.length - 1);
        choose(position);
        if (position >= validations.length - 1) stop();
      },
      isCalm() ? 2 * PLAY_MS : PLAY_MS,
    );
    replace(play, "Pause");
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    replace(play, "Play");
    if (validations.length) announce(`Step ${formatInteger(validations[index()].step)}`);
  }

  return { node, update, close: () => clearInterval(timer) };
}

/** Return a text whose words that differ from those of another text are marked. */
function marked(text, before) {
  if (!text) return [element("i", {}, "(empty)")];
  if (before === null) return [text];
  const words = text.split(/\s+/).filter(Boolean);
  const isChanged = changedTokens(words, before.split(/\s+/).filter(Boolean));
  const parts = [];
  for (let start = 0; start < words.length; ) {
    let end = start + 1;
    while (end < words.length && isChanged[end] === isChanged[start]) end++;
    const part = words.slice(start, end).join(" ");
    parts.push(start ? " " : "", isChanged[start] ? element("mark", {}, part) : part);
    start = end;
  }
  return parts;
}

const largest = (attention) => Math.max(0, ...(attention?.weights ?? []).map((row) => Math.max(...row)));

/** Return the part of a map over texts, and the part over the cells of an image. */
function split(attention) {
  if (!attention.grid) return { text: attention, cells: null };
  const grid = [attention.grid.slice(0, -1).reduce((a, b) => a * b, 1), attention.grid.at(-1)];
  const numText = attention.source.length - grid[0] * grid[1];
  const cells = { grid, weights: attention.weights.map((row) => row.slice(numText)) };
  if (!numText) return { text: null, cells };
  const weights = attention.weights.map((row) => row.slice(0, numText));
  return { text: { ...attention, source: attention.source.slice(0, numText), weights }, cells };
}
