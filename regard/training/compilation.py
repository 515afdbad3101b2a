"""Compilation of the blocks of a model for training, by `torch.compile`."""

import time
from typing import Any, Literal

import torch
from torch import nn

from regard.core.logging import logger
from regard.training.losses import compile_losses
from regard.training.plan import Plan

Choice = Literal["auto", "always", "never"]

BLOCKS = "blocks"
"""Name of stacks of layers in all models."""
MEASURED_STEPS = (200, 240)
"""Steps between which the time of a step without compilation is measured; by then, the steps of
most shapes of batches are captured as CUDA graphs."""
MIN_SECONDS = 240.0
"""Remaining seconds of training from which compilation saves time: it takes from 20 seconds, if all
batches have one shape, to minutes."""
OPTIONS: dict[str, Any] = {"triton.mix_order_reduction": False}
"""Options of the compiler. One pass over the rows for both gradients of a layer norm takes longer
than two passes: 26.3 instead of 24.8 ms for a step of Transformer base on an H200."""


class Compiler:
    """Decides when to compile the blocks of a model, and restores them at the end of training.

    Args:
        model: The model.
        choice: Whether to compile; 'auto' does so on a GPU if the remaining steps would take long.
        plan: The limits of the run.
        device: The device of the model.
    """

    def __init__(
        self, model: nn.Module, choice: Choice, plan: Plan, *, device: torch.device
    ) -> None:
        self._model = model
        self._plan = plan
        self._device = device
        can_compile = choice == "always" or (choice == "auto" and device.type == "cuda")
        self._is_open = can_compile and bool(find_blocks(model))
        self._is_measured = choice == "auto"
        self._num_steps = 0
        self._started = 0.0
        self._compiled: CompiledBlocks | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._compiled is not None:
            self._compiled.remove()
            self._compiled = None

    def begin_step(self, step: int, seconds: float) -> bool:
        """Compile the blocks before a step if that is due; return whether it was done.

        Args:
            step: Number of updates made.
            seconds: Training time so far.
        """
        if not self._is_open:
            return False
        first, last = MEASURED_STEPS if self._is_measured else (0, 0)
        if self._num_steps == first:
            self._started = self._now()
        is_due = self._num_steps == last
        self._num_steps += 1
        if not is_due:
            return False
        self._is_open = False
        if self._is_measured:
            per_step = (self._now() - self._started) / (last - first)
            if self._plan.remaining_seconds(step, seconds, per_step) < MIN_SECONDS:
                return False
        self._compiled = CompiledBlocks(self._model)
        logger.info("Compiling the blocks of the model: the next steps take longer.")
        return True

    def give_up(self, error: Exception) -> bool:
        """Restore the original blocks after an error, if they were compiled automatically.

        Args:
            error: The error of a step.

        Returns:
            Whether the step can be tried again.
        """
        if self._compiled is None or not self._is_measured:
            return False
        self._compiled.remove()
        self._compiled = None
        reason = str(error).strip().partition("\n")[0]
        logger.warning("Training goes on without compilation, which failed: %s", reason)
        return True

    def _now(self) -> float:
        """Return the time after all steps so far; a GPU runs behind the host."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


class CompiledBlocks:
    """The blocks of a model and the loss, compiled for training; everything else runs eagerly.

    Blocks of one class share their code, so a stack of any depth is compiled once per kind of
    block. Code that must not be compiled, such as validation by search and recorded attention,
    runs in the context `force_eager`.

    Args:
        model: The model; its parameters and their names do not change.
    """

    def __init__(self, model: nn.Module) -> None:
        self._blocks = find_blocks(model)
        # Earlier versions of torch do not know all options, and refuse unknown ones.
        known = set(torch._inductor.list_options())
        options = {name: value for name, value in OPTIONS.items() if name in known}
        for block in self._blocks:
            block.forward = torch.compile(block.forward, options=options)
        compile_losses(True)

    def remove(self) -> None:
        """Restore the original blocks."""
        for block in self._blocks:
            del block.forward
        compile_losses(False)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """Return the blocks of all stacks of a model."""
    return [block for stack in find_stacks(model) for block in stack]


def find_stacks(model: nn.Module) -> list[nn.ModuleList]:
    """Return all stacks of a model."""
    return [
        stack
        for name, stack in model.named_modules()
        if name.rpartition(".")[2] == BLOCKS and isinstance(stack, nn.ModuleList)
    ]
