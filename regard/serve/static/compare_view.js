/** Two models, or two explanations of one model, on the same sentence. */

import { errorLine, isCancelled, post } from "./api.js";
import { debounce, element, replace, select } from "./dom.js";
import { attentionMap, attributionMap, hasAttention, METHODS } from "./explanation.js";
import { exportButtons } from "./export.js";
import { createHeatmap } from "./heatmap.js";
import { createLines, linesImage } from "./lines.js";
import { readState, writeState } from "./state.js";

const TYPING = 400;

/** Create the view. `models` are those of `/v1/models`. */
export function createView(models) {
  const ready = models.filter((model) => model.status === "ready" && model.modality === "text");
  if (!ready.length) return { node: element("p.view.note", {}, "No model of this server reads texts."), close() {} };
  const state = readState();
  const line = errorLine();
  const typed = debounce(TYPING, () => {
    writeState({ source: input.value });
    run();
  });
  const typedReference = debounce(TYPING, () => {
    writeState({ reference: reference.value });
    sides.forEach((side) => side.evaluate());
  });
  const input = element("textarea", {
    id: "source",
    rows: 2,
    dir: "auto",
    value: state.source ?? "",
    placeholder: "Type a text",
    spellcheck: "false",
    oninput: typed,
  });
  const reference = element("input", {
    id: "reference",
    dir: "auto",
    value: state.reference ?? "",
    autocomplete: "off",
    oninput: typedReference,
  });
  const sides = ["a", "b"].map((key, index) =>
    createSide({
      key,
      models: ready,
      state,
      first: ready[Math.min(index, ready.length - 1)],
      source: () => input.value,
      reference: () => reference.value,
      onHover: (position) => sides.forEach((side) => side.show(position)),
      onError: (error) => line.show(error),
    }),
  );
  const node = element(
    "div.view",
    {},
    element(
      "section.card.ask",
      {},
      element("label.unseen", { for: "source" }, "Source"),
      input,
      element("label.field.wide", { for: "reference" }, element("span", {}, "Reference (for BLEU and chrF)"), reference),
    ),
    line.node,
    element("div.sides", {}, sides.map((side) => side.node)),
  );

  function run() {
    line.clear();
    sides.forEach((side) => side.run());
  }

  return {
    node,
    start: run,
    close() {
      typed.cancel();
      typedReference.cancel();
      sides.forEach((side) => side.close());
    },
  };
}

/** One side: a model, an explanation, its prediction and its scores. */
function createSide({ key, models, state, first, source, reference, onHover, onError }) {
  let model = models.find((one) => one.id === state[key]) ?? first;
  let method = METHODS.some(([name]) => name === state[`${key}_method`]) ? state[`${key}_method`] : "attention";
  let controller = new AbortController();
  let inspected = null;
  let numMaps = 0;
  const controls = element("div.controls");
  const prediction = element("p.prediction", { dir: "auto" });
  const scores = element("p.note.scores");
  const about = element("p.note");
  const lines = createLines({ onHover: (position) => onHover(position) });
  const heatmap = createHeatmap({ onHover: (position) => onHover(position && { target: position.target }) });
  const maps = element(
    "div",
    { hidden: true },
    element("div.card-head", {}, element("h3", {}, "Weights"), exportButtons(() => linesImage(lines), () => `weights-${key}`)),
    lines.node,
    element("div.card-head", {}, element("h3", {}, "Heat map"), exportButtons(heatmap.image, () => `heat-map-${key}`)),
    heatmap.node,
  );
  const node = element("section.card.side", { "aria-label": `Side ${key.toUpperCase()}` }, controls, prediction, scores, about, maps);

  function showControls() {
    replace(
      controls,
      select("Model", models.map((one) => [one.id, one.id]), {
        value: model.id,
        onchange: (id) => {
          model = models.find((one) => one.id === id);
          writeState({ [key]: id });
          run();
        },
      }),
      select("Explanation", METHODS, {
        value: method,
        onchange: (value) => {
          method = value;
          writeState({ [`${key}_method`]: value });
          showMap();
        },
      }),
    );
  }

  function clear() {
    inspected = null;
    maps.hidden = true;
    [prediction, scores, about].forEach((part) => replace(part));
  }

  async function run() {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    const text = source();
    if (!text.trim()) {
      clear();
      node.setAttribute("aria-busy", "false");
      return;
    }
    node.setAttribute("aria-busy", "true");
    try {
      inspected = await post("/v1/inspect", { model: model.id, source: text }, { signal });
      inspected.source = text;
      const [best] = inspected.predictions;
      replace(prediction, best.text || "(empty)");
      prediction.lang = model.languages?.[1] ?? "";
      await Promise.all([showMap(), evaluate()]);
    } catch (error) {
      if (!isCancelled(error)) clear();
      onError(error);
    } finally {
      if (controller.signal === signal) node.setAttribute("aria-busy", "false");
    }
  }

  async function showMap() {
    const request = ++numMaps;
    if (!inspected) return;
    const { signal } = controller;
    const [best] = inspected.predictions;
    const hasMap = method === "attention" ? hasAttention(inspected) : model.features.includes("attribution");
    maps.hidden = !hasMap;
    const parameters = `${model.parameters.toLocaleString("en")} parameters`;
    const score = best.log_prob === null ? "" : `; log p = ${best.log_prob.toFixed(2)}`;
    replace(about, `${parameters}${score}.${hasMap ? "" : " This model has no attention: it reads the source through one vector. Choose gradients."}`);
    if (!hasMap) return;
    try {
      const map =
        method === "attention"
          ? { ...attentionMap(inspected), logProbs: best.token_log_probs }
          : await attributionMap({ model: model.id, source: inspected.source, target: best.text, method, signal });
      if (request !== numMaps) return; // another one was chosen
      lines.update(map);
      heatmap.update(map);
    } catch (error) {
      if (request !== numMaps || isCancelled(error)) return;
      maps.hidden = true;
      onError(error);
    }
  }

  /** Compare the prediction with the reference, if there is one. */
  async function evaluate() {
    const [text, shown] = [reference().trim(), inspected];
    if (!text || !shown) {
      replace(scores);
      return;
    }
    try {
      const { bleu, chrf } = await post("/v1/evaluate", { prediction: shown.predictions[0].text, reference: text });
      if (shown !== inspected || text !== reference().trim()) return; // of an earlier text
      replace(scores, element("strong", { title: bleu.signature }, `BLEU ${bleu.value.toFixed(1)}`), " · ", element("strong", { title: chrf.signature }, `chrF ${chrf.value.toFixed(1)}`));
    } catch (error) {
      onError(error);
    }
  }

  /** Mark a source token on both sides; target tokens differ between the sides. */
  function show(position) {
    if (position === null || "source" in position) {
      lines.highlight(position);
      heatmap.show(position);
    }
  }

  showControls();
  return { node, run, evaluate, show, close: () => controller.abort() };
}
