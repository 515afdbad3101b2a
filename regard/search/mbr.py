"""Consensus: of many hypotheses those first that are most like all the others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis

MAX_ORDER = 4
"""Tokens of the longest runs that are compared."""


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
        log_probs = torch.tensor([one.log_prob for one in found], dtype=torch.float64)
        weights = (log_probs - log_probs.logsumexp(0)).exp().tolist()
    shares: dict[tuple[int, ...], float] = {}
    for one, weight in zip(found, weights, strict=True):
        shares[one.tokens] = shares.get(one.tokens, 0.0) + weight
    expected = likenesses([*shares]) @ torch.tensor([*shares.values()], dtype=torch.float64)
    values = dict(zip(shares, expected.tolist(), strict=True))
    distinct = {one.tokens: one for one in reversed(found)}
    valued = [replace(one, value=values[tokens]) for tokens, one in distinct.items()]
    return sorted(valued, key=lambda one: (-one.value, -one.log_prob))


def likenesses(targets: Sequence[Sequence[int]]) -> Tensor:
    """Return what every two targets share, (W, W), from 0 to 1.

    The mean over runs of 1 to 4 tokens of how many they share, against how many the longer has:
    the smaller of precision and recall ("GLEU", Wu et al. 2016), each length of runs by itself.
    Lengths of which neither has a run do not count.
    """
    total = torch.zeros(len(targets), len(targets), dtype=torch.float64)
    num_orders = torch.zeros_like(total)
    for order in range(1, MAX_ORDER + 1):
        holds = _which_runs(targets, order)  # (W, V)
        sizes = holds.sum(1)
        most = torch.maximum(sizes[:, None], sizes)
        total += (holds @ holds.T) / most.clamp(min=1)
        num_orders += most > 0
    # Two targets without any token are alike.
    return torch.where(num_orders > 0, total / num_orders.clamp(min=1), 1.0)


def _which_runs(targets: Sequence[Sequence[int]], order: int) -> Tensor:
    """Return which runs of so many tokens each target has, (W, V), V being all of them.

    The second time that a run occurs it counts as another one, and so on; so what two targets
    share, each as often as both have it, is a product of their rows.
    """
    columns: dict[tuple[tuple[int, ...], int], int] = {}
    places = []
    for row, tokens in enumerate(targets):
        seen: Counter[tuple[int, ...]] = Counter()
        for at in range(len(tokens) - order + 1):
            run = tuple(tokens[at : at + order])
            seen[run] += 1
            places.append((row, columns.setdefault((run, seen[run]), len(columns))))
    holds = torch.zeros(len(targets), len(columns), dtype=torch.float64)
    if places:
        rows, numbers = torch.tensor(places).T
        holds[rows, numbers] = 1.0
    return holds
