"""Word alignment of sentence pairs by expectation maximisation, without a neural model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.progress import track
from regard.data.example import Alignment

NULL_PROB = 0.08
"""Prior probability that a target word has no source word."""
START_TENSION = 4.0
TENSION_LIMITS = 0.1, 14.0
TENSION_RATE, TENSION_STEPS = 20.0, 8
CONCENTRATION = 0.01
"""Concentration of the Dirichlet prior of translation probabilities; small means sparse."""

Words = Sequence[str]
Array = NDArray[Any]


@dataclass(frozen=True)
class _Cells:
    """All candidate links of a corpus, one after the other: per target word, NULL comes first."""

    types: Array
    """(C,), index of the pair of source and target word type."""
    source_types: Array
    """(P,), source word type of each pair of types; 0 is NULL."""
    distances: Array
    """(C,), |i/n - j/m|, the distance from the diagonal of the sentence pair; 0 for NULL."""
    first: Array
    """(T,), index of the first cell of each target word, which is its NULL cell."""
    counts: Array
    """(T,), number of cells of each target word."""


def align_words(pairs: Sequence[tuple[Words, Words]], *, num_rounds: int = 5) -> list[Alignment]:
    """Link each target word to its most probable source word, or to none.

    IBM model 1 (Brown et al. 1993) with the prior of fast_align (Dyer et al. 2013): the probability
    of source position i for target position j is proportional to exp(-λ |i/n - j/m|), where λ is
    estimated, and translation probabilities have a Dirichlet prior.

    Args:
        pairs: Words of sources and targets. The probabilities are estimated on all pairs.
        num_rounds: Number of rounds of expectation maximisation.

    Returns:
        The links of each pair, sorted.
    """
    if not any(target for _, target in pairs):
        raise DataError("Word alignment needs at least one target word, but there is none.")
    cells = _build_cells(pairs)
    translation = np.full(len(cells.source_types), 1.0)
    tension = START_TENSION
    for number in track(range(num_rounds + 1), "Aligning words"):
        prior = _prior(cells, tension)
        joint = prior * translation[cells.types]
        posterior = joint / np.repeat(np.add.reduceat(joint, cells.first), cells.counts)
        if number < num_rounds:
            translation = _translation_probs(cells, posterior)
            tension = _fit_tension(cells, posterior, tension)
    return _best_links(pairs, posterior)


def _build_cells(pairs: Sequence[tuple[Words, Words]]) -> _Cells:
    source_ids: dict[str, int] = {}
    target_ids: dict[str, int] = {}
    sources, targets, distances, counts = [], [], [], []
    for source, target in pairs:
        # 0 is NULL.
        row = [0, *(source_ids.setdefault(word, len(source_ids) + 1) for word in source)]
        column = [target_ids.setdefault(word, len(target_ids)) for word in target]
        relative = (np.arange(len(source)) + 1) / max(len(source), 1)
        for position, word in enumerate(column):
            distances.append(
                np.abs(np.concatenate([[0.0], relative - (position + 1) / len(column)]))
            )
            distances[-1][0] = 0.0
            targets.append(np.full(len(row), word))
        sources.append(np.tile(np.array(row), len(column)))
        counts += [len(row)] * len(column)
    num_targets = len(target_ids)
    keys = np.concatenate(sources) * num_targets + np.concatenate(targets)
    unique, types = np.unique(keys, return_inverse=True)
    sizes = np.array(counts)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return _Cells(types, unique // num_targets, np.concatenate(distances), first, sizes)


def _prior(cells: _Cells, tension: float) -> Array:
    """Return the prior probability of each cell given its target position, (C,)."""
    weights = np.exp(-tension * cells.distances)
    weights[cells.first] = 0.0
    sums = np.repeat(np.add.reduceat(weights, cells.first), cells.counts)
    prior: Array = (1 - NULL_PROB) * weights / np.maximum(sums, 1e-300)
    prior[cells.first] = NULL_PROB
    return prior


def _translation_probs(cells: _Cells, posterior: Array) -> Array:
    """Return the expected translation probability of each pair of types, (P,).

    The mean of the logarithm under the Dirichlet posterior (variational Bayes), not of the
    probability, so that rare words do not translate everything.
    """
    counts = np.bincount(cells.types, posterior, minlength=len(cells.source_types)) + CONCENTRATION
    totals = np.bincount(cells.source_types, counts)
    logs = _digamma(counts) - _digamma(totals)[cells.source_types]
    probs: Array = np.exp(logs)
    return probs


def _digamma(values: Array) -> Array:
    result: Array = torch.from_numpy(np.maximum(values, 1e-10)).digamma().numpy()
    return result


def _fit_tension(cells: _Cells, posterior: Array, tension: float) -> float:
    """Return λ after gradient steps towards equal expected distances under prior and posterior."""
    is_null = np.zeros(len(posterior), dtype=bool)
    is_null[cells.first] = True
    linked = np.where(is_null, 0.0, posterior)
    total = linked.sum()
    if not total:
        return tension
    per_target = np.repeat(np.add.reduceat(linked, cells.first), cells.counts)
    observed = (linked * cells.distances).sum() / total
    for _ in range(TENSION_STEPS):
        prior = np.where(is_null, 0.0, _prior(cells, tension)) / (1 - NULL_PROB)
        expected = (prior * per_target * cells.distances).sum() / total
        step = TENSION_RATE * (expected - observed)
        tension = float(np.clip(tension + step, *TENSION_LIMITS))
    return tension


def _best_links(pairs: Sequence[tuple[Words, Words]], posterior: Array) -> list[Alignment]:
    links: list[Alignment] = []
    start = 0
    for source, target in pairs:
        size = (len(source) + 1) * len(target)
        table = posterior[start : start + size].reshape(len(target), len(source) + 1)
        start += size
        best = table.argmax(axis=1) - 1 if len(target) else []
        links.append(tuple(sorted((int(i), j) for j, i in enumerate(best) if i >= 0)))
    return links
