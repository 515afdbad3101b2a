"""N-grams of texts and what is measured by them: ROUGE, and how varied the answers are."""

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
"""How words are cut: runs of a-z and 0-9 as the package rouge-score does, what stands between
whitespace, or single characters. The first cuts at every other letter (an umlaut, say) and sees
nothing of other scripts: the last two are for them.
"""


class Overlap(NamedTuple):
    """What two texts share."""

    f1: float
    precision: float
    recall: float


Compare = Callable[[list[str], list[str]], Overlap]
"""Words of a hypothesis and of a reference → what they share."""


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count the runs of n words.

    Args:
        words: Units in their order.
        n: Length of a run.
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
    """Measure the F1 of what texts share in percent, as the mean over sentences; no stemming.

    Lin 2004. Each text is one sequence, whatever its sentences.

    Args:
        hypotheses: One text each.
        references: For each hypothesis its references; the best counts.
        name: What papers call it.
        compare: What is shared: runs of words, or the longest subsequence.
        tokenize: How words are cut, one of `TOKENIZERS`.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    cut = pick(TOKENIZERS, tokenize, "tokenize")
    cut_references = [[cut(text) for text in texts] for texts in references]
    if not any(words for texts in cut_references for words in texts):
        logger.warning(
            "ROUGE is 0: no reference holds a word as `tokenize` '%s' cuts them. "
            "Other scripts are measured by `rouge_char`.",
            tokenize,
        )
    scores = [
        max(compare(cut(hypothesis), right) for right in texts)
        for hypothesis, texts in zip(hypotheses, cut_references, strict=True)
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


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest subsequence of both.

    Hyyrö 2004: one row of the usual table is one integer, a bit per unit of `first`, which is 0
    where the row rises by one. So a row costs a few operations, not one per unit.

    Args:
        first: Any units.
        second: Units of the same kind.
    """
    places: dict[str, int] = {}
    for position, unit in enumerate(first):
        places[unit] = places.get(unit, 0) | 1 << position
    every = row = (1 << len(first)) - 1
    for unit in second:
        matches = row & places.get(unit, 0)
        row = ((row + matches) | (row - matches)) & every
    return len(first) - row.bit_count()


def _overlap(num_shared: int, num_written: int, num_right: int) -> Overlap:
    if not num_shared:
        return Overlap(0.0, 0.0, 0.0)
    return Overlap(
        f1=2 * num_shared / (num_written + num_right),
        precision=num_shared / num_written,
        recall=num_shared / num_right,
    )


def _share_ngrams(written: list[str], right: list[str], *, n: int) -> Overlap:
    ours, theirs = ngrams(written, n), ngrams(right, n)
    return _overlap((ours & theirs).total(), ours.total(), theirs.total())


def _share_order(written: list[str], right: list[str]) -> Overlap:
    return _overlap(longest_common(written, right), len(written), len(right))


rouge1 = partial(rouge, name="ROUGE-1", compare=partial(_share_ngrams, n=1))
"""Shared words (section 2)."""

rouge2 = partial(rouge, name="ROUGE-2", compare=partial(_share_ngrams, n=2))
"""Shared pairs of words (section 2)."""

rouge_l = partial(rouge, name="ROUGE-L", compare=_share_order)
"""The longest shared subsequence (section 3.1)."""

rouge_char = partial(rouge_l, tokenize="char")
"""ROUGE-L over characters, for scripts other than the Latin one."""


def distinct(
    hypotheses: Texts, references: References, *, n: int, num_bootstrap: int = 0
) -> Result:
    """Measure the share of different n-grams among all n-grams of the hypotheses, in percent.

    Li et al. 2016, who divide by the number of words instead.

    Args:
        hypotheses: One sentence each, words separated by whitespace.
        references: Not looked at.
        n: The number of words of an n-gram.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    counts = [ngrams(hypothesis.split(), n) for hypothesis in hypotheses]
    num_holders = Counter(ngram for count in counts for ngram in count)
    num_own = np.array([sum(num_holders[ngram] == 1 for ngram in count) for count in counts])
    lengths = np.array([count.total() for count in counts])
    drawn = "|interval:pseudo-values" if num_bootstrap else ""
    return ratio(
        f"distinct-{n}",
        _pulls(len(num_holders), num_own, lengths).tolist(),
        signature=f"average:corpus|case:mixed|tok:whitespace{drawn}",
        num_bootstrap=num_bootstrap,
        scale=1,
        detail={"different": len(num_holders), "count": int(lengths.sum())},
    )


def _pulls(num_different: int, num_own: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return each sentence's pull on the share, which is their mean: Tukey's pseudo-values.

    A sample in which a sentence stands twice has fewer different n-grams than any fresh text, so
    its own share says nothing. How far the share falls without a sentence can be drawn instead.

    Args:
        num_different: Different n-grams of all sentences.
        num_own: For each sentence how many of them no other sentence has.
        lengths: For each sentence the number of its n-grams.
    """
    total = lengths.sum()
    share = 100 * num_different / max(total, 1)
    rest = 100 * (num_different - num_own) / np.maximum(total - lengths, 1)
    # Without the only sentence that has n-grams there is no share to compare with.
    rest = np.where(lengths < total, rest, share)
    return np.asarray(share + (len(lengths) - 1) * (rest.mean() - rest))


distinct1: Metric = partial(distinct, n=1)
distinct2: Metric = partial(distinct, n=2)
