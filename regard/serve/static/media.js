/** Images, videos and recordings as the model reads them, with the weights of each word over them. */

import { button, element, isCalm, replace, step } from "./dom.js";
import { shownToken, spokenToken } from "./tokens.js";

/** Milliseconds that a word is shown when all words are played. */
const WORD = 700;

/**
 * Create the panel; it is hidden for texts.
 *
 * @param {Object} actions
 * @param {function(?Object)} actions.onStep Called with `{target: i}` when another word is shown.
 */
export function createMedia({ onStep }) {
  const node = element("section.card.media", { hidden: true, "aria-label": "Input of the model" });
  const stage = element("div.stage");
  const cursor = element("div.cursor", { hidden: true });
  const caption = element("p.step-caption", { "aria-live": "polite" });
  const words = element("div.word-tiles", { role: "listbox", "aria-label": "Words", onkeydown: (event) => walk(event) });
  let shown = null;
  let attention = null;
  let map = null;
  let current = 0;
  let overlays = [];
  let timer;
  let player = null;

  /** Show the input of an inspected prediction. */
  function update(inspected, upload) {
    clear();
    shown = inspected.input;
    attention = inspected.attention;
    if (!shown) return;
    node.hidden = false;
    player = shown.kind === "audio" && upload ? element("audio", { src: upload.data, controls: true, "aria-label": "Recording", ontimeupdate: () => moveCursor() }) : null;
    overlays = shown.images.map(() => element("canvas.overlay", { "aria-hidden": "true" }));
    const frames = shown.images.map((image, index) =>
      element("div.frame-image", { "data-kind": shown.kind }, element("img", { src: image, alt: names[shown.kind] }), overlays[index], cursor),
    );
    replace(stage, frames);
    const controls = element(
      "div.steps",
      {},
      button("‹", () => select(current - 1), { "aria-label": "Previous word", class: "small" }),
      button("Play", play, { class: "small" }),
      button("›", () => select(current + 1), { "aria-label": "Next word", class: "small" }),
      caption,
    );
    replace(node, element("h2", {}, titles[shown.kind]), element("div.media-body", { "data-kind": shown.kind }, element("div", {}, stage, controls, player), words));
  }

  /** Use the weights of a map, whose columns end with the cells or are times. */
  function setMap(next) {
    map = shown && next.weights.length ? next : null;
    if (!map) {
      replace(words);
      return;
    }
    if (shown.kind === "audio") replace(words, spans());
    else replace(words, map.target.map(tile));
    select(Math.min(current, map.target.length - 1), false);
  }

  /** Weights of a word over the cells of the image, or over times. */
  function cells(row) {
    const weights = map.weights[row] ?? [];
    return attention.grid ? weights.slice(attention.num_text_tokens) : weights;
  }

  function tile(token, row) {
    const canvas = element("canvas.overlay", { "aria-hidden": "true" });
    const images = shown.images;
    const image = images[Math.floor(images.length / 2)];
    drawOverlay(canvas, frameOf(row, Math.floor(images.length / 2)));
    return option(row, element("span.frame-image", {}, element("img", { src: image, alt: "" }), canvas), element("span", { dir: "auto" }, shownToken(token)));
  }

  /** Rows of the tokens over the time of a recording, below the spectrogram. */
  function spans() {
    return map.target.map((token, row) => {
      const canvas = element("canvas.span", { "aria-hidden": "true" });
      drawSpan(canvas, cells(row));
      return option(row, element("span", { dir: "auto" }, shownToken(token)), canvas);
    });
  }

  function option(row, ...children) {
    return element(
      "div.word-tile",
      { role: "option", tabindex: row === current ? 0 : -1, "aria-selected": "false", "aria-label": spokenToken(map.target[row]), onclick: () => select(row), onmouseenter: () => show({ target: row }) },
      children,
    );
  }

  function walk(event) {
    const moved = step(event.key, current, map?.target.length ?? 0) ?? step(event.key, current, map?.target.length ?? 0, { previous: "ArrowUp", next: "ArrowDown" });
    if (moved === undefined) return;
    event.preventDefault();
    select(moved);
    words.children[moved].focus();
  }

  function select(row, isStep = true) {
    if (!map) return;
    current = (row + map.target.length) % map.target.length;
    show({ target: current });
    if (isStep) onStep({ target: current });
  }

  /** Show the weights of the word of a position; of the chosen word without one. */
  function show(position) {
    if (!map || !shown) return;
    const row = Math.min(position?.target ?? current, map.target.length - 1);
    if (row < 0) return;
    [...words.children].forEach((one, index) => {
      one.setAttribute("aria-selected", String(index === row));
      one.tabIndex = index === current ? 0 : -1;
    });
    replace(caption, element("strong", { dir: "auto" }, shownToken(map.target[row])), ` — word ${row + 1} of ${map.target.length}`);
    if (shown.kind === "audio") drawSpan(overlays[0], cells(row), true);
    else overlays.forEach((overlay, frame) => drawOverlay(overlay, frameOf(row, frame)));
  }

  /** Return the weights of a word on one shown frame as `{rows, columns, values}`. */
  function frameOf(row, frame) {
    const weights = cells(row);
    const grid = attention.grid ?? gridOf(weights.length);
    const [rows, columns] = grid.slice(-2);
    const numFrames = grid.length === 3 ? grid[0] : 1;
    const number = Math.min(Math.floor((frame * numFrames) / shown.images.length), numFrames - 1);
    const size = rows * columns;
    const largest = Math.max(1e-9, ...weights.map(Math.abs));
    return { rows, columns, values: weights.slice(number * size, (number + 1) * size).map((one) => one / largest) };
  }

  function play() {
    clearInterval(timer);
    player?.play().catch(() => {}); // its control shows that the browser cannot play it
    select(0);
    timer = setInterval(() => {
      if (current === (map?.target.length ?? 0) - 1) clearInterval(timer);
      else select(current + 1);
    }, isCalm() ? 2 * WORD : WORD);
  }

  function moveCursor() {
    if (!player) return; // the last event of a recording that was removed
    cursor.hidden = false;
    cursor.style.left = `${(100 * player.currentTime) / (shown.seconds || 1)}%`;
  }

  function clear() {
    clearInterval(timer);
    player?.pause();
    [shown, attention, map, player, current] = [null, null, null, null, 0];
    cursor.hidden = true;
    node.hidden = true;
  }

  return { node, update, setMap, show, clear };
}

const titles = { image: "Image as the model reads it", video: "Frames as the model reads them", audio: "Spectrogram" };
const names = { image: "The image as the model reads it", video: "A frame as the model reads it", audio: "Spectrogram, low frequencies below" };

/** Return a square grid for cells without one. */
function gridOf(number) {
  const side = Math.round(Math.sqrt(number));
  return side * side === number ? [side, side] : [1, number];
}

/** Darken the cells with small weights; red cells are negative. */
function drawOverlay(canvas, { rows, columns, values }) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  values.forEach((value, index) => {
    const shade = value < 0 ? [190, 40, 30, 60 + 140 * -value] : [8, 10, 20, 205 * (1 - value)];
    pixels.data.set(shade, 4 * index);
  });
  context.putImageData(pixels, 0, 0);
}

/** Draw weights over time: as a band, or as an overlay that darkens the rest. */
function drawSpan(canvas, weights, isOverlay = false) {
  canvas.width = Math.max(weights.length, 1);
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, 1);
  const largest = Math.max(1e-9, ...weights.map(Math.abs));
  weights.forEach((weight, index) => {
    const share = Math.abs(weight) / largest;
    const color = weight < 0 ? [200, 50, 40] : [36, 99, 220];
    pixels.data.set(isOverlay ? [8, 10, 20, 190 * (1 - share)] : [...color, 255 * share], 4 * index);
  });
  context.putImageData(pixels, 0, 0);
}
