"""Span corruption: spans are removed from the source and become the target (T5)."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from regard.core.config import AtLeast, Config, Positive, Within
from regard.core.keyed_random import uniform
from regard.data.batching import Batches, Rows, Sequences
from regard.data.text.tokenizers import Tokenizer

Pairs = tuple[Sequences, Sequences]
"""Token ids of sources and of targets."""

Change = Callable[[Pairs, Rows, int], Pairs]
"""Function of pairs, their numbers and the epoch that returns the pairs of this epoch."""


@dataclass(frozen=True, kw_only=True)
class CorruptionConfig(Config):
    """Span corruption (Raffel et al. 2020, section 3.1.4)."""

    share: Annotated[float, Within(0.01, 0.9)] = 0.15
    """Share of the tokens that are removed; at least one is."""
    mean_length: Annotated[float, AtLeast(1)] = 3.0
    """Mean number of tokens in a span."""
    num_sentinels: Positive = 32
    """Number of sentinel tokens, which replace spans, and so the maximum number of spans."""

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Sentinel tokens, which replace spans."""
        return tuple(f"<x{number}>" for number in range(self.num_sentinels))


class Corruption:
    """Span corruption, a function of the seed, the epoch and the text's number only.

    The source is `… <x0> … <x1> … <eos>`, the target `<sos> <x0> words <x1> words <eos>`.
    """

    def __init__(self, config: CorruptionConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._tokenizer = tokenizer
        self.sentinels = [tokenizer.find(spelling) for spelling in config.sentinels]

    def change(self, pairs: Pairs, rows: Rows, epoch: int) -> Pairs:
        """Remove spans from texts.

        Args:
            pairs: Tokens of the texts, without end tokens, and targets, which are ignored.
            rows: Numbers of the texts.
            epoch: Each epoch removes other spans.

        Returns:
            Sources and targets, with end tokens.
        """
        uniforms = uniform((self._seed, epoch), rows, 2 * len(self.sentinels)).tolist()
        corrupted = [self._corrupt(ids, row) for ids, row in zip(pairs[0], uniforms, strict=True)]
        return [source for source, _ in corrupted], [target for _, target in corrupted]

    def _corrupt(self, ids: list[int], uniforms: list[float]) -> tuple[list[int], list[int]]:
        source: list[int] = []
        target: list[int] = [self._tokenizer.sos]
        position = 0
        kept, removed = self._span_lengths(len(ids), uniforms)
        for sentinel, num_kept, num_removed in zip(self.sentinels, kept, removed, strict=False):
            source += [*ids[position : position + num_kept], sentinel]
            position += num_kept
            target += [sentinel, *ids[position : position + num_removed]]
            position += num_removed
        return [*source, *ids[position:], self._tokenizer.eos], [*target, self._tokenizer.eos]

    def _span_lengths(self, length: int, uniforms: list[float]) -> tuple[list[int], list[int]]:
        """Return the lengths of kept and of removed spans, which alternate."""
        num_removed = min(max(round(self._config.share * length), 1), length)
        num_spans = max(round(num_removed / self._config.mean_length), 1)
        num_spans = min(num_spans, len(self.sentinels), max(length - num_removed, 1))
        kept = _partition(length - num_removed, num_spans, uniforms[: len(self.sentinels)])
        return kept, _partition(num_removed, num_spans, uniforms[len(self.sentinels) :])


@dataclass(eq=False, repr=False)
class CorruptedBatches(Batches):
    """Pairs changed anew in each epoch; lengths are those of the unchanged sources."""

    change: Change = field(kw_only=True)
    """Function that changes pairs, such as `Corruption.change` or `WordNoise.change`."""

    def pairs(self, rows: Rows, number: int) -> Pairs:
        """Return the sources and targets of an epoch."""
        return self.change(super().pairs(rows, number), rows, number)


def _partition(num: int, num_parts: int, uniforms: list[float]) -> list[int]:
    """Split a number into parts of at least one, uniformly over all ways to do so."""
    if num < num_parts:
        return [num] + [0] * (num_parts - 1)
    # Floyd's algorithm samples borders without replacement.
    borders: set[int] = set()
    for last, u in zip(range(num - num_parts + 1, num), uniforms, strict=False):
        border = 1 + int(u * last)
        borders.add(last if border in borders else border)
    cuts = [0, *sorted(borders), num]
    return [end - start for start, end in itertools.pairwise(cuts)]
