"""Shares of batches: the examples of each batch are shared out among processes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from regard.core.errors import ConfigError
from regard.training.losses import Loss
from regard.training.plan import Batches


class PlannedBatches(Protocol):
    """Batches whose examples are known before they are built."""

    def plan(self, number: int) -> list[Any]:
        """Return the indexes of the examples of each batch of an epoch."""

    def stack(self, rows: Any, number: int) -> Any:
        """Return the batch of some examples in an epoch."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """Batch of a process that has no examples of a batch; its loss counts as zero.

    The process computes the loss of one example of another process, since sharded blocks and batch
    norms exchange values in every forward and backward pass.
    """

    batch: Any
    """The batch of one example."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of the example in the batch."""
        return (0,)

    @property
    def num_target_tokens(self) -> int:
        """No tokens."""
        return 0

    def split(self, num_parts: int) -> "list[StandIn]":
        """Return the batch, which cannot be split further."""
        return [self]


class Shares:
    """Shares of one process of all batches: examples r, r + N, r + 2N, … of each.

    All processes have the same number of batches. Batches are sorted by length, so the shares of a
    batch have about the same size.

    Args:
        batches: The batches, the same ones in every process.
        rank: Number of this process.
        num: Number of processes.
    """

    def __init__(self, batches: Any, *, rank: int, num: int) -> None:
        if not (hasattr(batches, "plan") and hasattr(batches, "stack")):
            raise ConfigError(
                "Batches for several processes must have the methods `plan` and `stack`, as "
                f"`PlannedBatches`, but {type(batches).__name__} has not."
            )
        self._batches: PlannedBatches = batches
        self._epochs: Batches = batches
        self._rank = rank
        self._num = num

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Any]:
        """Yield this process's shares of the batches of an epoch after the first `skip`."""
        for rows in self._batches.plan(number)[skip:]:
            share = rows[self._rank :: self._num]
            if len(share):
                yield self._batches.stack(share, number)
            else:
                yield StandIn(self._batches.stack(rows[:1], number))

    def num_batches(self, number: int) -> int:
        """Return the number of batches of an epoch, which is that of all processes."""
        return self._epochs.num_batches(number)

    def describe(self) -> str:
        """Return the number of batches and the first one, which are the same in all processes."""
        planned = self._batches.plan(0)
        return f"{len(planned)} batches, the first of {planned[0].tolist() if planned else []}"


def weigh(loss: Callable[[Any], Loss]) -> Callable[[Any], Loss]:
    """Return a loss that is zero for stand-ins."""

    def compute(batch: Any) -> Loss:
        if not isinstance(batch, StandIn):
            return loss(batch)
        one = loss(batch.batch)
        count = torch.zeros_like(one.count)
        return Loss(total=one.total * 0, nll=one.nll * 0, count=count)

    return compute
