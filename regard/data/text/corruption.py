"""Span corruption: a text loses some spans, and they are what has to be written (T5)."""

import itertools
from dataclasses import dataclass

from regard.core.config import at_least, within
from regard.core.keyed_random import uniform
from regard.data.batching import BatchConfig, Batches, Rows, Sequences
from regard.data.text.field import TextField
from regard.data.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True)
class CorruptionConfig:
    """How much of a text is taken out, and in what pieces (Raffel et al. 2020, section 3.1.4)."""

    share: float = 0.15
    """Share of the tokens that is taken out, one at the least."""
    mean_length: float = 3.0
    """Tokens of a span on average."""
    num_sentinels: int = 32
    """Tokens that mark where spans were; so many spans at most are taken out of a text."""

    def __post_init__(self) -> None:
        within("share", self.share, low=0.01, high=0.9)
        at_least("mean_length", self.mean_length, 1)
        at_least("num_sentinels", self.num_sentinels, 1)

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Spellings of the tokens that mark where spans were."""
        return tuple(f"<x{number}>" for number in range(self.num_sentinels))


class Corruption:
    """Takes spans out of texts; which ones hangs on seed, epoch and the text's number alone.

    The source reads `… <x0> … <x1> … <eos>`, the target `<sos> <x0> words <x1> words <eos>`.
    """

    def __init__(self, config: CorruptionConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._tokenizer = tokenizer
        self.sentinels = [tokenizer.find(spelling) for spelling in config.sentinels]

    def corrupt(self, texts: Sequences, rows: Rows, *, epoch: int) -> tuple[Sequences, Sequences]:
        """Take spans out of texts.

        Args:
            texts: Their tokens, without ends.
            rows: Their numbers.
            epoch: Other spans in every epoch.

        Returns:
            Sources and targets, ends included.
        """
        lots = uniform((self._seed, epoch), rows, 2 * len(self.sentinels)).tolist()
        found = [self._take_out(ids, own) for ids, own in zip(texts, lots, strict=True)]
        return [source for source, _ in found], [target for _, target in found]

    def _take_out(self, ids: list[int], lots: list[float]) -> tuple[list[int], list[int]]:
        source: list[int] = []
        target: list[int] = [self._tokenizer.sos]
        place = 0
        kept, taken = self._measure(len(ids), lots)
        for sentinel, num_kept, num_taken in zip(self.sentinels, kept, taken, strict=False):
            source += [*ids[place : place + num_kept], sentinel]
            place += num_kept
            target += [sentinel, *ids[place : place + num_taken]]
            place += num_taken
        return [*source, *ids[place:], self._tokenizer.eos], [*target, self._tokenizer.eos]

    def _measure(self, length: int, lots: list[float]) -> tuple[list[int], list[int]]:
        """Return the lengths of the spans that stay and of those that go, in turns."""
        num_taken = min(max(round(self._config.share * length), 1), length)
        num_spans = max(round(num_taken / self._config.mean_length), 1)
        num_spans = min(num_spans, len(self.sentinels), max(length - num_taken, 1))
        kept = _share_out(length - num_taken, num_spans, lots[: len(self.sentinels)])
        return kept, _share_out(num_taken, num_spans, lots[len(self.sentinels) :])


class CorruptedBatches(Batches):
    """Texts as pairs that are made anew in each epoch.

    Args:
        texts: Tokens of each text, without ends.
        config: Budget and limits; texts count as long as they were before.
        corruption: Takes spans out.
        field: It pads.
        seed: Another seed is another order.
        is_shuffled: Whether every epoch has an order of its own.
        is_pinned: Whether tensors are put where a GPU fetches them without waiting.
    """

    def __init__(
        self,
        texts: Sequences,
        config: BatchConfig,
        *,
        corruption: Corruption,
        field: TextField,
        seed: int = 0,
        is_shuffled: bool = True,
        is_pinned: bool = False,
    ) -> None:
        super().__init__(
            texts,
            texts,
            config,
            fields=(field, field),
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=is_pinned,
        )
        self._corruption = corruption

    def pairs(self, rows: Rows, number: int) -> tuple[Sequences, Sequences]:
        """Return what is left of texts in an epoch, and what was taken out."""
        texts, _ = super().pairs(rows, number)
        return self._corruption.corrupt(texts, rows, epoch=number)


def _share_out(num: int, num_parts: int, lots: list[float]) -> list[int]:
    """Cut a number into parts of at least one, every way as likely as any other."""
    if num < num_parts:
        return [num] + [0] * (num_parts - 1)
    # Floyd's way of drawing borders without drawing one twice.
    borders: set[int] = set()
    for last, lot in zip(range(num - num_parts + 1, num), lots, strict=False):
        border = 1 + int(lot * last)
        borders.add(last if border in borders else border)
    cuts = [0, *sorted(borders), num]
    return [end - start for start, end in itertools.pairwise(cuts)]
