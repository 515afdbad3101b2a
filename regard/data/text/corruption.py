"""Span corruption: the source lacks some spans, and they are the target (T5)."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from regard.core.config import AtLeast, Config, Positive, Within
from regard.core.keyed_random import uniform
from regard.data.batching import Batches, Rows, Sequences
from regard.data.text.tokenizers import Tokenizer

Pairs = tuple[Sequences, Sequences]
"""Tokens of sources and of targets."""

Change = Callable[[Pairs, Rows, int], Pairs]
"""Pairs, their numbers and the epoch → the pairs of this epoch."""


@dataclass(frozen=True, kw_only=True)
class CorruptionConfig(Config):
    """How much of a text is taken out, and in what pieces (Raffel et al. 2020, section 3.1.4)."""

    share: Annotated[float, Within(0.01, 0.9)] = 0.15
    """Share of the tokens that is taken out, one at the least."""
    mean_length: Annotated[float, AtLeast(1)] = 3.0
    """Tokens of a span on average."""
    num_sentinels: Positive = 32
    """Tokens that mark where spans were; so many spans at most are taken out of a text."""

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Spellings of the tokens that mark where spans were."""
        return tuple(f"<x{number}>" for number in range(self.num_sentinels))


class Corruption:
    """Takes spans out of texts; which ones depends on seed, epoch and the text's number alone.

    The source reads `… <x0> … <x1> … <eos>`, the target `<sos> <x0> words <x1> words <eos>`.
    """

    def __init__(self, config: CorruptionConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._tokenizer = tokenizer
        self.sentinels = [tokenizer.find(spelling) for spelling in config.sentinels]

    def change(self, pairs: Pairs, rows: Rows, epoch: int) -> Pairs:
        """Take spans out of texts.

        Args:
            pairs: Tokens of the texts, without ends, and targets, which the spans replace.
            rows: Their numbers.
            epoch: Other spans in every epoch.

        Returns:
            Sources and targets, ends included.
        """
        lots = uniform((self._seed, epoch), rows, 2 * len(self.sentinels)).tolist()
        found = [self._take_out(ids, own) for ids, own in zip(pairs[0], lots, strict=True)]
        return [source for source, _ in found], [target for _, target in found]

    def _take_out(self, ids: list[int], lots: list[float]) -> tuple[list[int], list[int]]:
        source: list[int] = []
        target: list[int] = [self._tokenizer.sos]
        position = 0
        kept, taken = self._measure(len(ids), lots)
        for sentinel, num_kept, num_taken in zip(self.sentinels, kept, taken, strict=False):
            source += [*ids[position : position + num_kept], sentinel]
            position += num_kept
            target += [sentinel, *ids[position : position + num_taken]]
            position += num_taken
        return [*source, *ids[position:], self._tokenizer.eos], [*target, self._tokenizer.eos]

    def _measure(self, length: int, lots: list[float]) -> tuple[list[int], list[int]]:
        """Return the lengths of the spans that stay and of those that go, in turns."""
        num_taken = min(max(round(self._config.share * length), 1), length)
        num_spans = max(round(num_taken / self._config.mean_length), 1)
        num_spans = min(num_spans, len(self.sentinels), max(length - num_taken, 1))
        kept = _share_out(length - num_taken, num_spans, lots[: len(self.sentinels)])
        return kept, _share_out(num_taken, num_spans, lots[len(self.sentinels) :])


@dataclass(eq=False, repr=False)
class CorruptedBatches(Batches):
    """Pairs that are changed anew in each epoch; a source counts as long as it is before."""

    change: Change = field(kw_only=True)
    """Changes pairs, as `Corruption.change` and `WordNoise.change` do."""

    def pairs(self, rows: Rows, number: int) -> Pairs:
        """Return sources and targets as they are in an epoch."""
        return self.change(super().pairs(rows, number), rows, number)


def _share_out(num: int, num_parts: int, lots: list[float]) -> list[int]:
    """Cut a number into parts of at least one, every way as likely as any other."""
    if num < num_parts:
        return [num] + [0] * (num_parts - 1)
    # Floyd's way of sampling borders without repetition.
    borders: set[int] = set()
    for last, lot in zip(range(num - num_parts + 1, num), lots, strict=False):
        border = 1 + int(lot * last)
        borders.add(last if border in borders else border)
    cuts = [0, *sorted(borders), num]
    return [end - start for start, end in itertools.pairwise(cuts)]
