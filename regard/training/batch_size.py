"""The largest batches, in tokens, that fit into the memory of a GPU."""

from collections.abc import Callable
from typing import Any, Protocol, Self

import torch
from torch import nn

from regard.training.activations import checkpoint_blocks
from regard.training.checkpoint import restore_rng, rng_states
from regard.training.losses import Loss
from regard.training.optimizers import freeze, set_training
from regard.training.plan import Batches
from regard.training.settings import TrainConfig

MAX_SHARE = 0.4
"""Maximum share of the memory that a forward and backward pass may take; captured steps take as
much again, and the optimiser, the search of validations and other programs need the rest."""
MIN_TOKENS = 1024
"""The smallest number of tokens that is tried."""
MIN_BATCHES = 100
"""Minimum number of batches of an epoch: larger batches would make too few updates to learn."""


class SizedBatches(Batches, Protocol):
    """Training data whose batches can have another size."""

    def with_max_tokens(self, num: int) -> Self:
        """Return batches of the same examples with another maximum number of positions."""

    def largest(self) -> list[Any]:
        """Return the batches of an epoch that need the most memory."""


class MemoryTrial:
    """Forward and backward passes that measure memory and leave the model as it was.

    Args:
        model: The model, on its device. Frozen parameters and checkpointed activations are those of
            training.
        loss: Computes the loss of a batch.
        config: Training settings.
    """

    def __init__(
        self, model: nn.Module, loss: Callable[[Any], Loss], *, config: TrainConfig
    ) -> None:
        self._model = model
        self._loss = loss
        self._device = next(model.parameters()).device
        freeze(model, config.freeze)
        if config.checkpoint_activations:
            checkpoint_blocks(model)

    def fits(self, batch: Any) -> bool:
        """Return whether the passes of a batch take at most `MAX_SHARE` of the memory."""
        rng = rng_states()
        buffers = [(buffer, buffer.clone()) for buffer in self._model.buffers()]
        was_training = self._model.training
        set_training(self._model)
        limit = MAX_SHARE * usable_memory(self._device)
        try:
            self._loss(batch).total.backward()  # type: ignore[no-untyped-call]
            return peak_memory(self._device) <= limit
        except torch.OutOfMemoryError:
            return False
        finally:
            self._model.zero_grad(set_to_none=True)
            self._model.train(was_training)
            for buffer, values in buffers:
                buffer.copy_(values)
            restore_rng(rng)
            if self._device.type == "cuda":
                torch.cuda.empty_cache()


def find_max_tokens(
    batches: SizedBatches, fits: Callable[[Any], bool], *, at_least: int = MIN_TOKENS
) -> int:
    """Return the largest maximum number of tokens whose batches fit, by doubling.

    The smallest number is not undercut: batches that do not fit are computed in parts.

    Args:
        batches: The training data.
        fits: Whether a batch fits into memory, such as `MemoryTrial.fits`.
        at_least: The smallest number.
    """
    num, num_batches = at_least, batches.with_max_tokens(at_least).num_batches(0)
    while True:
        larger = batches.with_max_tokens(2 * num)
        # With a maximum number of examples, more tokens change nothing at some point.
        if not MIN_BATCHES <= larger.num_batches(0) < num_batches:
            return num
        if not all(map(fits, larger.largest())):
            return num
        num, num_batches = 2 * num, larger.num_batches(0)


def is_measurable(device: torch.device) -> bool:
    """Return whether memory is measured on a device: on CUDA GPUs."""
    return device.type == "cuda"


def usable_memory(device: torch.device) -> int:
    """Return the bytes that this process uses or could use on a GPU, and reset their peak."""
    torch.cuda.reset_peak_memory_stats(device)
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device)


def peak_memory(device: torch.device) -> int:
    """Return the peak of allocated bytes on a GPU since `usable_memory` was called."""
    return torch.cuda.max_memory_allocated(device)
