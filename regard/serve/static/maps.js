/** Maps of a prediction: lines, heat map, and all layers and heads, for attention or attributions. */

import { isCancelled } from "./api.js";
import { button, element, onThemeChange, replace, select } from "./dom.js";
import { attentionMap, attentionSize, attributionMap, hasAttention, METHODS } from "./explanation.js";
import { exportButtons } from "./export.js";
import { createHeatmap, paint } from "./heatmap.js";
import { createLines, linesImage } from "./lines.js";
import { readState, writeState } from "./state.js";

/** Scale of the lines while a search is in progress. */
const PARTIAL_SCALE = 0.6;

/**
 * Create the maps.
 *
 * @param {Object} actions
 * @param {function(number, Element)} actions.onSource Called when a source token is chosen.
 * @param {function(number, Element)} actions.onTarget Called when a target token is chosen.
 * @param {function(number, number, Element)} actions.onCell Called when a cell is chosen.
 * @param {function(?Object)} actions.onHover Called with the position that is hovered.
 * @param {function(Object)} actions.onMap Called when another map is shown.
 * @param {function()} actions.onChoose Called when other weights are chosen.
 * @param {function(Error)} actions.onError Called with errors of requests.
 */
export function createMaps({ onSource, onTarget, onCell, onHover, onMap, onChoose, onError }) {
  const chosen = readChoice();
  let shown = null;
  let map = null;
  let numRequests = 0;
  const lines = createLines({
    onSource,
    onTarget,
    onHover(position) {
      heatmap.show(position);
      onHover(position);
    },
  });
  const heatmap = createHeatmap({
    onCell: (row, column) => onCell(row, column, heatmap.node),
    onHover(position) {
      lines.highlight(position && { target: position.target });
      onHover(position);
    },
  });
  const choice = element("div.controls", { role: "group", "aria-label": "Shown weights" });
  const hint = element("p.note");
  const tiles = element("div.head-maps");
  const heads = element("div.heads", {}, element("h3", {}, "Layers (rows) and heads"), tiles);
  const linesCard = element(
    "section.card",
    { "aria-label": "Weights between tokens" },
    element("div.card-head", {}, choice, exportButtons(() => linesImage(lines), () => "weights")),
    lines.node,
  );
  const heatmapCard = element(
    "section.card",
    { "aria-label": "Heat map" },
    element("div.card-head", {}, element("h2", {}, "Heat map"), exportButtons(heatmap.image, () => "heat-map")),
    element("div.map-body", {}, heatmap.node, heads),
    hint,
  );
  const node = element("div.view", {}, linesCard, heatmapCard);

  function readChoice() {
    const { method, layer, head } = readState();
    const index = (text) => (/^\d+$/.test(text ?? "") ? Number(text) : null);
    const isKnown = METHODS.some(([key]) => key === method);
    return { method: isKnown ? method : "attention", layer: index(layer), head: index(head) };
  }

  /** Forget the choice, for another model. */
  function reset() {
    Object.assign(chosen, { method: "attention", layer: null, head: null });
    writeState({ method: "", layer: "", head: "" });
    clear();
  }

  function clear() {
    numRequests++;
    [shown, map] = [null, null];
    linesCard.hidden = heatmapCard.hidden = true;
  }

  /** Show the tokens of a search in progress, with the weights that there are. */
  function showPartial({ tokens, weights = [], source = [] }) {
    linesCard.hidden = false;
    lines.update({ source: source.length ? source : map?.source ?? [], target: tokens, weights, scale: PARTIAL_SCALE });
  }

  /**
   * Show the maps of a prediction.
   *
   * @param {Object} next
   * @param {Object} next.model The model, as of `/v1/models`.
   * @param {string|Object} next.source The source of the request.
   * @param {Object} next.inspected The reply of `/v1/inspect`.
   * @param {number} next.numForced Number of first tokens that were given.
   * @param {AbortSignal} next.signal Cancels further requests.
   */
  async function show(next) {
    shown = next;
    const [numLayers, numHeads] = attentionSize(next.inspected);
    if (chosen.layer >= numLayers) chosen.layer = null;
    if (chosen.head >= numHeads) chosen.head = null;
    if (!methods().some(([key]) => key === chosen.method)) chosen.method = methods()[0]?.[0] ?? "attention";
    showChoice();
    await showMap();
  }

  /** Explanations that the model has; some attentions are too large for attributions. */
  function methods() {
    const { inspected, model } = shown;
    return METHODS.filter(([key]) => (key === "attention" ? hasAttention(inspected) : model.features.includes("attribution")));
  }

  function showChoice() {
    const [numLayers, numHeads] = chosen.method === "attention" ? attentionSize(shown.inspected) : [0, 0];
    const numbered = (name, number) => [["", "mean"], ...Array.from({ length: number }, (_, index) => [String(index), `${name} ${index + 1}`])];
    const index = (name, number) =>
      number > 1
        ? select(name === "layer" ? "Layer" : "Head", numbered(name, number), {
            value: chosen[name] === null ? "" : String(chosen[name]),
            onchange: (value) => choose({ [name]: value === "" ? null : Number(value) }),
          })
        : null;
    const method =
      methods().length > 1
        ? select("Explanation", methods(), { value: chosen.method, onchange: (value) => choose({ method: value }) })
        : null;
    replace(choice, method, index("layer", numLayers), index("head", numHeads));
  }

  function choose(changes) {
    Object.assign(chosen, changes);
    const { method, layer, head } = chosen;
    writeState({ method: method === "attention" ? "" : method, layer, head });
    onChoose();
    showChoice();
    showMap();
  }

  async function findMap() {
    const { inspected, model, source, signal } = shown;
    const [best] = inspected.predictions;
    if (chosen.method !== "attention") {
      return attributionMap({ model: model.id, source, target: best.text, method: chosen.method, signal });
    }
    if (hasAttention(inspected)) {
      return { ...attentionMap(inspected, chosen.layer, chosen.head), logProbs: best.token_log_probs };
    }
    return plainMap();
  }

  /** Return the tokens without weights. */
  function plainMap() {
    const { attention, predictions } = shown.inspected;
    return { source: attention?.source ?? [], target: predictions[0].tokens, weights: [], logProbs: predictions[0].token_log_probs };
  }

  async function showMap() {
    const [{ inspected }, request] = [shown, ++numRequests];
    let found = plainMap();
    try {
      found = await findMap();
    } catch (error) {
      if (isCancelled(error)) return;
      if (request === numRequests) onError(error);
    }
    if (request !== numRequests) return; // another one was chosen
    map = found;
    // Cells of an image and positions of a recording are shown over them.
    const numText = inspected.input ? inspected.attention.num_text_tokens : map.source.length;
    const isRecording = inspected.input?.kind === "audio";
    const texts = isRecording ? { source: [], weights: [] } : firstColumns(map, numText);
    linesCard.hidden = !map.target.length;
    lines.update({ ...map, ...texts, numForced: shown.numForced });
    heatmapCard.hidden = !map.weights.length || Boolean(inspected.attention?.grid);
    replace(hint, `Rows: prediction; columns: source.${canEdit() ? " Choose a cell, or press Enter on it, to set its weight by hand." : ""}`);
    heatmap.update(map);
    showHeads();
    onMap(map);
  }

  /** Whether the weights of the shown map can be set by hand. */
  function canEdit() {
    const { inspected, model } = shown;
    const isAttention = chosen.method === "attention" && inspected.attention?.kind === "attention";
    return isAttention && hasAttention(inspected) && !inspected.attention.is_mean && model.features.includes("what-if");
  }

  /** Small maps of all layers and heads; a click chooses one, or the mean again. */
  function showHeads() {
    const [numLayers, numHeads] = attentionSize(shown.inspected);
    heads.hidden = chosen.method !== "attention" || numLayers * numHeads < 2;
    tiles.style.setProperty("--columns", numHeads);
    const maps = heads.hidden ? [] : Array.from({ length: numLayers * numHeads }, (_, index) => [Math.floor(index / numHeads), index % numHeads]);
    replace(tiles, maps.map(([layer, head]) => tile(layer, head)));
  }

  function tile(layer, head) {
    const isChosen = chosen.layer === layer && chosen.head === head;
    const toggle = () => choose(isChosen ? { layer: null, head: null } : { layer, head });
    const image = element("img", { src: paint(attentionMap(shown.inspected, layer, head)), alt: "" });
    const label = `Layer ${layer + 1}, head ${head + 1}`;
    return button(image, toggle, { class: "tile", "aria-pressed": String(isChosen), "aria-label": label, title: label });
  }

  onThemeChange(node, () => shown && showHeads());
  return { node, reset, clear, showPartial, show, canEdit, highlight: lines.highlight, map: () => map, chosen };
}

/** Return the first columns of a map. */
function firstColumns(map, number) {
  return { source: map.source.slice(0, number), weights: map.weights.map((row) => row.slice(0, number)) };
}
