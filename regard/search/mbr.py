"""Minimum Bayes risk decoding: rank hypotheses by their similarity to all others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis

MAX_ORDER = 4
"""Maximum n-gram order."""


def rank_by_consensus(hypotheses: Sequence[Hypothesis], *, is_sampled: bool) -> list[Hypothesis]:
    """Rank the hypotheses of one sentence by their expected similarity to the others.

    Minimum Bayes risk decoding (Kumar and Byrne 2004). The most likely target can be an outlier if
    several paraphrases share the probability; the expected similarity takes them into account.

    Args:
        hypotheses: The hypotheses.
        is_sampled: Whether hypotheses are samples, which have equal weights; otherwise they are
            weighted by their probability.

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
    similarities = pairwise_similarities([*totals])
    expected = similarities @ torch.tensor([*totals.values()], dtype=torch.float64)
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
        indicators = _ngram_indicators(targets, order)  # (W, V)
        sizes = indicators.sum(1)
        larger = torch.maximum(sizes[:, None], sizes)
        total += (indicators @ indicators.T) / larger.clamp(min=1)
        num_orders += larger > 0
    # Two empty targets are equal.
    return torch.where(num_orders > 0, total / num_orders.clamp(min=1), 1.0)


def _ngram_indicators(targets: Sequence[Sequence[int]], order: int) -> Tensor:
    """Return the n-gram indicators of each target, (W, V), with one column per n-gram.

    Repeated occurrences of an n-gram have separate columns, so the number of n-grams that two
    targets share is the product of their rows.
    """
    columns: dict[tuple[tuple[int, ...], int], int] = {}
    entries = []
    for row, tokens in enumerate(targets):
        counts: Counter[tuple[int, ...]] = Counter()
        for first in range(len(tokens) - order + 1):
            ngram = tuple(tokens[first : first + order])
            counts[ngram] += 1
            entries.append((row, columns.setdefault((ngram, counts[ngram]), len(columns))))
    indicators = torch.zeros(len(targets), len(columns), dtype=torch.float64)
    if entries:
        rows, indices = torch.tensor(entries).T
        indicators[rows, indices] = 1.0
    return indicators
