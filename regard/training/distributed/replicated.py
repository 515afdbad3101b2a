"""Data-parallel processes that hold the whole model each."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

from regard.core.errors import DataError, RegardError
from regard.training.distributed.processes import Processes
from regard.training.distributed.shares import Shares, weigh
from regard.training.losses import Loss
from regard.training.plan import Batches
from regard.training.signals import AgreedInterrupts

BUCKET_ELEMENTS = 1 << 24
"""Gradients that are added up at once: 64 MB."""


class Distributed(Processes):
    """Data-parallel processes, each with the whole model.

    Each process computes the gradients of its share of a batch; their sums are those of the whole
    batch.

    Args:
        control: Group of the exchange of values of the host.
    """

    interrupts: AgreedInterrupts

    def __init__(self, control: Any) -> None:
        self.rank = dist.get_rank()
        self.num = dist.get_world_size()
        self.interrupts = AgreedInterrupts()
        self._control = control
        self._seed = 0
        self._seconds = 0.0
        self._is_whole = False
        self._data = ""

    def wait(self) -> None:
        """Wait for all other processes."""
        dist.barrier(group=self._control)

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Let the first process of each machine pass the block before the others."""
        is_later = os.environ.get("LOCAL_RANK", str(self.rank)) != "0"
        if is_later:
            self.wait()
        yield
        if not is_later:
            self.wait()

    def is_restarted(self) -> bool:
        """Return whether `torchrun` has restarted processes, perhaps on another machine only."""
        num_restarted = torch.tensor(int(super().is_restarted()))
        dist.all_reduce(num_restarted, group=self._control)
        return bool(num_restarted)

    def share(self, batches: Batches) -> Batches:
        """Return the batches of this process: its share of the examples of each batch."""
        shares = Shares(batches, rank=self.rank, num=self.num)
        self._data = shares.describe()
        return shares

    def weigh(self, loss: Callable[[Any], Loss]) -> Callable[[Any], Loss]:
        """Return the loss of shares, which is zero for a process without examples."""
        return weigh(loss)

    def start(self, model: nn.Module, optimizer: Optimizer) -> None:
        """Give all processes the weights of the first one; raise if their data or models differ."""
        shapes = [(name, *one.shape) for name, one in model.named_parameters()]
        digest = hashlib.sha256(f"{self._data} {shapes}".encode()).hexdigest()
        first, self._seed = self.from_first(lambda: (digest, torch.initial_seed()))
        if digest != first:
            raise DataError(
                f"Process {self.rank} has other data or another model than process 0. All machines "
                "must have the same files and the same version of this package."
            )
        self.copy_weights(model)

    def copy_weights(self, model: nn.Module) -> None:
        """Give all processes the weights and buffers of the first one."""
        with torch.no_grad():
            for tensor in [*model.parameters(), *model.buffers()]:
                dist.broadcast(tensor, 0, group=self._group(tensor))

    def begin_step(self, step: int) -> None:
        """Seed the generators of all processes but the first, so that their masks differ.

        The seed depends on the step, so that a resumed run repeats the masks, with any number of
        processes before. The state of the generators of the first process is part of a checkpoint.
        """
        if not self.is_first:
            seeds = np.random.SeedSequence([self._seed, self.rank, step])
            torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0] >> 1))

    def add_up(
        self, model: nn.Module, sums: Tensor, num_tokens: int, *, seconds: float
    ) -> tuple[Tensor, int]:
        """Add up gradients, sums of losses and numbers of tokens over all processes."""
        parameters = self._replicated(model)
        values = [num_tokens, self.interrupts.is_pending, seconds if self.is_first else 0.0]
        has_gradient = [parameter.grad is not None for parameter in parameters]
        control = torch.tensor([*values, *has_gradient], dtype=torch.float64)
        dist.all_reduce(control, group=self._control)
        total, num_interrupted, self._seconds, *num_gradients = control.tolist()
        used = [p for p, num in zip(parameters, num_gradients, strict=True) if num]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self._all_reduce([p.grad for p in used if p.grad is not None])
        self._all_reduce([sums])
        if num_interrupted:
            self.interrupts.agree()
        return sums, int(total)

    def agreed(self, seconds: float) -> float:
        """Return the training time of the first process at the last step."""
        return self._seconds

    def from_first(self, compute: Callable[[], Any]) -> Any:
        """Return what the first process computes; an error or an interrupt there is raised in all.

        The other processes wait, however long it takes.
        """
        outcome: dict[str, Any] = {}
        raised: BaseException | None = None
        if self.is_first:
            try:
                with self.interrupts.immediate():
                    outcome = {"value": compute()}
            except RegardError as error:
                outcome, raised = {"error": str(error)}, error
            except KeyboardInterrupt as interrupt:
                outcome, raised = {"is_interrupted": True}, interrupt
        outcome = self._broadcast(outcome)
        if raised is not None:
            raise raised
        if "error" in outcome:
            raise RegardError(outcome["error"])
        if "is_interrupted" in outcome:
            raise KeyboardInterrupt
        return outcome["value"]

    @contextmanager
    def whole(self, model: nn.Module, optimizer: Optimizer | None = None) -> Iterator[None]:
        """Average the running statistics of batch norms, which are those of each process's share.

        They are linear in the statistics of batches, so their mean is that of all shares.
        """
        if self._is_whole:
            yield
            return
        norms = [one for one in model.modules() if isinstance(one, _BatchNorm) and one.training]
        statistics = [one for norm in norms for one in norm.buffers() if one.is_floating_point()]
        self._all_reduce(statistics)
        if statistics:
            torch._foreach_div_(statistics, self.num)
        self._restore(optimizer)
        self._is_whole = True
        try:
            yield
        finally:
            self._is_whole = False
            self._divide(optimizer)

    def _restore(self, optimizer: Optimizer | None) -> None:
        """Put whole blocks into the model, and whole moments into the optimiser."""

    def _divide(self, optimizer: Optimizer | None) -> None:
        """Undo `_restore`."""

    def _replicated(self, model: nn.Module) -> list[nn.Parameter]:
        """Return the trained parameters that every process holds whole."""
        return [parameter for parameter in model.parameters() if parameter.requires_grad]

    def _all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all processes, many small ones at once."""
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.detach().flatten() for tensor in bucket])
            dist.all_reduce(flat, group=self._group(flat))
            parts = torch.split(flat, [tensor.numel() for tensor in bucket])
            for tensor, part in zip(bucket, parts, strict=True):
                tensor.detach().copy_(part.view_as(tensor))

    def _group(self, tensor: Tensor) -> Any:
        """Return the group that exchanges tensors of a device."""
        return self._control if tensor.device.type == "cpu" else None

    def _broadcast(self, value: Any) -> Any:
        """Return a value of the first process in all processes."""
        data = torch.frombuffer(
            bytearray(json.dumps(value, default=float).encode()), dtype=torch.uint8
        )
        size = torch.tensor(len(data))
        dist.broadcast(size, 0, group=self._control)
        if not self.is_first:
            data = torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(data, 0, group=self._control)
        return json.loads(data.numpy().tobytes())


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Group tensors in order, so that each group has few elements or is a single tensor."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(map(Tensor.numel, bucket)) + tensor.numel() > BUCKET_ELEMENTS:
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket
