"""Batches of examples of similar length under a token budget, in a resumable order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.core.config import AtLeast, Config, NonNegative, Positive, at_least
from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.data.batch import Batch, map_tensors
from regard.data.example import Alignment
from regard.data.token_ids import Lengths, lengths_of, select, truncate

Sequences = Sequence[list[int]]
Items = Sequence[Any]
"""Items of a field; the length of an item is the number of positions it takes."""
Rows = np.ndarray[tuple[int], np.dtype[np.signedinteger[Any]]]
AnyBatch = TypeVar("AnyBatch", covariant=True)

DEFAULT_TOKENS = 4096
"""Maximum number of positions in a batch if it is not set and not measured."""


@dataclass(frozen=True, kw_only=True)
class BatchConfig(Config):
    """Settings of batches."""

    max_tokens: int | Literal["auto"] = DEFAULT_TOKENS
    """Maximum number of positions in a batch, with padding, on the larger side; 'auto' is the
    largest number that fits into the memory of a GPU, and 4096 on other devices."""
    max_sentences: NonNegative = 0
    """Maximum number of examples in a batch; 0 for no limit."""
    max_length: Annotated[int, AtLeast(3)] = 200
    """Maximum number of tokens of a source or a target, with start and end tokens."""
    too_long: Literal["drop", "truncate"] = "drop"
    """Treatment of training pairs longer than `max_length`."""
    pool: Positive = 100
    """Number of batches whose examples are sorted by length together; more means less padding,
    fewer means a more random order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token_budget < self.max_length:
            raise ConfigError(
                f"`max_tokens` must be at least `max_length` ({self.max_length}), "
                f"but is {self.max_tokens}."
            )

    @property
    def token_budget(self) -> int:
        """Number of `max_tokens`, or the default one if it is measured in training only."""
        if self.max_tokens == "auto":
            return max(DEFAULT_TOKENS, self.max_length)
        return self.max_tokens


class Field(Protocol):
    """Interface of fields, which pad items."""

    def stack(self, items: Sequence[Any], /) -> tuple[Any, Tensor]:
        """Return items as padded tensors, and their mask."""


class PlannedBatches(ABC, Generic[AnyBatch]):
    """Batches in an order that depends only on the seed and the epoch."""

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[AnyBatch]:
        """Yield the batches of an epoch.

        Args:
            number: Number of the epoch, from 0.
            skip: Number of batches to skip when training resumes; they are not built.
        """
        for rows in self.plan(number)[skip:]:
            yield self.stack(rows, number)

    def num_batches(self, number: int) -> int:
        """Return the number of batches of an epoch for this process."""
        return len(self.plan(number))

    @abstractmethod
    def plan(self, number: int) -> list[Rows]:
        """Return the indexes of the examples of each batch of an epoch."""

    @abstractmethod
    def stack(self, rows: Rows, number: int) -> AnyBatch:
        """Return the batch of some examples in an epoch."""


@dataclass(eq=False, repr=False)
class PairBatches(PlannedBatches[AnyBatch]):
    """Encoded pairs as batches of similar length.

    Shuffled: examples are shuffled, sorted by length within pools, split into batches by the
    budget, and the batches are shuffled. Not shuffled: all examples are sorted, the longest first,
    so that an out-of-memory error occurs at once; `rows` of a batch are the indexes of its
    examples.
    """

    sources: Items
    """Items of the sources, such as token ids or images."""
    targets: Sequence[Any]
    """Token ids of the targets, or other items with a length, in the same order."""
    config: BatchConfig
    """Budget and limits."""
    _: KW_ONLY
    fields: tuple[Field, ...]
    """Fields of source and target, which pad."""
    seed: int = 0
    """Random seed of the order."""
    is_shuffled: bool = True
    """Whether every epoch has another random order."""
    shard: tuple[int, int] = (0, 1)
    """Rank of this process and number of processes. Shuffled, all processes have the same number
    of batches, and surplus batches are dropped; not shuffled, none is dropped."""
    is_pinned: bool = False
    """Whether tensors are in pinned memory, for asynchronous copies to a GPU."""

    def __post_init__(self) -> None:
        if not self.sources or len(self.sources) != len(self.targets):
            raise DataError(
                "Batches need equally many sources and targets, and one at least, "
                f"but there are {len(self.sources):,} and {len(self.targets):,}."
            )
        at_least("seed", self.seed, 0)
        self._source_lengths = lengths_of(self.sources)
        self._target_lengths = self.target_lengths(self.targets)
        self._longer = np.maximum(self._source_lengths, self._target_lengths)
        self._planned: tuple[int, list[Rows]] = (-1, [])

    @staticmethod
    def target_lengths(targets: Sequence[Any]) -> Lengths:
        """Return the number of positions of each target."""
        return lengths_of(targets)

    def with_max_tokens(self, num: int) -> Self:
        """Return batches of the same examples with another maximum number of positions."""
        return replace(self, config=replace(self.config, max_tokens=num))

    def largest(self) -> list[AnyBatch]:
        """Return the batches that need the most memory: with the longest example, and in all."""

        def num_positions(rows: Rows) -> int:
            longest = self._source_lengths[rows].max() + self._target_lengths[rows].max()
            return int(longest) * len(rows)

        planned = self.plan(0)
        longest = max(planned, key=lambda rows: int(self._longer[rows].max()))
        return [self.stack(rows, 0) for rows in (longest, max(planned, key=num_positions))]

    def padding_share(self, number: int = 0) -> float:
        """Return the share of positions, source and target, that are padding."""
        real = padded = 0
        for rows in self.plan(number):
            for lengths in (self._source_lengths[rows], self._target_lengths[rows]):
                real += int(lengths.sum())
                padded += int(lengths.max()) * len(rows)
        return 1 - real / padded

    def pairs(self, rows: Rows, number: int) -> tuple[Items, Sequences]:
        """Return sources and targets of some examples; here, the same in every epoch."""
        indexes = rows.tolist()
        return [self.sources[row] for row in indexes], [self.targets[row] for row in indexes]

    def plan(self, number: int) -> list[Rows]:
        """Return the indexes of the examples of each batch of an epoch."""
        if self._planned[0] != number:
            self._planned = (-1, [])  # Frees the plan of another epoch, large as the corpus.
            if self.is_shuffled:
                batches = self._shuffle(number)
            else:
                batches = self._split(self._sort_by_length(_rows(len(self.sources)))[::-1])
            self._planned = (number, self._take_shard(batches))
        return self._planned[1]

    def _shuffle(self, number: int) -> list[Rows]:
        generator = np.random.default_rng([self.seed, number])
        order = generator.permutation(_rows(len(self.sources)))
        per_batch = self.config.token_budget / float(self._longer.mean())
        if self.config.max_sentences:
            per_batch = min(per_batch, self.config.max_sentences)
        size = max(1, round(self.config.pool * per_batch))
        batches = [
            batch
            for start in range(0, len(order), size)
            for batch in self._split(self._sort_by_length(order[start : start + size]))
        ]
        return [batches[index] for index in generator.permutation(len(batches))]

    def _sort_by_length(self, rows: Rows) -> Rows:
        # By the longer side, since the budget counts that side, then by the difference of both, in
        # turns up and down, so that the shorter side changes little where the longer one changes.
        # Examples of equal lengths stay shuffled, so an epoch of one pool has the same shapes of
        # batches as every other: captured steps are used again.
        longer = self._longer[rows]
        differences = self._source_lengths[rows] - self._target_lengths[rows]
        return rows[np.lexsort((np.where(longer % 2, differences, -differences), longer))]

    def _split(self, rows: Rows) -> list[Rows]:
        max_size = self.config.max_sentences or len(rows)
        batches: list[Rows] = []
        start = longest = 0
        for position, length in enumerate(self._longer[rows].tolist()):
            longest = max(longest, length)
            size = position - start + 1
            # A single example is a batch at any length.
            if size > 1 and (size > max_size or size * longest > self.config.token_budget):
                batches.append(rows[start:position])
                start, longest = position, length
        return [*batches, rows[start:]]

    def _take_shard(self, batches: list[Rows]) -> list[Rows]:
        rank, num_ranks = self.shard
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
        """Return a tensor in pinned memory if `is_pinned`."""
        return tensor.pin_memory() if self.is_pinned else tensor


class Batches(PairBatches[Batch]):
    """Batches of encoded sources and targets."""

    def stack(self, rows: Rows, number: int) -> Batch:
        """Return the batch of some pairs in an epoch."""
        source_field, target_field = self.fields
        sources, targets = self.pairs(rows, number)
        source, source_mask = source_field.stack(sources)
        target, target_mask = target_field.stack(targets)
        return Batch(
            source=map_tensors(source, self.pin),
            source_mask=self.pin(source_mask),
            target=self.pin(target),
            target_mask=self.pin(target_mask),
            rows=tuple(rows.tolist()),
        )


@dataclass(eq=False, repr=False)
class AlignedBatches(Batches):
    """Pairs with the gold alignment of their tokens."""

    links: Sequence[Alignment] = field(kw_only=True)
    """Links between source and target tokens of each pair, both counted from 0."""

    def stack(self, rows: Rows, number: int) -> Batch:
        """Return the batch of some pairs, with their links."""
        batch = super().stack(rows, number)
        num_targets, num_sources = batch.target.shape[1] - 1, batch.source.shape[1]
        links = torch.zeros(len(rows), num_targets, num_sources)
        for position, row in enumerate(rows.tolist()):
            if self.links[row]:
                sources, targets = zip(*self.links[row], strict=True)
                links[position, targets, sources] = 1.0
        shares = links / links.sum(-1, keepdim=True).clamp(min=1)
        return replace(batch, links=self.pin(shares))


def _rows(num: int) -> Rows:
    """Return all indexes of `num` examples, in half the size of the default type if they fit."""
    return np.arange(num, dtype=np.int32 if num <= np.iinfo(np.int32).max else np.int64)


def limit_lengths(
    sources: Items,
    targets: Sequences,
    config: BatchConfig,
    *,
    shorten: Callable[[Any, int], Any] | None = None,
) -> tuple[Items, Sequences, Iterable[int]]:
    """Drop or truncate pairs with a side longer than `max_length`, and log their number.

    Args:
        sources: Token ids of each source, or other items with a length.
        targets: Token ids of each target.
        config: Settings with the limit.
        shorten: Function that truncates a source, if it is not just token ids.

    Returns:
        The remaining sources and targets, and their indexes. Truncated token ids keep their last
        token, the end token.
    """
    limit = config.max_length
    fits = (lengths_of(sources) <= limit) & (lengths_of(targets) <= limit)
    if fits.all():
        return sources, targets, range(len(fits))
    action = "dropped" if config.too_long == "drop" else "truncated"
    logger.warning(
        f"{action} {len(fits) - int(fits.sum()):,} of {len(fits):,} pairs with a side of over "
        f"{limit} tokens (`max_length`)"
    )
    if config.too_long == "truncate":
        shortened = [shorten(one, limit) for one in sources] if shorten else None
        return shortened or truncate(sources, limit), truncate(targets, limit), range(len(fits))
    rows = np.flatnonzero(fits)
    if not len(rows):
        raise DataError(
            f"Every one of the {len(fits):,} pairs has a side of over {limit} tokens. "
            "Raise `max_length`, or set `too_long` to 'truncate'."
        )
    return select(sources, rows), select(targets, rows), rows
