/** Tokens for display: words and their parts, direction of scripts, colours by probability. */

/** Token that ends a sequence. */
export const END = "<eos>";

const UNKNOWN = "<unk>";
const WORD = "▁";
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const LETTER = /\p{L}/u;

/** Return the text of a token without the marker of a word's beginning. */
export function shownToken(token) {
  if (token === END) return "⏎";
  return bare(token) || "␣";
}

/** Return whether each token begins a word; without markers, each token is a word. */
export function wordStarts(tokens) {
  const isMarked = tokens.some((token) => token.startsWith(WORD));
  return tokens.map((token, index) => !isMarked || index === 0 || token.startsWith(WORD) || token === END);
}

/**
 * Return for each token of a text the index of its word, as words are separated by spaces; their number after the last one.
 *
 * Tokens are found in the text, since an unknown token may be a word or a part of one.
 */
export function wordIndices(tokens, text) {
  const words = [...text.matchAll(/\S+/g)].map((one) => ({ start: one.index, end: one.index + one[0].length }));
  const letters = text.toLowerCase();
  let at = 0;
  let marked = null; // the word of a marker that is a token of its own, until the next marker
  return tokens.map((token, index) => {
    if (token.startsWith(WORD) && marked !== null) at = Math.max(at, words[marked].end);
    if (token.startsWith(WORD)) marked = null;
    else if (token === UNKNOWN && marked !== null) return marked;
    const word = words.findIndex((one) => one.end > at);
    if (token === END || word < 0) return words.length;
    if (token === WORD) return (marked = word);
    const { end } = words[word];
    const found = find(letters, token, at);
    if (found >= 0 && found < (words[word + 1]?.end ?? end)) {
      at = found + bare(token).length;
      return found < end ? word : word + 1;
    }
    if (token !== UNKNOWN) return word;
    const start = Math.max(at, words[word].start) + 1;
    const next = tokens[index + 1] ?? END;
    const isPart = !next.startsWith(WORD) && find(letters.slice(0, end), next, start) >= 0;
    at = isPart ? start : end;
    return word;
  });
}

const bare = (token) => (token.startsWith(WORD) ? token.slice(WORD.length) : token);

/** Return where a token is in lower-case text, from a position on; -1 if it is not. */
const find = (letters, token, from) => (bare(token) ? letters.indexOf(bare(token).toLowerCase(), from) : -1);

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
