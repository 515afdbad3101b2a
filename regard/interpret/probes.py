"""What can be read off the states of each layer: how long a text is, and how its words stand."""

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
from regard.data.text.field import Text, as_text
from regard.interpret.embed import Vectors, require_embedder
from regard.models.layer_states import check_layers, layer_states
from regard.tasks.base import Embeds, Task

LENGTH, ORDER, POSITION = "length R²", "word order %", "position R²"
PROBES = (LENGTH, ORDER, POSITION)
"""How well a linear probe tells the number of tokens of a text; whether two neighbouring words were
swapped; and the position of a single token."""

MAX_TEXTS = 1_000
"""Texts that are read at most."""

MAX_TOKENS = 3_000
"""Tokens at most that the probe of positions learns from."""

MIN_TEXTS = 10
"""Texts on each side, below which a probe says nothing."""

SEED = 12345

PENALTIES = tuple(10.0**power for power in range(-3, 6))
"""Penalties that are tried, as multiples of what a standardised column weighs."""

_SPACE = re.compile(r"(\s+)")

Numbers = Mapping[str, float]
Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class ProbeResults:
    """What probes found, layer by layer, embeddings first."""

    layers: tuple[Numbers, ...]
    """For each layer what was measured, by name; NaN where the texts do not allow it."""
    control: tuple[Numbers, ...]
    """The same for an encoder that has not learned: what the architecture gives."""
    num_learned: int
    """Texts that the probes learned from."""
    num_tested: int
    """Texts that they were tested on."""

    @property
    def names(self) -> list[str]:
        """What the layers are called."""
        return ["embeddings", *(f"layer {number}" for number in range(1, len(self.layers)))]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; what could not be measured is None."""
        sides = {"layers": self.layers, "control": self.control}
        found = {
            side: [
                {name: None if math.isnan(value) else value for name, value in numbers.items()}
                for numbers in own
            ]
            for side, own in sides.items()
        }
        return {**found, "num_learned": self.num_learned, "num_tested": self.num_tested}


def probe(task: Task[Any], texts: Sequence[Text], *, most: int = MAX_TEXTS) -> ProbeResults:
    """Probe every layer of a run's encoder, and of a fresh one of the same kind.

    Every other text is learned from, the others are tested on; they share none.

    Args:
        task: A run that reads text with an encoder whose layers can be told apart.
        texts: Any texts; each distinct one counts once.
        most: How many of them are taken, spread evenly.
    """
    check_layerwise(task)
    distinct = list(dict.fromkeys(line for line in map(as_text, texts) if line.strip()))
    chosen = distinct[:: -(-len(distinct) // most)] if distinct else []
    if len(chosen) < 2 * MIN_TEXTS:
        raise DataError(
            f"Probes need at least {2 * MIN_TEXTS} distinct texts, half of them to learn from, but "
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
            "Probes ask about the words of a text, but this run, for the task "
            f"'{task.recipe.task}', reads something else."
        )
    check_layers(embedder.encoder)


def untrained_copy(task: Task[Any]) -> Task[Any]:
    """Return the same task with fresh weights, as it was before training."""
    with tempfile.TemporaryDirectory() as name, torch.random.fork_rng():
        task.save(Path(name))
        return type(task).open(task.recipe, Path(name), device=task.device)


def _probe_layers(embedder: Embeds, texts: Sequence[str]) -> tuple[Numbers, ...]:
    plain = _read_states(embedder, texts)
    swaps = [*_read_swaps(embedder, texts, plain)]
    return tuple(
        {
            LENGTH: _probe_length([own[layer] for own in plain]),
            ORDER: _probe_order([(row, was[layer], now[layer]) for row, (was, now) in swaps]),
            POSITION: _probe_position([own[layer] for own in plain]),
        }
        for layer in range(len(plain[0]))
    )


def _read_states(embedder: Embeds, texts: Sequence[str]) -> list[list[Vectors]]:
    """Return for each text the states (S, D) of every layer, without padding."""
    found: list[list[Vectors]] = [[] for _ in texts]
    with torch.inference_mode():
        for batch in embedder.encoder_batches(texts):
            lengths = batch.mask.sum(1).tolist()
            for states in layer_states(embedder.encoder, batch.values, batch.mask):
                host = states.float().cpu().numpy()
                for row, length, own in zip(batch.rows, lengths, host, strict=True):
                    found[row].append(own[:length])
    return found


def _read_swaps(
    embedder: Embeds, texts: Sequence[str], plain: Sequence[list[Vectors]]
) -> Iterator[tuple[int, tuple[list[Vectors], list[Vectors]]]]:
    """Yield for texts the mean state (D,) of two words, as they stood and swapped, by layer.

    In the embeddings both are equal: only what a word knows of its neighbours can tell them apart.
    """
    swapped = swap_neighbours(texts)
    changed = _read_states(embedder, list(swapped.values()))
    before = embedder.encoder_items([texts[row] for row in swapped])
    after = embedder.encoder_items(list(swapped.values()))
    for row, own, ids, new in zip(swapped, changed, before, after, strict=True):
        if ids == new:
            # Both words are unknown, and so alike.
            continue
        first, last = _differing(ids, new)
        as_it_was = [states[first : len(ids) - last].mean(axis=0) for states in plain[row]]
        yield row, (as_it_was, [states[first : len(new) - last].mean(axis=0) for states in own])


def swap_neighbours(texts: Sequence[str]) -> dict[int, str]:
    """Swap two neighbouring words of each text that has two to swap; return them by number.

    The first and the last word stay: a capital letter inside, or a full stop, would give it away.
    So do spaces and tabs.
    """
    random = Random(SEED)
    found = {}
    for number, text in enumerate(texts):
        # Words and what is between them, in turn; a tab parts texts that are read side by side.
        parts = _SPACE.split(text.strip())
        places = [
            place
            for place in range(2, len(parts) - 4, 2)
            if parts[place] != parts[place + 2]
            and "\t" not in "".join(parts[place - 1 : place + 4])
        ]
        if places:
            place = random.choice(places)
            parts[place], parts[place + 2] = parts[place + 2], parts[place]
            found[number] = "".join(parts)
    return found


def _differing(left: Sequence[int], right: Sequence[int]) -> tuple[int, int]:
    """Return how many tokens two texts share at their beginning, and at their end."""
    most = min(len(left), len(right))
    first = next((place for place in range(most) if left[place] != right[place]), most)
    rest = most - first
    last = next((place for place in range(rest) if left[-1 - place] != right[-1 - place]), rest)
    return first, last


def _probe_length(states: Sequence[Vectors]) -> float:
    pooled = np.stack([own.mean(axis=0) for own in states])
    lengths = np.array([len(own) for own in states], dtype=float)
    if np.ptp(lengths[1::2]) == 0:
        return float("nan")
    return r_squared(LinearProbe(pooled[::2], lengths[::2])(pooled[1::2]), lengths[1::2])


def _probe_order(swaps: Sequence[tuple[int, Vectors, Vectors]]) -> float:
    """Tell words as they stood from swapped ones; both of a pair are on one side."""
    sides = []
    for parity in (0, 1):
        own = [vector for row, *pair in swaps if row % 2 == parity for vector in pair]
        if len(own) < 2 * MIN_TEXTS:
            return float("nan")
        sides.append((np.stack(own), np.tile([-1.0, 1.0], len(own) // 2)))
    (learned, signs), (tested, right) = sides
    told = np.where(LinearProbe(learned, signs)(tested) > 0, 1.0, -1.0)
    return 100 * float(np.mean(told == right))


def _probe_position(states: Sequence[Vectors]) -> float:
    sides = [
        (np.concatenate(own), np.concatenate([np.arange(len(one), dtype=float) for one in own]))
        for own in (states[::2], states[1::2])
    ]
    (learned, places), (tested, right) = sides
    kept = slice(None, None, -(-len(learned) // MAX_TOKENS))
    return r_squared(LinearProbe(learned[kept], places[kept])(tested), right)


class LinearProbe:
    """Ridge regression; the penalty is the one that predicts each left-out training row best.

    Hoerl and Kennard 1970. Everything is in closed form: there is no chance and no step size.

    Args:
        vectors: (N, D), what is read.
        values: (N,), what is to be read off.
    """

    def __init__(self, vectors: Array, values: Array) -> None:
        if len(vectors) < 2:
            raise DataError(f"A probe needs at least 2 vectors to learn, but has {len(vectors)}.")
        wide = np.asarray(vectors, dtype=np.float64)
        self._mean = wide.mean(axis=0)
        deviation = wide.std(axis=0)
        self._scale = np.where(deviation > 1e-9, deviation, np.inf)
        self._offset = float(np.mean(values))
        centred = np.asarray(values, dtype=np.float64) - self._offset
        left, sizes, right = np.linalg.svd((wide - self._mean) / self._scale, full_matrices=False)
        along = left.T @ centred
        squares = sizes**2
        best = np.inf
        for penalty in PENALTIES:
            kept = squares / (squares + penalty)
            # What a row's own value counts in its prediction: without it, the error is larger.
            leverage = (left**2) @ kept + 1 / len(wide)
            error = np.mean(((centred - left @ (kept * along)) / (1 - leverage).clip(1e-9)) ** 2)
            if error < best:
                best = error
                shrunk = np.divide(sizes, squares + penalty)
                self._weights = right.T @ (shrunk * along)

    def __call__(self, vectors: Array) -> NDArray[np.float64]:
        """Read the values (N,) off vectors (N, D)."""
        found: NDArray[np.float64] = (vectors - self._mean) / self._scale @ self._weights
        return found + self._offset


def r_squared(found: Array, values: Array) -> float:
    """Return R²: the share of the values' variance that is predicted; below 0, worse than none."""
    total = float(np.sum((values - np.mean(values)) ** 2))
    if total == 0:
        raise DataError("R² needs values that differ, but all of them are equal.")
    return 1 - float(np.sum((values - found) ** 2)) / total
