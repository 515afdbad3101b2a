"""Data-parallel processes that hold a part of each block."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.optim import Optimizer

from regard.core.errors import ConfigError, RegardError
from regard.core.logging import logger
from regard.core.tables import resolve
from regard.training.distributed.blocks import (
    Part,
    ShardedBlock,
    move_state,
    own_part,
    shard_blocks,
)
from regard.training.distributed.replicated import Distributed
from regard.training.losses import Loss


class Sharded(Distributed):
    """Data-parallel processes that hold a part of each block (FSDP).

    The gradients and moments of blocks are divided as well. Parameters outside of blocks, such as
    embeddings, are whole in every process. All processes take part in every forward and backward
    pass of a block.
    """

    is_divisible = False

    def __init__(self, control: Any) -> None:
        super().__init__(control)
        self._blocks: list[ShardedBlock] = []

    def weigh(self, loss: Callable[[Any], Loss]) -> Callable[[Any], Loss]:
        """Return the loss of shares; raise if it uses parts of a block outside of the block."""
        compute = super().weigh(loss)

        def compute_sharded(batch: Any) -> Loss:
            try:
                return compute(batch)
            except RuntimeError as error:
                if "DTensor" not in str(error):
                    raise
                raise ConfigError(
                    "`train.parallel` must be 'ddp' for this model, which uses parts of its blocks "
                    "outside of them, but is 'fsdp'."
                ) from None

        return compute_sharded

    def start(self, model: nn.Module, optimizer: Optimizer) -> None:
        """Copy the weights of the first process, and divide blocks and their moments."""
        super().start(model, optimizer)
        device = next(model.parameters()).device
        mesh = init_device_mesh(device.type, (self.num,))
        fully_shard = resolve("torch.distributed.fsdp:fully_shard")  # takes long to import

        def shard(block: nn.Module, ignored: set[nn.Parameter]) -> None:
            fully_shard(block, mesh=mesh, reshard_after_forward=True, ignored_params=ignored)
            # Gradients are sums, as those of parameters outside of blocks.
            sharded: Any = block
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)

        self._blocks = shard_blocks(model, shard)
        if not self._blocks:
            logger.warning("`train.parallel` has no effect: the model has no stack of blocks.")
        self._divide(optimizer)

    def finish(self, model: nn.Module) -> None:
        """Restore the original blocks."""
        self._restore(None)
        self._blocks = []

    def begin_step(self, step: int) -> None:
        """Seed the generators, and drop the gradients of sharded blocks."""
        super().begin_step(step)
        for part in self._parts:
            part.divided.grad = None

    def check_divisible(self, step: int) -> None:
        """Raise: the other processes compute the same blocks at the same time."""
        raise RegardError(
            f"Step {step:,} does not fit into memory. Lower `data.batch.max_tokens`, or use more "
            "processes."
        )

    def add_up(
        self, model: nn.Module, sums: Tensor, num_tokens: int, *, seconds: float
    ) -> tuple[Tensor, int]:
        """Add up what is not in blocks; the gradients of blocks are sums already."""
        added = super().add_up(model, sums, num_tokens, seconds=seconds)
        for part in self._parts:
            gradient = part.divided.grad
            part.local.grad = None if gradient is None else gradient.to_local()
        return added

    def gradients(self, model: nn.Module) -> list[Tensor]:
        """Return the gradients of this process's parts and of the parameters outside of blocks."""
        parameters = [*self._replicated(model), *(part.local for part in self._parts)]
        return [parameter.grad for parameter in parameters if parameter.grad is not None]

    def total_norm(self, model: nn.Module) -> Tensor:
        """Return the norm of the gradients of all parameters, over all parts."""
        parts = [part.local.grad for part in self._parts if part.local.grad is not None]
        whole = [one.grad for one in self._replicated(model) if one.grad is not None]
        squared = torch.nn.utils.get_total_norm(parts).square()
        self._all_reduce([squared])
        return (squared + torch.nn.utils.get_total_norm(whole).square()).sqrt()

    def _restore(self, optimizer: Optimizer | None) -> None:
        for block in self._blocks:
            block.restore()
        if optimizer is not None:
            divided = {part.local: part.divided for part in self._parts}
            move_state(
                optimizer,
                {part.local: part.whole for part in self._parts},
                lambda local, moment: _gather(moment, divided[local]),
            )

    def _divide(self, optimizer: Optimizer | None) -> None:
        if optimizer is not None:
            move_state(
                optimizer,
                {part.whole: part.local for part in self._parts},
                lambda _, moment: own_part(moment, rank=self.rank, num=self.num),
            )
        for block in self._blocks:
            block.divide()

    def _replicated(self, model: nn.Module) -> list[nn.Parameter]:
        divided = {id(part.divided) for part in self._parts}
        return [one for one in super()._replicated(model) if id(one) not in divided]

    @property
    def _parts(self) -> list[Part]:
        return [part for block in self._blocks for part in block.parts]


def _gather(moment: Tensor, like: Any) -> Tensor:
    """Return a moment of all parts of a parameter."""
    whole: Tensor = (
        type(like.data)
        .from_local(
            moment,
            like.device_mesh,
            like.placements,
            run_check=False,
            shape=like.shape,
            stride=like.stride(),
        )
        .full_tensor()
    )
    return whole
