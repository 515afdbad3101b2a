"""Minimum Bayes risk decoding: rank hypotheses by their similarity to all others."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis

MAX_ORDER = 4
"""Maximum n-gram order."""

Similarities: TypeAlias = Callable[[Sequence[tuple[int, ...]]], Tensor]
"""Targets → similarity of each target (row) to each other one as its reference (column), (W, W)."""


def rank_by_consensus(
    hypotheses: Sequence[Hypothesis],
    *,
    is_sampled: bool,
    similarities: Similarities | None = None,
) -> list[Hypothesis]:
    """Rank the hypotheses of one sentence by their expected similarity to the others.

    Minimum Bayes risk decoding (Kumar and Byrne 2004). The most likely target can be an outlier if
    several paraphrases share the probability; the expected similarity takes them into account.

    Args:
        hypotheses: The hypotheses.
        is_sampled: Whether hypotheses are samples, which have equal weights; otherwise they are
            weighted by their probability.
        similarities: Function that compares targets; `pairwise_similarities` if None.

    Returns:
        The distinct hypotheses, best first; `value` is the expected similarity.
    """
    if is_sampled:
        weights = torch.full((len(hypotheses),), 1 / len(hypotheses)).tolist()
    else:
        log_probs = torch.tensor([one.log_prob for one in hypotheses], dtype=torch.float64)
        weights = (log_probs - log_probs.logsumexp(0)).exp().tolist()
    totals: dict[tuple[int, ...], float] = {}
    for one, weight in zip(hypotheses, weights, strict=True):
        totals[one.tokens] = totals.get(one.tokens, 0.0) + weight
    compared = (similarities or pairwise_similarities)([*totals])
    expected = compared @ torch.tensor([*totals.values()], dtype=torch.float64)
    values = dict(zip(totals, expected.tolist(), strict=True))
    distinct = {one.tokens: one for one in reversed(hypotheses)}
    scored = [replace(one, value=values[tokens]) for tokens, one in distinct.items()]
    return sorted(scored, key=lambda one: (-one.value, -one.log_prob))


def pairwise_similarities(targets: Sequence[Sequence[int]]) -> Tensor:
    """Return the similarity of each pair of targets, (W, W), from 0 to 1.

    The mean over n-gram orders 1 to 4 of the smaller of n-gram precision and recall, as in GLEU (Wu
    et al. 2016), but per order. Orders without any n-gram in either target do not count.
    """
    total = torch.zeros(len(targets), len(targets), dtype=torch.float64)
    num_orders = torch.zeros_like(total)
    for order in range(1, MAX_ORDER + 1):
        matches, sizes = ngram_matches(targets, order)
        larger = torch.maximum(sizes[:, None], sizes)
        total += matches / larger.clamp(min=1)
        num_orders += larger > 0
    # Two empty targets are equal.
    return torch.where(num_orders > 0, total / num_orders.clamp(min=1), 1.0)


def ngram_matches(sequences: Sequence[Sequence[Hashable]], order: int) -> tuple[Tensor, Tensor]:
    """Return the number of n-grams that each pair of sequences shares, and that each has.

    Repeated occurrences of an n-gram count as often as both sequences have them.

    Args:
        sequences: W sequences.
        order: Number of items of an n-gram.

    Returns:
        (W, W) and (W,), in double precision.
    """
    # Each occurrence has a column of its own: the matrix product counts shared occurrences.
    columns: dict[tuple[tuple[Hashable, ...], int], int] = {}
    entries = []
    for row, items in enumerate(sequences):
        counts: Counter[tuple[Hashable, ...]] = Counter()
        for first in range(len(items) - order + 1):
            ngram = tuple(items[first : first + order])
            counts[ngram] += 1
            entries.append((row, columns.setdefault((ngram, counts[ngram]), len(columns))))
    indicators = torch.zeros(len(sequences), len(columns), dtype=torch.float64)
    if entries:
        rows, indices = torch.tensor(entries).T
        indicators[rows, indices] = 1.0
    return indicators @ indicators.T, indicators.sum(1)
