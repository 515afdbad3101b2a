/** Tokens for display: words and their parts, direction of scripts, colours by probability. */

/** Token that ends a sequence. */
export const END = "<eos>";

const WORD = "▁";
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const LETTER = /\p{L}/u;

/** Return the text of a token without the marker of a word's beginning. */
export function shownToken(token) {
  if (token === END) return "⏎";
  return (token.startsWith(WORD) ? token.slice(WORD.length) : token) || "␣";
}

/** Return whether each token begins a word; without markers, each token is a word. */
export function wordStarts(tokens) {
  const isMarked = tokens.some((token) => token.startsWith(WORD));
  return tokens.map((token, index) => !isMarked || index === 0 || token.startsWith(WORD) || token === END);
}

/** Return the index of the word of each token, as words are separated by spaces. */
export function wordIndices(tokens) {
  let index = -1;
  return wordStarts(tokens).map((isStart) => (index += isStart ? 1 : 0));
}

/** Return the direction of a text by its first letter. */
export function directionOf(text) {
  const first = [...text].find((letter) => LETTER.test(letter));
  return first && RIGHT_TO_LEFT.test(first) ? "rtl" : "ltr";
}

/** Return the name of a token for screen readers. */
export function spokenToken(token) {
  return token === END ? "end" : shownToken(token);
}

/** Return for each token of a sequence whether it is not part of the longest common sequence. */
export function changedTokens(tokens, others) {
  const lengths = Array.from({ length: tokens.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = tokens.length - 1; i >= 0; i--) {
    for (let j = others.length - 1; j >= 0; j--) {
      lengths[i][j] =
        tokens[i] === others[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const isChanged = tokens.map(() => true);
  for (let i = 0, j = 0; i < tokens.length && j < others.length; ) {
    if (tokens[i] === others[j]) {
      isChanged[i] = false;
      i++;
      j++;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return isChanged;
}
