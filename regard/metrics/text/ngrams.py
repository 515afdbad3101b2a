"""N-gram metrics: ROUGE and distinct-n."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.core.logging import logger
from regard.core.tables import pick
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Metric, References, Result, Texts, check_references

TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    "latin": lambda text: re.findall(r"[a-z0-9]+", text.lower()),
    "whitespace": lambda text: text.lower().split(),
    "char": lambda text: list("".join(text.lower().split())),
}
"""Tokenisers: runs of a-z and 0-9 as in the package rouge-score, whitespace, or characters.

`latin` splits words at letters such as umlauts and drops other scripts; use one of the others.
"""


class Overlap(NamedTuple):
    """Overlap of two texts."""

    f1: float
    precision: float
    recall: float


Array = NDArray[Any]
Compare = Callable[[list[str], list[str]], Overlap]
"""Function from the words of a hypothesis and of a reference to their overlap."""


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count the n-grams of a sequence.

    Args:
        words: Words in order.
        n: Order of the n-grams.
    """
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))


def rouge(
    hypotheses: Texts,
    references: References,
    *,
    name: str,
    compare: Compare,
    tokenize: str = "latin",
    num_bootstrap: int = 0,
) -> Result:
    """Compute ROUGE F1 in percent, averaged over texts, without stemming.

    Lin 2004. Each text is one sequence; it is not split into sentences.

    Args:
        hypotheses: One text each.
        references: One or more references per hypothesis; the best counts.
        name: Name of the metric.
        compare: Overlap function: n-grams, or the longest common subsequence.
        tokenize: One of `TOKENIZERS`.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    check_references(hypotheses, references)
    split = pick(TOKENIZERS, tokenize, "tokenize")
    reference_words = [[split(text) for text in texts] for texts in references]
    if not any(words for texts in reference_words for words in texts):
        logger.warning(
            "ROUGE is 0: with `tokenize` '%s', no reference has a word. "
            "Use `rouge_char` for other scripts.",
            tokenize,
        )
    scores = [
        max(compare(split(hypothesis), words) for words in texts)
        for hypothesis, texts in zip(hypotheses, reference_words, strict=True)
    ]
    return ratio(
        name,
        [score.f1 for score in scores],
        signature=f"score:f1|average:sentences|refs:best|case:lc|tok:{tokenize}|stem:no",
        num_bootstrap=num_bootstrap,
        detail={
            "precision": 100 * sum(score.precision for score in scores) / len(scores),
            "recall": 100 * sum(score.recall for score in scores) / len(scores),
        },
    )


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    Hyyrö 2004: one row of the dynamic-programming table is one integer, with a bit per unit of
    `first` that is 0 where the row increases by one. A row then takes a few operations.

    Args:
        first: Any units.
        second: Units of the same kind.
    """
    positions: dict[str, int] = {}
    for position, unit in enumerate(first):
        positions[unit] = positions.get(unit, 0) | 1 << position
    all_bits = row = (1 << len(first)) - 1
    for unit in second:
        matches = row & positions.get(unit, 0)
        row = ((row + matches) | (row - matches)) & all_bits
    return len(first) - row.bit_count()


def _overlap(num_shared: int, num_predicted: int, num_expected: int) -> Overlap:
    if not num_shared:
        return Overlap(0.0, 0.0, 0.0)
    return Overlap(
        f1=2 * num_shared / (num_predicted + num_expected),
        precision=num_shared / num_predicted,
        recall=num_shared / num_expected,
    )


def _ngram_overlap(hypothesis: list[str], reference: list[str], *, n: int) -> Overlap:
    predicted, expected = ngrams(hypothesis, n), ngrams(reference, n)
    return _overlap((predicted & expected).total(), predicted.total(), expected.total())


def _lcs_overlap(hypothesis: list[str], reference: list[str]) -> Overlap:
    return _overlap(lcs_length(hypothesis, reference), len(hypothesis), len(reference))


rouge1 = partial(rouge, name="ROUGE-1", compare=partial(_ngram_overlap, n=1))
"""Overlap of words (section 2)."""

rouge2 = partial(rouge, name="ROUGE-2", compare=partial(_ngram_overlap, n=2))
"""Overlap of word bigrams (section 2)."""

rouge_l = partial(rouge, name="ROUGE-L", compare=_lcs_overlap)
"""Longest common subsequence (section 3.1)."""

rouge_char = partial(rouge_l, tokenize="char")
"""ROUGE-L over characters, for non-Latin scripts."""


def distinct(
    hypotheses: Texts, references: References, *, n: int, num_bootstrap: int = 0
) -> Result:
    """Compute distinct-n: the percentage of distinct n-grams among all n-grams of the hypotheses.

    Li et al. 2016, who divide by the number of words instead.

    Args:
        hypotheses: One sentence each, words separated by whitespace.
        references: Not used.
        n: Order of the n-grams.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    check_references(hypotheses, references)
    counts = [ngrams(hypothesis.split(), n) for hypothesis in hypotheses]
    num_sentences = Counter(ngram for count in counts for ngram in count)
    num_unique = np.array([sum(num_sentences[ngram] == 1 for ngram in count) for count in counts])
    lengths = np.array([count.total() for count in counts])
    method = "|interval:pseudo-values" if num_bootstrap else ""
    return ratio(
        f"distinct-{n}",
        _pseudo_values(len(num_sentences), num_unique, lengths).tolist(),
        signature=f"average:corpus|case:mixed|tok:whitespace{method}",
        num_bootstrap=num_bootstrap,
        scale=1,
        detail={"different": len(num_sentences), "count": int(lengths.sum())},
    )


def _pseudo_values(num_distinct: int, num_unique: Array, lengths: Array) -> Array:
    """Return the jackknife pseudo-value of each sentence (Tukey); their mean is the share.

    A bootstrap resample repeats sentences and so underestimates the share of distinct n-grams.
    Pseudo-values, computed without each sentence in turn, can be resampled instead.

    Args:
        num_distinct: Number of distinct n-grams of all sentences.
        num_unique: For each sentence the number of its n-grams that no other sentence has.
        lengths: Number of n-grams of each sentence.
    """
    total = lengths.sum()
    share = 100 * num_distinct / max(total, 1)
    rest = 100 * (num_distinct - num_unique) / np.maximum(total - lengths, 1)
    # Without the only sentence that has n-grams, the share is undefined.
    rest = np.where(lengths < total, rest, share)
    return np.asarray(share + (len(lengths) - 1) * (rest.mean() - rest))


distinct1: Metric = partial(distinct, n=1)
distinct2: Metric = partial(distinct, n=2)
