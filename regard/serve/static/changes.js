/** Forms for changes of a source, a prediction or an attention weight, in a popover. */

import { button, element, percent, replace } from "./dom.js";
import { createPopover } from "./popover.js";
import { END, shownToken, spokenToken } from "./tokens.js";

/** Create the forms; they belong to one view. */
export function createChanges() {
  const popover = createPopover();

  /**
   * Offer the most likely tokens at a position.
   *
   * @param {Element} anchor The token.
   * @param {Object} offered
   * @param {string} offered.token The token of the prediction.
   * @param {Array} offered.alternatives Pairs of token and log-probability.
   * @param {function(string)} [offered.onToken] Called with the chosen token.
   * @param {function(string)} [offered.onWord] Called with another word.
   */
  function offerTokens(anchor, { token, alternatives, onToken, onWord }) {
    const choices = alternatives.map(([other, logProb]) => {
      const share = element("span.share");
      share.style.setProperty("--share", Math.exp(logProb));
      const name = element("span", { dir: "auto" }, shownToken(other));
      const number = element("span.number", {}, percent(Math.exp(logProb)));
      const choice = button([name, share, number], () => closeAnd(() => onToken(other)), {
        "aria-label": `${spokenToken(other)}, ${percent(Math.exp(logProb))}`,
        "aria-current": other === token && "true",
        disabled: !onToken || other === END, // nothing follows the end
      });
      return element("li", {}, choice);
    });
    const form = onWord ? wordForm("Force another word", onWord) : null;
    popover.open(anchor, `In place of “${shownToken(token)}”`, element("ul.choices", {}, choices), form);
  }

  /** Offer to replace a word of the source; an empty word leaves it out. */
  function offerWord(anchor, { word, onWord }) {
    popover.open(anchor, `Replace “${word}”`, wordForm("By (empty: leave it out)", onWord, word));
  }

  /**
   * Offer to set an attention weight.
   *
   * @param {Element} anchor The map.
   * @param {Object} offered
   * @param {string} offered.target Token whose step is changed.
   * @param {string} offered.source Token with the weight.
   * @param {number} offered.weight The weight as it is.
   * @param {function(number)} offered.onWeight Called with the new weight.
   */
  function offerWeight(anchor, { target, source, weight, onWeight }) {
    const shown = element("output", {}, weight.toFixed(2));
    const range = element("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.01,
      value: weight.toFixed(2),
      "aria-label": "Weight",
      oninput: () => replace(shown, Number(range.value).toFixed(2)),
    });
    const form = element(
      "form.word",
      { onsubmit: submit(() => onWeight(Number(range.value))) },
      element("label.field", {}, element("span", {}, "Weight"), range),
      shown,
      element("button.small", {}, "Set"),
    );
    popover.open(anchor, `Attention of “${shownToken(target)}” on “${shownToken(source)}”`, form);
  }

  function wordForm(label, onWord, value = "") {
    const field = element("input", { value, dir: "auto", "aria-label": label, autocomplete: "off" });
    return element(
      "form.word",
      { onsubmit: submit(() => onWord(field.value.trim())) },
      element("label.field", {}, element("span", {}, label), field),
      element("button.small", {}, "Go"),
    );
  }

  const submit = (call) => (event) => {
    event.preventDefault();
    closeAnd(call);
  };

  function closeAnd(call) {
    popover.close();
    call();
  }

  return { node: popover.node, close: popover.close, offerTokens, offerWord, offerWeight };
}

/** Return a text with another word at a position; an empty word leaves it out. */
export function replaceWord(text, position, word) {
  let index = -1;
  const changed = text.replace(/\S+/g, (old) => (++index === position ? word : old));
  return word ? changed : changed.split(/\s+/).filter(Boolean).join(" ");
}
