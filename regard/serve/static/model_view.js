/** The view of one model: predict, see the weights, change something, and walk the search. */

import { ApiError, BROKEN, errorLine, isCancelled, post, stream } from "./api.js";
import { createChanges, replaceWord } from "./changes.js";
import { announce, button, debounce, element, isCalm, percent, replace, select } from "./dom.js";
import { exportButtons } from "./export.js";
import { createMaps } from "./maps.js";
import { createMedia } from "./media.js";
import { createMediaInput } from "./media_input.js";
import { readState, writeState } from "./state.js";
import { shownToken, wordIndices } from "./tokens.js";
import { createTree } from "./tree.js";
import { asOutput, createWhatIf } from "./what_if.js";

/** Milliseconds without typing after which a prediction starts. */
const TYPING = 350;
/** Milliseconds between two tokens that appear, and those for all that wait. */
const PAUSE = 45;
const MAX_PAUSE = 700;
/** Milliseconds for which a button shows that the link is copied. */
const COPIED = 2000;
/** Number of steps of a search that may wait to be shown; of more, the first are left out. */
const MAX_WAITING = 20;
/** Numbers of beams to choose from. */
const BEAMS = ["1", "2", "3", "4", "5", "8"];

/** Create the view. `models` are those of `/v1/models`. */
export function createView(models) {
  const ready = models.filter((one) => one.status === "ready");
  const state = readState();
  let model = ready.find((one) => one.id === state.model) ?? ready[0];
  let numBeams = BEAMS.includes(state.beams) ? state.beams : "5";
  let text = state.source ?? "";
  let tokens = parseTokens(state.tokens);
  let inspected = null;
  let controller = new AbortController();

  const line = errorLine();
  const fail = (error) => line.show(error);
  const changes = createChanges();
  const whatIf = createWhatIf();
  const media = createMedia({ onStep: (position) => maps.highlight(position) });
  const maps = createMaps({
    onSource: editSource,
    onTarget: editTarget,
    onCell: editWeight,
    onHover: (position) => media.show(position),
    onMap: (map) => media.setMap(map),
    onChoose: () => line.clear(),
    onError: fail,
  });
  const tree = createTree((prefix) => continueFrom(prefix).catch(fail));
  const typed = debounce(TYPING, () => setText(input.value));
  const input = element("textarea", {
    id: "source",
    rows: 2,
    value: text,
    dir: "auto",
    spellcheck: "false",
    placeholder: "Type a text",
    oninput: typed,
    onkeydown(event) {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      typed.cancel();
      text = input.value;
      writeState({ source: text });
      restart();
    },
  });
  const mediaInput = createMediaInput({ onSource: restart, onError: fail });
  const prediction = element("p.prediction", { dir: "auto" });
  const about = element("p.note");
  const forced = element("p.note");
  const controls = element("div.controls");
  const answer = element("section.card.answer", { "aria-label": "Prediction" }, prediction, forced, about);
  const beams = element(
    "details.card",
    { ontoggle: () => beams.open && showTree() },
    element("summary", {}, "Beam search"),
    element(
      "div.card-head",
      {},
      element("p.note", {}, "Each column is a step; numbers are probabilities in percent. Arrow keys walk."),
      exportButtons(tree.image, () => "beam-tree"),
    ),
    tree.node,
  );
  const node = element(
    "div.view",
    {},
    controls,
    element("section.card.ask", {}, element("label.unseen", { for: "source" }, "Source"), input, mediaInput.node),
    line.node,
    answer,
    whatIf.node,
    media.node,
    maps.node,
    beams,
    changes.node,
  );

  // Controls

  function showControls() {
    const describe = (one) => `${one.id} (${one.languages ? one.languages.join(" → ") : one.task})`;
    const choices = ready.map((one) => [one.id, describe(one)]);
    const chooseBeams = (value) => {
      numBeams = value;
      writeState({ beams: value });
      run();
    };
    replace(
      controls,
      select("Model", choices, { value: model.id, onchange: setModel }),
      canSearch() ? select("Beams", BEAMS.map((one) => [one, one]), { value: numBeams, onchange: chooseBeams }) : null,
      button("Copy link", copyLink, { class: "plain" }),
    );
    input.hidden = !["text", "text+image"].includes(model.modality);
    mediaInput.setModality(model.modality);
  }

  async function copyLink(event) {
    const { currentTarget } = event;
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      // Browsers allow it on this machine and over https only.
      fail(new ApiError("The browser does not let this page copy. Copy the address of the page instead."));
      return;
    }
    replace(currentTarget, "Copied");
    setTimeout(() => replace(currentTarget, "Copy link"), COPIED);
    announce("The link to this view is copied.");
  }

  function setModel(id) {
    model = ready.find((one) => one.id === id);
    writeState({ model: id, tokens: "" }, true);
    maps.reset();
    media.clear();
    showControls();
    restart();
  }

  function setText(value) {
    if (value === text) return;
    text = value;
    writeState({ source: text });
    restart();
  }

  /** Predict without the changes so far. */
  function restart() {
    tokens = [];
    writeState({ tokens: "" });
    run();
  }

  /** Return the source of requests; a text beside an image is part of the upload. */
  function source() {
    if (model.modality === "text") return text.trim() ? text : null;
    const upload = mediaInput.upload();
    return upload && model.modality === "text+image" ? { ...upload, text } : upload;
  }

  const canSearch = () => model.features.includes("beam");
  const canChange = () => model.features.includes("what-if") && canSearch();

  // Prediction

  /** Predict and show the result; return whether it is shown. */
  async function run() {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    line.clear();
    changes.close(false);
    whatIf.close();
    if (source() === null) {
      clear();
      return false;
    }
    node.setAttribute("aria-busy", "true");
    answer.hidden = false;
    try {
      const search = canSearch() ? { beams: Number(numBeams) } : {};
      const body = { model: model.id, source: source(), search, tokens };
      const isWatched = model.features.includes("stream");
      const found = isWatched ? await watch(body, signal) : await post("/v1/inspect", body, { signal });
      signal.throwIfAborted(); // perhaps while the last tokens appeared
      inspected = found;
      await showResult(signal);
      return !signal.aborted;
    } catch (error) {
      if (!isCancelled(error) && !signal.aborted) {
        clear();
        fail(error);
      }
      return false;
    } finally {
      if (controller.signal === signal) node.setAttribute("aria-busy", "false");
    }
  }

  /** Show the tokens of a search as they come, and return its result. */
  async function watch(body, signal) {
    const waiting = [];
    let end = Infinity;
    const showing = (async () => {
      while (!signal.aborted && performance.now() < end && (end === Infinity || waiting.length)) {
        waiting.splice(0, waiting.length - MAX_WAITING);
        const next = waiting.shift();
        if (next) showPartial(next);
        const pause = isCalm() || document.hidden ? 0 : Math.min(PAUSE, MAX_PAUSE / (waiting.length + 1));
        await new Promise((resolve) => setTimeout(resolve, next ? pause : 5));
      }
    })();
    try {
      for await (const [name, data] of stream("/v1/inspect", { ...body, stream: true }, { signal })) {
        if (name === "token") waiting.push(data);
        else return data;
      }
    } finally {
      // Long sequences take longer to show than to compute: what is left then is left out.
      end = performance.now() + MAX_PAUSE;
      await showing;
    }
    throw new ApiError(BROKEN);
  }

  function showPartial(partial) {
    showText(partial.text);
    prediction.classList.add("is-partial");
    maps.showPartial(partial);
  }

  function showText(shown) {
    prediction.classList.remove("is-partial");
    prediction.lang = model.languages?.[1] ?? "";
    replace(prediction, shown || "(empty)");
  }

  async function showResult(signal) {
    const [best] = inspected.predictions;
    if (best.image) replace(prediction, element("img", { src: best.image, alt: "Predicted image" }));
    else showText(best.text);
    replace(about, describeResult());
    const startAgain = () => continueFrom([]).catch(fail);
    replace(forced, tokens.length ? [`Given: ${tokens.map(shownToken).join(" ")} `, button("Start again", startAgain, { class: "small" })] : []);
    announce(`Prediction: ${best.text}`);
    beams.hidden = !canSearch();
    media.update(inspected, mediaInput.upload());
    await maps.show({ model, source: source(), inspected, numForced: tokens.length, signal });
    if (beams.open && canSearch()) await showTree();
  }

  function describeResult() {
    const [best] = inspected.predictions;
    if (inspected.predictions.length > 1) {
      return inspected.predictions.map((one) => `${one.text} ${percent(Math.exp(one.log_prob))}`).join(" · ");
    }
    if (!best.tokens.length || best.log_prob === null) return "";
    const hint = canChange() ? " Choose a token to change it." : "";
    return `log p = ${best.log_prob.toFixed(2)}; ${best.tokens.length} tokens, coloured by their probability.${hint}`;
  }

  function clear() {
    inspected = null;
    media.clear();
    maps.clear();
    answer.hidden = beams.hidden = true;
    node.setAttribute("aria-busy", "false");
  }

  async function showTree() {
    if (!inspected) return;
    const search = { beams: Math.max(2, Number(numBeams)) };
    try {
      const { signal } = controller;
      tree.update((await post("/v1/beam", { model: model.id, source: source(), search }, { signal })).nodes);
    } catch (error) {
      fail(error);
    }
  }

  // Changes

  /** Continue the search after given tokens, and compare the outputs. */
  async function continueFrom(prefix) {
    const before = inspected?.predictions[0];
    tokens = prefix;
    writeState({ tokens: prefix.length ? JSON.stringify(prefix) : "" }, true);
    const isShown = await run();
    if (!before || !isShown || !prefix.length) return;
    const after = inspected.predictions[0];
    const given = prefix.map(shownToken).join(" ");
    whatIf.show({ title: `the prediction begins with “${given}”`, before: asOutput(before), after: asOutput(after) });
  }

  function editTarget(index, anchor) {
    const best = inspected?.predictions[0];
    if (!best || index >= best.tokens.length) return;
    const position = wordIndices(best.tokens, best.text)[index];
    changes.offerTokens(anchor, {
      token: best.tokens[index],
      alternatives: best.alternatives?.[index] ?? [],
      onToken: canChange() ? (other) => continueFrom([...best.tokens.slice(0, index), other]).catch(fail) : undefined,
      onWord: canChange()
        ? (word) => edit(`“${word}” as word ${position + 1} of the prediction`, { kind: "target_word", position, word })
        : undefined,
    });
  }

  function editSource(index, anchor) {
    if (model.modality !== "text" || !model.features.includes("what-if") || !maps.map()) return;
    const position = wordIndices(maps.map().source, text)[index];
    const word = text.match(/\S+/g)?.[position];
    if (word === undefined) return;
    const onWord = (other) => {
      const changed = replaceWord(text, position, other);
      const title = other ? `“${other}” in place of “${word}” in the source` : `the source without “${word}”`;
      const keep = () => {
        input.value = changed;
        setText(changed);
      };
      edit(title, { kind: "source", changed }, keep);
    };
    changes.offerWord(anchor, { word, onWord });
  }

  function editWeight(row, column, anchor) {
    if (!maps.canEdit()) return;
    const { source: columns, target: rows, weights } = maps.map();
    const { layer, head } = maps.chosen;
    const where = [layer === null ? "" : `layer ${layer + 1}`, head === null ? "" : `head ${head + 1}`].filter(Boolean).join(", ");
    const names = [rows[row], columns[column]].map(shownToken);
    changes.offerWeight(anchor, {
      target: rows[row],
      source: columns[column],
      weight: weights[row][column],
      onWeight: (weight) =>
        edit(`weight of “${names[0]}” on “${names[1]}” ${weights[row][column].toFixed(2)} → ${weight.toFixed(2)}${where && ` (${where})`}`, {
          kind: "attention",
          target_position: row,
          source_position: column,
          weight,
          layer,
          head,
        }),
    });
  }

  /** Show the effect of an edit beside the output without it. */
  async function edit(title, change, onKeep) {
    line.clear();
    node.setAttribute("aria-busy", "true");
    const { signal } = controller;
    try {
      const found = await post("/v1/what-if", { model: model.id, source: source(), edit: change }, { signal });
      whatIf.show({ title, before: found.before, after: found.after, onKeep });
      announce(found.is_changed ? `The output changes to: ${found.after.text}` : "The output stays the same.");
      whatIf.node.scrollIntoView({ block: "nearest", behavior: isCalm() ? "auto" : "smooth" });
    } catch (error) {
      fail(error);
    } finally {
      if (controller.signal === signal) node.setAttribute("aria-busy", "false");
    }
  }

  return {
    node,
    start() {
      showControls();
      clear();
      if (!text && model.modality === "text") input.focus({ preventScroll: true });
      run();
    },
    close() {
      typed.cancel();
      controller.abort();
      changes.close(false);
      media.clear();
      mediaInput.close();
    },
  };
}

function parseTokens(json) {
  try {
    const tokens = JSON.parse(json ?? "[]");
    return Array.isArray(tokens) ? tokens.map(String) : [];
  } catch {
    return [];
  }
}
