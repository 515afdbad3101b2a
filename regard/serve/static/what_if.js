/** What-if analysis: an output before and after an edit, side by side. */

import { button, element, percent, replace } from "./dom.js";
import { changedTokens, directionOf, shownToken, wordStarts } from "./tokens.js";

/**
 * Create the comparison of an output before and after an edit.
 *
 * @param {function()} onClose Called when it is closed.
 */
export function createWhatIf(onClose) {
  const node = element("section.card.what-if", { hidden: true, "aria-label": "What if" });

  /**
   * Show the effect of an edit.
   *
   * @param {Object} shown
   * @param {string} shown.title The edit in words.
   * @param {Object} shown.before Output: `text`, `tokens`, `log_probs_before`, `log_probs_after`.
   * @param {Object} shown.after The other output.
   * @param {function()} [shown.onKeep] Called to continue with the edited output.
   */
  function show({ title, before, after, onKeep }) {
    const isSame = before.text === after.text;
    replace(
      node,
      element(
        "div.card-head",
        {},
        element("h2", {}, `What if: ${title}`),
        element(
          "span",
          {},
          onKeep ? button("Keep the change", onKeep, { class: "small" }) : null,
          button("Close", close, { class: "plain small" }),
        ),
      ),
      output("Before", before, after),
      output("After", after, before),
      element(
        "p.note",
        {},
        isSame
          ? "The output is the same. Bars show how its probabilities change."
          : "Marked tokens differ. Bars: probability of each token without the edit (above) and with it (below).",
      ),
    );
    node.hidden = false;
  }

  function output(label, shown, other) {
    const changed = changedTokens(shown.tokens, other.tokens);
    const starts = wordStarts(shown.tokens);
    const tokens = shown.tokens.map((token, index) => {
      const values = [shown.log_probs_before[index], shown.log_probs_after[index]].map(Math.exp);
      const bars = values.map((value) => {
        const bar = element("span.share");
        bar.style.setProperty("--share", value);
        return bar;
      });
      return element(
        "li.changed-token",
        {
          "data-changed": changed[index],
          "data-start": starts[index],
          title: `${shownToken(token)}: ${percent(values[0])} without the edit, ${percent(values[1])} with it`,
        },
        element("span", { dir: "auto" }, shownToken(token)),
        element("span.shares", {}, bars),
      );
    });
    return element(
      "div.output",
      {},
      element("h3", {}, label),
      element("ol.tokens", { dir: directionOf(shown.text), "aria-label": `${label}: ${shown.text}` }, tokens),
    );
  }

  function close() {
    node.hidden = true;
    onClose?.();
  }

  return { node, show, close };
}

/** Return an inspected prediction as the side of a comparison without an edit of the model. */
export function asOutput({ text, tokens, token_log_probs }) {
  return { text, tokens, log_probs_before: token_log_probs, log_probs_after: token_log_probs };
}
