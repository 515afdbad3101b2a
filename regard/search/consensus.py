"""Consensus: of many hypotheses those first that are most like all the others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.search.hypothesis import Hypothesis

MAX_ORDER = 4
"""Tokens of the longest runs that are compared."""

Counts = tuple[Counter[tuple[int, ...]], ...]
"""How often each run of tokens occurs, for each length of runs from 1 on."""


def rank_by_consensus(found: Sequence[Hypothesis], *, is_drawn: bool) -> list[Hypothesis]:
    """Order the hypotheses of one sentence by how much the others agree with them.

    The likeliest target may be an odd one out, where many that say the same in other words share
    the probability among them. What is expected to resemble the true target most, if the model is
    right, is the one that most resembles what else the model would say (minimum Bayes risk, Kumar
    and Byrne 2004).

    Args:
        found: The hypotheses.
        is_drawn: Whether each stands for as much probability as any other, as draws do; else by
            its own probability.

    Returns:
        The same ones, equal ones once; a hypothesis's `value` is the likeness that is expected.
    """
    if is_drawn:
        weights = torch.full((len(found),), 1 / len(found)).tolist()
    else:
        weights = torch.tensor([one.log_prob for one in found]).softmax(0).tolist()
    shares: dict[tuple[int, ...], float] = {}
    for one, weight in zip(found, weights, strict=True):
        shares[one.tokens] = shares.get(one.tokens, 0.0) + weight
    counts = {tokens: _count(tokens) for tokens in shares}
    distinct = {one.tokens: one for one in reversed(found)}
    valued = [
        replace(
            one,
            value=sum(
                share * _likeness(counts[tokens], counts[other]) for other, share in shares.items()
            ),
        )
        for tokens, one in distinct.items()
    ]
    return sorted(valued, key=lambda one: (-one.value, -one.log_prob))


def likeness(tokens: Sequence[int], others: Sequence[int]) -> float:
    """Return what two targets share, from 0 to 1, the same from both sides.

    The mean over runs of 1 to 4 tokens of how many they share, against how many the longer has:
    the smaller of precision and recall ("GLEU", Wu et al. 2016), each length of runs by itself.
    """
    return _likeness(_count(tokens), _count(others))


def _count(tokens: Sequence[int]) -> Counts:
    return tuple(
        Counter(tuple(tokens[at : at + order]) for at in range(len(tokens) - order + 1))
        for order in range(1, MAX_ORDER + 1)
    )


def _likeness(counts: Counts, others: Counts) -> float:
    if counts == others:
        return 1.0
    values = []
    for one, other in zip(counts, others, strict=True):
        if most := max(one.total(), other.total()):
            values.append((one & other).total() / most)
    return sum(values) / len(values)
