"""Batches of similar length under a token budget, in an order that can be resumed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from torch import Tensor

from regard.core.config import AtLeast, Config, NonNegative, Positive, at_least
from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.data.batch import Batch, change_values

Sequences = list[list[int]]
Items = list[Any]
"""Whatever a field reads: each has a length, the number of positions it takes."""
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]
AnyBatch = TypeVar("AnyBatch", covariant=True)


@dataclass(frozen=True, kw_only=True)
class BatchConfig(Config):
    """How examples are put together."""

    max_tokens: int = 4096
    """Positions in a batch at most, padding included; the larger side, source or target, counts."""
    max_sentences: NonNegative = 0
    """Examples in a batch at most; 0 sets no limit."""
    max_length: Annotated[int, AtLeast(3)] = 200
    """Tokens in a source or a target at most, start and end token included."""
    too_long: Literal["drop", "truncate"] = "drop"
    """What becomes of a training pair beyond `max_length`."""
    pool: Positive = 100
    """How many batches' worth of examples are sorted by length together; more means less padding,
    fewer means more chance."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_tokens < self.max_length:
            raise ConfigError(
                f"`max_tokens` must be at least `max_length` ({self.max_length}), "
                f"but is {self.max_tokens}."
            )


class Field(Protocol):
    """What pads items."""

    def stack(self, items: Sequence[Any], /) -> tuple[Any, Tensor]:
        """Return items as tensors and their mask."""


class PlannedBatches(ABC, Generic[AnyBatch]):
    """Batches in an order that depends on the seed and the number of the epoch alone."""

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[AnyBatch]:
        """Give the batches of an epoch.

        Args:
            number: Epochs are counted from 0.
            skip: How many batches were seen before an interruption; they are not built again.
        """
        for rows in self.plan(number)[skip:]:
            yield self.stack(rows, number)

    def num_batches(self, number: int) -> int:
        """Return how many batches an epoch has for this process."""
        return len(self.plan(number))

    @abstractmethod
    def plan(self, number: int) -> list[Rows]:
        """Return which examples each batch of an epoch holds."""

    @abstractmethod
    def stack(self, rows: Rows, number: int) -> AnyBatch:
        """Return some examples as they are in an epoch."""


@dataclass(eq=False, repr=False)
class PairBatches(PlannedBatches[AnyBatch]):
    """Encoded pairs as batches of similar length.

    Shuffled: the examples are shuffled, sorted by length within pools, cut into batches by the
    budget, and the batches are shuffled. Not shuffled: all are sorted together, the longest
    first, so that a batch too large for the memory shows at once; `rows` of a batch tells where
    each example belongs.
    """

    sources: Items
    """Each source as its field reads it: token ids, an image."""
    targets: Sequence[Any]
    """Token ids of each target, or whatever else has a length, in the same order."""
    config: BatchConfig
    """Budget and limits."""
    _: KW_ONLY
    fields: tuple[Field, ...]
    """Of source and target; they pad."""
    seed: int = 0
    """Another seed is another order."""
    is_shuffled: bool = True
    """Whether every epoch has an order of its own."""
    share: tuple[int, int] = (0, 1)
    """Rank of this process and number of processes. Shuffled, all have equally many batches, and
    the few beyond that are left out; not shuffled, none is left out."""
    is_pinned: bool = False
    """Whether tensors are put where a GPU fetches them without waiting."""

    def __post_init__(self) -> None:
        if not self.sources or len(self.sources) != len(self.targets):
            raise DataError(
                "Batches need equally many sources and targets, and one at least, "
                f"but there are {len(self.sources):,} and {len(self.targets):,}."
            )
        at_least("seed", self.seed, 0)
        self._source_lengths = np.array([len(ids) for ids in self.sources])
        self._target_lengths = np.array([*map(self.target_length, self.targets)])
        self._longer = np.maximum(self._source_lengths, self._target_lengths)
        self._planned: tuple[int, list[Rows]] = (-1, [])

    @staticmethod
    def target_length(target: Any) -> int:
        """Return the number of positions that a target takes."""
        return len(target)

    def padded_share(self, number: int = 0) -> float:
        """Return the share of positions, source and target, that hold only padding."""
        real = padded = 0
        for rows in self.plan(number):
            for lengths in (self._source_lengths[rows], self._target_lengths[rows]):
                real += int(lengths.sum())
                padded += int(lengths.max()) * len(rows)
        return 1 - real / padded

    def pairs(self, rows: Rows, number: int) -> tuple[Items, Sequences]:
        """Return sources and targets of some examples in an epoch: here, in all the same."""
        indexes = rows.tolist()
        return [self.sources[row] for row in indexes], [self.targets[row] for row in indexes]

    def plan(self, number: int) -> list[Rows]:
        """Return which examples each batch of an epoch holds."""
        if self._planned[0] != number:
            if self.is_shuffled:
                batches = self._shuffle(number)
            else:
                batches = self._cut(self._by_length(np.arange(len(self.sources)))[::-1])
            self._planned = (number, self._take_share(batches))
        return self._planned[1]

    def _shuffle(self, number: int) -> list[Rows]:
        generator = np.random.default_rng([self.seed, number])
        order = generator.permutation(len(self.sources))
        per_batch = self.config.max_tokens / float(self._longer.mean())
        if self.config.max_sentences:
            per_batch = min(per_batch, self.config.max_sentences)
        size = max(1, round(self.config.pool * per_batch))
        batches = [
            batch
            for start in range(0, len(order), size)
            for batch in self._cut(self._by_length(order[start : start + size]))
        ]
        return [batches[index] for index in generator.permutation(len(batches))]

    def _by_length(self, rows: Rows) -> Rows:
        # By the longer side, because the budget counts that one; it also pads least.
        return rows[np.lexsort((self._source_lengths[rows], self._longer[rows]))]

    def _cut(self, rows: Rows) -> list[Rows]:
        most = self.config.max_sentences or len(rows)
        batches: list[Rows] = []
        start = longest = 0
        for position, length in enumerate(self._longer[rows].tolist()):
            longest = max(longest, length)
            size = position - start + 1
            # One example alone is a batch, whatever its length.
            if size > 1 and (size > most or size * longest > self.config.max_tokens):
                batches.append(rows[start:position])
                start, longest = position, length
        return [*batches, rows[start:]]

    def _take_share(self, batches: list[Rows]) -> list[Rows]:
        rank, num_ranks = self.share
        end = len(batches)
        if self.is_shuffled:
            end -= end % num_ranks
            if not end:
                raise DataError(
                    f"The {len(self.sources):,} examples make {len(batches)} batches, too few "
                    f"for {num_ranks} processes. Lower `max_tokens` or use fewer processes."
                )
        return batches[rank:end:num_ranks]

    def pin(self, tensor: Tensor) -> Tensor:
        """Return a tensor where a GPU fetches it without waiting, if wanted."""
        return tensor.pin_memory() if self.is_pinned else tensor


class Batches(PairBatches[Batch]):
    """Encoded sources and targets, padded."""

    def stack(self, rows: Rows, number: int) -> Batch:
        """Return some pairs as they are in an epoch."""
        source_field, target_field = self.fields
        sources, targets = self.pairs(rows, number)
        source, source_mask = source_field.stack(sources)
        target, target_mask = target_field.stack(targets)
        return Batch(
            source=change_values(source, self.pin),
            source_mask=source_mask,
            target=self.pin(target),
            target_mask=self.pin(target_mask),
            rows=tuple(rows.tolist()),
        )


def limit_lengths(
    sources: Items,
    targets: Sequences,
    config: BatchConfig,
    *,
    shorten: Callable[[Any, int], Any] | None = None,
) -> tuple[Items, Sequences, list[int]]:
    """Drop or shorten pairs with a side longer than `max_length`, and say how many.

    Args:
        sources: Token ids of each source, or whatever else has a length.
        targets: Token ids of each target.
        config: The limit, and what becomes of what is beyond it.
        shorten: Cuts a source to so many positions, where it is not just token ids.

    Returns:
        The sources and the targets that remain, and which of the given ones they are. What is
        shortened keeps its last token, the end.
    """
    most = config.max_length
    pairs = list(zip(sources, targets, strict=True))
    fits = [len(source) <= most and len(target) <= most for source, target in pairs]
    num_long = fits.count(False)
    if num_long:
        done = "dropped" if config.too_long == "drop" else "truncated"
        logger.warning(
            f"{done} {num_long:,} of {len(pairs):,} pairs with a side of over {most} tokens "
            "(`max_length`)"
        )
    if config.too_long == "truncate":
        sources = [(shorten or _shorten)(one, most) for one in sources]
        return sources, [_shorten(one, most) for one in targets], list(range(len(pairs)))
    rows = [row for row, does_fit in enumerate(fits) if does_fit]
    if not rows:
        raise DataError(
            f"Every one of the {len(pairs):,} pairs has a side of over {most} tokens. "
            "Raise `max_length`, or set `too_long` to 'truncate'."
        )
    return [sources[row] for row in rows], [targets[row] for row in rows], rows


def _shorten(ids: list[int], most: int) -> list[int]:
    return ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]
