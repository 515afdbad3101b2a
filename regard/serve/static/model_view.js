/** The view of one model: predict, see the weights, change something, and walk the search. */

import { errorLine, isCancelled, post, stream } from "./api.js";
import { announce, button, debounce, element, isCalm, percent, replace, select, step } from "./dom.js";
import { attentionMap, attentionSize, attributionMap, hasAttention, METHODS } from "./explanation.js";
import { exportButtons } from "./export.js";
import { createHeatmap, paint } from "./heatmap.js";
import { createLines, linesImage } from "./lines.js";
import { createMedia } from "./media.js";
import { createMediaInput } from "./media_input.js";
import { createPopover } from "./popover.js";
import { readState, writeState } from "./state.js";
import { directionOf, shownToken, spokenToken, wordIndices } from "./tokens.js";
import { createTree } from "./tree.js";
import { asOutput, createWhatIf } from "./what_if.js";

/** Milliseconds without typing after which a prediction starts. */
const TYPING = 350;
/** Milliseconds between two tokens that appear, and those for all that wait. */
const PAUSE = 45;
const MAX_PAUSE = 700;
/** Numbers of beams to choose from. */
const BEAMS = [1, 2, 3, 4, 5, 8];

/** Create the view. `models` are those of `/v1/models`. */
export function createView(models) {
  const ready = models.filter((model) => model.status === "ready");
  const state = readState();
  let model = ready.find((one) => one.id === state.model) ?? ready[0];
  let source = state.source ?? "";
  let tokens = parseTokens(state.tokens);
  let inspected = null;
  let map = null;
  let method = METHODS.some(([key]) => key === state.method) ? state.method : "attention";
  let [layer, head] = [state.layer, state.head].map((value) => (value === undefined ? null : Number(value)));
  let controller = new AbortController();

  const line = errorLine();
  const popover = createPopover();
  const whatIf = createWhatIf();
  const lines = createLines({
    onSource: (index, token) => editSource(index, token),
    onTarget: (index, token) => offerAlternatives(index, token),
    onHover: (position) => {
      heatmap.show(position);
      media.show(position);
    },
  });
  const heatmap = createHeatmap({
    onCell: (row, column) => editWeight(row, column),
    onHover: (position) => {
      lines.highlight(position && { target: position.target });
      media.show(position);
    },
  });
  const media = createMedia({ onStep: (position) => lines.highlight(position) });
  const tree = createTree((prefix) => continueFrom(prefix));
  const input = element("textarea", {
    id: "source",
    rows: 2,
    value: source,
    dir: "auto",
    spellcheck: "false",
    placeholder: "Type a text",
    oninput: debounce(TYPING, () => setSource(input.value)),
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) setSource(input.value, true);
    },
  });
  const mediaInput = createMediaInput({ onSource: (upload) => setSource(upload, true), onError: (error) => line.show(error) });
  const prediction = element("p.prediction", { dir: "auto" });
  const about = element("p.note");
  const forced = element("p.note");
  const controls = element("div.controls");
  const explain = element("div.controls", { role: "group", "aria-label": "Explanation" });
  const heads = element("details.heads", {}, element("summary", {}, "All layers and heads"), element("div.head-maps"));
  const beams = element("details.card", { ontoggle: () => beams.open && showTree() }, element("summary", {}, "Beam search"), treeHead(), tree.node);
  const drawn = element("section.card", { "aria-label": "Weights between tokens" });
  const plotted = element("section.card", { "aria-label": "Heat map" });
  const node = element(
    "div.view",
    {},
    controls,
    element("section.card.ask", {}, element("label.unseen", { for: "source" }, "Source"), input, mediaInput.node),
    line.node,
    element("section.card.answer", { "aria-label": "Prediction" }, prediction, forced, about),
    whatIf.node,
    media.node,
    drawn,
    plotted,
    beams,
    popover.node,
  );

  function treeHead() {
    return element("div.card-head", {}, element("p.note", {}, "Each column is a step; numbers are probabilities in percent. Arrow keys walk."), exportButtons(tree.image, () => "beam-tree"));
  }

  // Controls -----------------------------------------------------------------------------------

  function showControls() {
    const features = (one) => `${one.id} (${one.task}${one.languages ? `, ${one.languages.join(" → ")}` : ""})`;
    replace(
      controls,
      select("Model", ready.map((one) => [one.id, features(one)]), { value: model.id, onchange: (id) => setModel(id) }),
      model.features.includes("beam")
        ? select("Beams", BEAMS.map((number) => [String(number), String(number)]), {
            value: state.beams ?? "5",
            onchange: (value) => {
              state.beams = value;
              writeState({ beams: value });
              run();
            },
          })
        : null,
      button("Copy link", copyLink, { class: "plain" }),
    );
    const isText = model.modality === "text";
    input.hidden = !isText && model.modality !== "text+image";
    mediaInput.setModality(model.modality);
  }

  async function copyLink() {
    await navigator.clipboard?.writeText(location.href);
    announce("The link to this view is copied.");
  }

  function setModel(id) {
    model = ready.find((one) => one.id === id);
    [tokens, inspected, layer, head] = [[], null, null, null];
    method = "attention";
    writeState({ model: id, tokens: "", layer: "", head: "", method: "" }, true);
    media.clear();
    showControls();
    run();
  }

  function setSource(value, isForced = false) {
    if (value === source && !isForced) return;
    source = value;
    tokens = [];
    writeState({ source: typeof value === "string" ? value : "", tokens: "" });
    run();
  }

  /** Return the source of requests; a text beside an image is part of the upload. */
  function asked() {
    if (model.modality === "text") return typeof source === "string" ? source : "";
    const upload = mediaInput.upload();
    return upload && model.modality === "text+image" ? { ...upload, text: input.value } : upload;
  }

  const search = () => (model.features.includes("beam") ? { beams: Number(state.beams ?? 5) } : {});

  // Prediction ---------------------------------------------------------------------------------

  async function run() {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    line.clear();
    popover.close();
    whatIf.close();
    const given = asked();
    node.dataset.isEmpty = !given || (typeof given === "string" && !given.trim());
    if (node.dataset.isEmpty === "true") {
      showNothing();
      return;
    }
    node.setAttribute("aria-busy", "true");
    try {
      const body = { model: model.id, source: given, search: search(), tokens };
      const found = model.features.includes("stream") ? await watch(body, signal) : await post("/v1/inspect", body, { signal });
      inspected = found;
      await showResult();
      if (beams.open) await showTree();
    } catch (error) {
      if (!isCancelled(error)) showNothing();
      line.show(error);
    } finally {
      if (controller.signal === signal) node.setAttribute("aria-busy", "false");
    }
  }

  /** Show the tokens of a search as they come, and return its result. */
  async function watch(body, signal) {
    const waiting = [];
    let isOver = false;
    const showing = (async () => {
      while (!isOver || waiting.length) {
        const next = waiting.shift();
        if (next && !signal.aborted) showPartial(next);
        const pause = isCalm() || document.hidden ? 0 : Math.min(PAUSE, MAX_PAUSE / (waiting.length + 1));
        await new Promise((resolve) => setTimeout(resolve, next ? pause : 5));
      }
    })();
    try {
      for await (const [name, data] of stream("/v1/inspect", { ...body, stream: true }, { signal })) {
        if (name === "result") return data;
        waiting.push(data);
      }
    } finally {
      if (signal.aborted) waiting.length = 0;
      isOver = true;
      await showing;
    }
    throw new Error("The stream has ended without a result.");
  }

  function showPartial({ text, tokens: partial, weights = [], source: columns = [] }) {
    drawn.hidden = false;
    showText(text, true);
    lines.update({ source: columns.length ? columns : map?.source ?? [], target: partial, weights, scale: 0.6 });
    if (!drawn.contains(lines.node)) replace(drawn, drawnHead(), lines.node);
  }

  function showNothing() {
    inspected = map = null;
    replace(prediction);
    replace(about);
    replace(forced);
    media.clear();
    for (const part of [drawn, plotted, beams, heads]) part.hidden = true;
    node.setAttribute("aria-busy", "false");
  }

  function showText(text, isPartial = false) {
    prediction.classList.toggle("is-partial", isPartial);
    replace(prediction, text || "(empty)");
    prediction.lang = model.languages?.[1] ?? "";
  }

  async function showResult() {
    const [best, ...others] = inspected.predictions;
    if (best.image) replace(prediction, element("img", { src: best.image, alt: "Predicted image" }));
    else showText(best.text);
    const labels = [best, ...others].map((one) => `${one.text} ${percent(Math.exp(one.log_prob))}`);
    const isLabel = !model.features.includes("stream") && best.log_prob !== null && !best.image;
    replace(about, isLabel && others.length ? labels.join(" · ") : best.tokens.length ? `log p = ${best.log_prob.toFixed(2)}; ${best.tokens.length} tokens. Colours show the probability of each token; choose a token to change it.` : "");
    replace(forced, tokens.length ? [`Continued from: ${tokens.map(shownToken).join(" ")} `, button("Start again", () => continueFrom([]), { class: "small" })] : []);
    announce(`Prediction: ${best.text}`);
    beams.hidden = !model.features.includes("beam");
    if (!hasAttention(inspected) && method === "attention" && model.features.includes("attribution")) method = "gradients";
    await media.update(inspected, mediaInput.upload());
    showExplain();
    await showMap();
  }

  // Maps ---------------------------------------------------------------------------------------

  function showExplain() {
    const [numLayers, numHeads] = attentionSize(inspected);
    const numbered = (label, number) => [["", "mean"], ...Array.from({ length: number }, (_, index) => [String(index), `${label} ${index + 1}`])];
    const methods = METHODS.filter(([key]) => (key === "attention" ? hasAttention(inspected) : model.features.includes("attribution")));
    replace(
      explain,
      methods.length > 1 ? select("Explanation", methods, { value: method, onchange: (value) => setMap({ method: value }) }) : null,
      method === "attention" && numLayers > 1
        ? select("Layer", numbered("layer", numLayers), { value: layer === null ? "" : String(layer), onchange: (value) => setMap({ layer: value }) })
        : null,
      method === "attention" && numHeads > 1
        ? select("Head", numbered("head", numHeads), { value: head === null ? "" : String(head), onchange: (value) => setMap({ head: value }) })
        : null,
    );
    heads.hidden = method !== "attention" || numLayers * numHeads < 2;
  }

  function setMap(changes) {
    if ("method" in changes) method = changes.method;
    if ("layer" in changes) layer = changes.layer === "" ? null : Number(changes.layer);
    if ("head" in changes) head = changes.head === "" ? null : Number(changes.head);
    writeState({ method: method === "attention" ? "" : method, layer, head });
    showExplain();
    showMap().catch((error) => line.show(error));
  }

  async function findMap() {
    if (method !== "attention") {
      return attributionMap({ model: model.id, source: asked(), target: inspected.predictions[0].text, method, signal: controller.signal });
    }
    const [numLayers, numHeads] = attentionSize(inspected);
    if (layer >= numLayers) layer = null;
    if (head >= numHeads) head = null;
    const logProbs = inspected.predictions[0].token_log_probs;
    return { ...attentionMap(inspected, layer, head), logProbs };
  }

  async function showMap() {
    const hasMap = hasAttention(inspected) || (method !== "attention" && model.features.includes("attribution"));
    drawn.hidden = plotted.hidden = !hasMap;
    if (!hasMap) {
      const best = inspected.predictions[0];
      if (!best.tokens.length) return;
      map = { source: inspected.attention?.source ?? [], target: best.tokens, weights: [], logProbs: best.token_log_probs };
      drawn.hidden = false;
    } else {
      map = await findMap();
    }
    // The cells of an image and the frames of a recording are drawn over them.
    const isMedia = model.modality !== "text";
    const numText = isMedia ? inspected.attention?.num_text_tokens ?? 0 : map.source.length;
    const isCells = isMedia && inspected.input !== null;
    media.setMap(map);
    const shown = isCells && inspected.attention?.grid ? withoutCells(map, numText) : isCells ? { ...map, source: [], weights: [] } : map;
    replace(drawn, drawnHead(), lines.node);
    lines.update({ ...shown, numForced: tokens.length });
    plotted.hidden = !hasMap || (isCells && inspected.attention?.grid !== null);
    replace(plotted, element("div.card-head", {}, element("h2", {}, "Heat map"), exportButtons(heatmap.image, () => "heat-map")), heatmap.node, element("p.note", {}, weightHint()), heads);
    heatmap.update(map);
    showHeads();
  }

  function drawnHead() {
    return element("div.card-head", {}, explain, exportButtons(() => linesImage(lines), () => "weights"));
  }

  const weightHint = () =>
    method === "attention" && model.features.includes("what-if") && hasAttention(inspected)
      ? "Rows: prediction; columns: source. Choose a cell, or press Enter on it, to set its weight by hand."
      : "Rows: prediction; columns: source.";

  /** Small maps of all layers (rows) and heads (columns); one is chosen by a click. */
  function showHeads() {
    const [numLayers, numHeads] = attentionSize(inspected);
    const frame = heads.querySelector("div");
    frame.style.setProperty("--columns", numHeads);
    if (method !== "attention" || numLayers * numHeads < 2) {
      replace(frame);
      return;
    }
    const tiles = [];
    for (let row = 0; row < numLayers; row++) {
      for (let column = 0; column < numHeads; column++) {
        const isChosen = row === layer && column === head;
        const toggle = () => setMap(isChosen ? { layer: "", head: "" } : { layer: String(row), head: String(column) });
        const image = element("img", { src: paint(attentionMap(inspected, row, column)), alt: "" });
        tiles.push(button(image, toggle, { class: "tile", "aria-pressed": String(isChosen), "aria-label": `Layer ${row + 1}, head ${column + 1}`, title: `layer ${row + 1}, head ${column + 1}` }));
      }
    }
    replace(frame, tiles);
  }

  async function showTree() {
    if (!inspected || !model.features.includes("beam")) return;
    const beamsAsked = Math.max(2, search().beams ?? 5);
    try {
      const found = await post("/v1/beam", { model: model.id, source: asked(), search: { beams: beamsAsked } }, { signal: controller.signal });
      tree.update(found.nodes);
    } catch (error) {
      line.show(error);
    }
  }

  // Changes ------------------------------------------------------------------------------------

  /** Continue the search after given tokens. */
  async function continueFrom(prefix) {
    const before = inspected?.predictions[0];
    tokens = prefix;
    writeState({ tokens: prefix.length ? JSON.stringify(prefix) : "" }, true);
    await run();
    const after = inspected?.predictions[0];
    if (before && after && prefix.length) {
      whatIf.show({ title: `the prediction begins with “${prefix.map(shownToken).join(" ")}”`, before: asOutput(before), after: asOutput(after) });
    }
  }

  function offerAlternatives(index, token) {
    const best = inspected?.predictions[0];
    if (!best || index >= best.tokens.length) return;
    const others = best.alternatives?.[index] ?? [];
    const canContinue = model.features.includes("what-if") && model.features.includes("beam");
    const take = (other) => {
      popover.close();
      continueFrom([...best.tokens.slice(0, index), other]).catch((error) => line.show(error));
    };
    const list = element(
      "ul.choices",
      {},
      others.map(([other, logProb]) => {
        const share = element("span.share");
        share.style.setProperty("--share", Math.exp(logProb));
        const chosen = button([element("span", { dir: "auto" }, shownToken(other)), share, element("span.number", {}, percent(Math.exp(logProb)))], () => take(other), { "aria-label": `${spokenToken(other)}, ${percent(Math.exp(logProb))}`, disabled: !canContinue });
        if (other === best.tokens[index]) chosen.setAttribute("aria-current", "true");
        return element("li", {}, chosen);
      }),
    );
    const word = canContinue ? wordForm("Force another word", (text) => forceWord(wordIndices(best.tokens)[index], text)) : null;
    popover.open(token, `In place of “${shownToken(best.tokens[index])}”`, list, word);
  }

  function wordForm(label, onsubmit, value = "") {
    const field = element("input", { value, dir: "auto", "aria-label": label, autocomplete: "off" });
    return element(
      "form.word",
      {
        onsubmit: (event) => {
          event.preventDefault();
          popover.close();
          onsubmit(field.value.trim());
        },
      },
      element("label.field", {}, element("span", {}, label), field),
      element("button.small", {}, "Go"),
    );
  }

  async function forceWord(position, word) {
    await edit(`“${word}” as word ${position + 1} of the prediction`, { kind: "target_word", position, word });
  }

  /** Offer to replace a source word. */
  function editSource(index, token) {
    if (model.modality !== "text" || !model.features.includes("what-if") || !map) return;
    const position = wordIndices(map.source)[index];
    const words = source.match(/\S+/g) ?? [];
    if (position >= words.length) return;
    const change = (word) => {
      const changed = replaceWord(source, position, word);
      edit(word ? `“${words[position]}” → “${word}” in the source` : `without “${words[position]}”`, { kind: "source", changed }, () => {
        input.value = changed;
        setSource(changed);
      });
    };
    popover.open(token, `Replace “${words[position]}”`, wordForm("By (empty: leave it out)", change, words[position]));
  }

  /** Offer to set the weight of a cell. */
  function editWeight(row, column) {
    if (method !== "attention" || !model.features.includes("what-if") || !hasAttention(inspected) || inspected.attention.kind !== "attention") return;
    const weight = map.weights[row][column];
    const shown = element("output", {}, weight.toFixed(2));
    const range = element("input", { type: "range", min: 0, max: 1, step: 0.01, value: weight.toFixed(2), "aria-label": "Weight", oninput: () => replace(shown, Number(range.value).toFixed(2)) });
    const names = [map.target[row], map.source[column]].map(shownToken);
    const form = element(
      "form.word",
      {
        onsubmit: (event) => {
          event.preventDefault();
          popover.close();
          const where = layer === null && head === null ? "" : ` (${[layer === null ? "" : `layer ${layer + 1}`, head === null ? "" : `head ${head + 1}`].filter(Boolean).join(", ")})`;
          edit(`weight of “${names[0]}” on “${names[1]}” ${weight.toFixed(2)} → ${shown.textContent}${where}`, {
            kind: "attention",
            target_position: row,
            source_position: column,
            weight: Number(range.value),
            layer,
            head,
          });
        },
      },
      element("label.field", {}, element("span", {}, "Weight"), range),
      shown,
      element("button.small", {}, "Set"),
    );
    popover.open(heatmap.node, `Attention of “${names[0]}” on “${names[1]}”`, form);
  }

  async function edit(title, change, onKeep) {
    line.clear();
    node.setAttribute("aria-busy", "true");
    try {
      const found = await post("/v1/what-if", { model: model.id, source: asked(), edit: change }, { signal: controller.signal });
      whatIf.show({ title, before: found.before, after: found.after, onKeep });
      announce(found.is_changed ? `The output changes to: ${found.after.text}` : "The output stays the same.");
      whatIf.node.scrollIntoView({ block: "nearest", behavior: isCalm() ? "auto" : "smooth" });
    } catch (error) {
      line.show(error);
    } finally {
      node.setAttribute("aria-busy", "false");
    }
  }

  return {
    node,
    start() {
      showControls();
      showNothing();
      if (!source && model.modality === "text") input.focus({ preventScroll: true });
      run();
    },
    close() {
      controller.abort();
      media.clear();
      mediaInput.close();
    },
  };
}

/** Return a text with another word; an empty one removes it. */
export function replaceWord(text, position, word) {
  let index = -1;
  const changed = text.replace(/\S+/g, (old) => (++index === position ? word : old));
  return word ? changed : changed.split(/\s+/).filter(Boolean).join(" ");
}

/** Return the map of the texts beside an image. */
function withoutCells(map, numText) {
  return { ...map, source: map.source.slice(0, numText), weights: map.weights.map((row) => row.slice(0, numText)) };
}

function parseTokens(text) {
  try {
    const tokens = JSON.parse(text ?? "[]");
    return Array.isArray(tokens) ? tokens.map(String) : [];
  } catch {
    return [];
  }
}
