"""Linear probes of each layer of an encoder: text length, word order and token position."""

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.core.errors import ConfigError, DataError
from regard.core.progress import track
from regard.data.text.field import Text, as_text
from regard.interpret.embed import Vectors, require_embedder
from regard.models.layer_states import check_layers, layer_states
from regard.tasks.base import Embeds, Task
from regard.tasks.batches import count_rows

LENGTH, ORDER, POSITION = "length R²", "word order %", "position R²"
PROBES = (LENGTH, ORDER, POSITION)
"""Linear probes: the number of tokens of a text; whether two neighbouring words were swapped; the
position of a token."""

MAX_TEXTS = 1_000
"""Maximum number of texts."""

MAX_TOKENS = 3_000
"""Maximum number of training tokens of the position probe."""

MIN_TEXTS = 10
"""Minimum number of texts for training and for testing."""

SEED = 12345

PENALTIES = tuple(10.0**power for power in range(-3, 6))
"""Ridge penalties to choose from, for standardised inputs."""

_SPACE = re.compile(r"(\s+)")

Scores = Mapping[str, float]
Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class ProbeResults:
    """Results of probes, layer by layer, embeddings first."""

    layers: tuple[Scores, ...]
    """Scores of each layer by probe; NaN if the texts are not sufficient."""
    control: tuple[Scores, ...]
    """The same for the untrained encoder."""
    num_learned: int
    """Number of training texts of the probes."""
    num_tested: int
    """Number of test texts of the probes."""

    @property
    def names(self) -> list[str]:
        """Names of the layers."""
        return ["embeddings", *(f"layer {number}" for number in range(1, len(self.layers)))]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN becomes None."""
        encoders = {"layers": self.layers, "control": self.control}
        values = {
            encoder: [
                {name: None if math.isnan(value) else value for name, value in scores.items()}
                for scores in layers
            ]
            for encoder, layers in encoders.items()
        }
        return {**values, "num_learned": self.num_learned, "num_tested": self.num_tested}


def probe(task: Task[Any], texts: Sequence[Text], *, max_texts: int = MAX_TEXTS) -> ProbeResults:
    """Probe every layer of a run's encoder, and of the same encoder with initial weights.

    Probes are trained on every other text and tested on the rest.

    Args:
        task: A run that reads text with an encoder that has layers.
        texts: Texts; duplicates are dropped.
        max_texts: Maximum number of texts, evenly spaced.
    """
    check_layerwise(task)
    distinct = list(dict.fromkeys(line for line in map(as_text, texts) if line.strip()))
    chosen = distinct[:: -(-len(distinct) // max_texts)] if distinct else []
    if len(chosen) < 2 * MIN_TEXTS:
        raise DataError(
            f"Probes need at least {2 * MIN_TEXTS} distinct texts, half of them for training, but "
            f"there are {len(chosen)}. Name more data."
        )
    return ProbeResults(
        layers=_probe_layers(require_embedder(task), chosen),
        control=_probe_layers(require_embedder(untrained_copy(task)), chosen),
        num_learned=len(chosen[::2]),
        num_tested=len(chosen[1::2]),
    )


def check_layerwise(task: Task[Any]) -> None:
    """Raise a `ConfigError` unless a run reads single texts layer by layer."""
    embedder = require_embedder(task)
    if not embedder.reads_text:
        raise ConfigError(
            f"Probes need a run that reads text, but this one, for the task '{task.recipe.task}', "
            "does not."
        )
    check_layers(embedder.encoder)


def untrained_copy(task: Task[Any]) -> Task[Any]:
    """Return the same task with its initial weights."""
    with tempfile.TemporaryDirectory() as name, torch.random.fork_rng():
        task.save(Path(name))
        return type(task).open_untrained(task.recipe, Path(name), device=task.device)


def _probe_layers(embedder: Embeds, texts: Sequence[str]) -> tuple[Scores, ...]:
    states = _compute_states(embedder, texts)
    swaps = [*_compute_swaps(embedder, texts, states)]
    return tuple(
        {
            LENGTH: _probe_length([layers[layer] for layers in states]),
            ORDER: _probe_order(
                [(row, before[layer], after[layer]) for row, (before, after) in swaps]
            ),
            POSITION: _probe_position([layers[layer] for layers in states]),
        }
        for layer in range(len(states[0]))
    )


def _compute_states(embedder: Embeds, texts: Sequence[str]) -> list[list[Vectors]]:
    """Return for each text the states (S, D) of every layer, without padding."""
    by_text: list[list[Vectors]] = [[] for _ in texts]
    with torch.inference_mode():
        batches = embedder.encoder_batches(texts)
        for batch in track(batches, "Encoding", total=len(texts), size=count_rows):
            lengths = batch.mask.sum(1).tolist()
            for states in layer_states(embedder.encoder, batch.values, batch.mask):
                host = states.float().cpu().numpy()
                for row, length, text_states in zip(batch.rows, lengths, host, strict=True):
                    by_text[row].append(text_states[:length])
    return by_text


def _compute_swaps(
    embedder: Embeds, texts: Sequence[str], states: Sequence[list[Vectors]]
) -> Iterator[tuple[int, tuple[list[Vectors], list[Vectors]]]]:
    """Yield the mean state (D,) of two words by layer, in the original and in swapped order.

    Both are equal in the embeddings, so only context can distinguish them.
    """
    swapped = swap_neighbours(texts)
    swapped_states = _compute_states(embedder, list(swapped.values()))
    before = embedder.encoder_items([texts[row] for row in swapped])
    after = embedder.encoder_items(list(swapped.values()))
    for row, layers, old, new in zip(swapped, swapped_states, before, after, strict=True):
        if old == new:
            # Both words are unknown, so their tokens are equal.
            continue
        first, last = _shared_ends(old, new)
        original = [layer[first : len(old) - last].mean(axis=0) for layer in states[row]]
        yield row, (original, [layer[first : len(new) - last].mean(axis=0) for layer in layers])


def swap_neighbours(texts: Sequence[str]) -> dict[int, str]:
    """Swap two neighbouring words of each text that allows it; return the texts by index.

    The first and the last word stay, since capitals and full stops would reveal a swap. Whitespace
    stays, too.
    """
    random = Random(SEED)
    swapped = {}
    for number, text in enumerate(texts):
        # Words and whitespace alternate; a tab separates two texts of a pair.
        parts = _SPACE.split(text.strip())
        indices = [
            index
            for index in range(2, len(parts) - 4, 2)
            if parts[index] != parts[index + 2]
            and "\t" not in "".join(parts[index - 1 : index + 4])
        ]
        if indices:
            index = random.choice(indices)
            parts[index], parts[index + 2] = parts[index + 2], parts[index]
            swapped[number] = "".join(parts)
    return swapped


def _shared_ends(left: Sequence[int], right: Sequence[int]) -> tuple[int, int]:
    """Return the number of equal tokens at the beginning and at the end of two texts."""
    length = min(len(left), len(right))
    first = next((index for index in range(length) if left[index] != right[index]), length)
    rest = length - first
    last = next((index for index in range(rest) if left[-1 - index] != right[-1 - index]), rest)
    return first, last


def _probe_length(states: Sequence[Vectors]) -> float:
    pooled = np.stack([text_states.mean(axis=0) for text_states in states])
    lengths = np.array([len(text_states) for text_states in states], dtype=float)
    if np.ptp(lengths[1::2]) == 0:
        return float("nan")
    return r_squared(LinearProbe(pooled[::2], lengths[::2])(pooled[1::2]), lengths[1::2])


def _probe_order(swaps: Sequence[tuple[int, Vectors, Vectors]]) -> float:
    """Classify word pairs as original or swapped; both orders of a pair are in the same split."""
    splits = []
    for parity in (0, 1):
        vectors = [vector for row, *pair in swaps if row % 2 == parity for vector in pair]
        if len(vectors) < 2 * MIN_TEXTS:
            return float("nan")
        splits.append((np.stack(vectors), np.tile([-1.0, 1.0], len(vectors) // 2)))
    (train, train_signs), (test, test_signs) = splits
    predicted = np.where(LinearProbe(train, train_signs)(test) > 0, 1.0, -1.0)
    return 100 * float(np.mean(predicted == test_signs))


def _probe_position(states: Sequence[Vectors]) -> float:
    splits = [
        (np.concatenate(texts), np.concatenate([np.arange(len(one), dtype=float) for one in texts]))
        for texts in (states[::2], states[1::2])
    ]
    (train, train_positions), (test, test_positions) = splits
    kept = slice(None, None, -(-len(train) // MAX_TOKENS))
    return r_squared(LinearProbe(train[kept], train_positions[kept])(test), test_positions)


class LinearProbe:
    """Ridge regression with the penalty that minimises the leave-one-out error.

    Hoerl and Kennard 1970. The solution is in closed form, so it is deterministic.

    Args:
        vectors: (N, D), the inputs.
        values: (N,), the targets.
    """

    def __init__(self, vectors: Array, values: Array) -> None:
        if len(vectors) < 2:
            raise DataError(f"A probe needs at least 2 vectors to learn, but has {len(vectors)}.")
        inputs = np.asarray(vectors, dtype=np.float64)
        self._mean = inputs.mean(axis=0)
        std = inputs.std(axis=0)
        self._scale = np.where(std > 1e-9, std, np.inf)
        self._offset = float(np.mean(values))
        centred = np.asarray(values, dtype=np.float64) - self._offset
        standardized = (inputs - self._mean) / self._scale
        left, singular, right = np.linalg.svd(standardized, full_matrices=False)
        projected = left.T @ centred
        squares = singular**2
        best = np.inf
        for penalty in PENALTIES:
            shrinkage = squares / (squares + penalty)
            # Leverage: the weight of a row's own value in its prediction.
            leverage = (left**2) @ shrinkage + 1 / len(inputs)
            residuals = centred - left @ (shrinkage * projected)
            error = np.mean((residuals / (1 - leverage).clip(1e-9)) ** 2)
            if error < best:
                best = error
                scales = np.divide(singular, squares + penalty)
                self._weights = right.T @ (scales * projected)

    def __call__(self, vectors: Array) -> NDArray[np.float64]:
        """Predict the values (N,) of vectors (N, D)."""
        centred: NDArray[np.float64] = (vectors - self._mean) / self._scale @ self._weights
        return centred + self._offset


def r_squared(predicted: Array, values: Array) -> float:
    """Return R²: 1 = perfect, 0 = no better than the mean, negative = worse than the mean."""
    total = float(np.sum((values - np.mean(values)) ** 2))
    if total == 0:
        raise DataError("R² needs values that differ, but all of them are equal.")
    return 1 - float(np.sum((values - predicted) ** 2)) / total
