"""Processes of a training: interface of their communication, and a single process without any."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.training.losses import Loss
from regard.training.plan import Batches
from regard.training.signals import Interrupts


class Processes:
    """A single process, which has nothing to exchange.

    Subclasses exchange the sums of a step and the results of the first process, which alone
    validates and writes the run folder. All processes call the same methods in the same order.
    """

    rank = 0
    """Number of this process, from 0."""
    num = 1
    """Number of processes."""
    is_divisible = True
    """Whether a process may compute a batch in parts without the others."""

    def __init__(self) -> None:
        self.interrupts = Interrupts()

    @property
    def is_first(self) -> bool:
        """Whether this process validates and writes the run folder."""
        return self.rank == 0

    def is_restarted(self) -> bool:
        """Return whether `torchrun` has restarted the processes after one of them had died."""
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0

    def wait(self) -> None:
        """Wait for all other processes."""

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Let the first process of each machine pass the block before the others."""
        yield

    def share(self, batches: Batches) -> Batches:
        """Return the batches of this process: its share of the examples of each batch."""
        return batches

    def weigh(self, loss: Callable[[Any], Loss]) -> Callable[[Any], Loss]:
        """Return the loss of the batches that `share` returns."""
        return loss

    def start(self, model: nn.Module, optimizer: Optimizer) -> None:
        """Give all processes the weights of the first one, and divide what they share."""

    def finish(self, model: nn.Module) -> None:
        """Undo the division of `start`."""

    def copy_weights(self, model: nn.Module) -> None:
        """Give all processes the weights and buffers of the first one."""

    def begin_step(self, step: int) -> None:
        """Prepare the random generators for a step.

        Args:
            step: Number of updates made.
        """

    def check_divisible(self, step: int) -> None:
        """Raise if this process cannot compute the batches of a step in parts."""

    def gradients(self, model: nn.Module) -> list[Tensor]:
        """Return the gradients of the parameters that this process updates."""
        return [p.grad for p in model.parameters() if p.grad is not None]

    def total_norm(self, model: nn.Module) -> Tensor:
        """Return the norm of the gradients of all parameters."""
        return torch.nn.utils.get_total_norm(self.gradients(model))

    def scale_gradients(self, model: nn.Module, *, count: Tensor, clip_norm: float) -> Tensor:
        """Divide summed gradients by the token count and clip; return the norm before clipping.

        Args:
            model: The model.
            count: Number of tokens.
            clip_norm: Maximum norm of the scaled gradients; 0 = no clipping.
        """
        count = count.clamp(min=1).float()
        norm = self.total_norm(model) / count
        scale = 1 / count
        if clip_norm:
            scale = scale * (clip_norm / (norm + 1e-6)).clamp(max=1)
        torch._foreach_mul_(self.gradients(model), scale)
        return norm

    def add_up(
        self, model: nn.Module, sums: Tensor, num_tokens: int, *, seconds: float
    ) -> tuple[Tensor, int]:
        """Add up gradients, sums of losses and numbers of tokens over all processes.

        Processes also agree on the time and on an interrupt.

        Args:
            model: The model, whose gradients are replaced by their sums.
            sums: Loss, negative log-likelihood and token count of the step, (3,).
            num_tokens: Target tokens of the step.
            seconds: Training time so far.
        """
        return sums, num_tokens

    def agreed(self, seconds: float) -> float:
        """Return the training time that all processes agreed on in the last step."""
        return seconds

    def from_first(self, compute: Callable[[], Any]) -> Any:
        """Return what the first process computes: a value that can be written as JSON."""
        return compute()

    @contextmanager
    def whole(self, model: nn.Module, optimizer: Optimizer | None = None) -> Iterator[None]:
        """Give the model, and the optimiser, their whole state; no effect in such a block."""
        yield
