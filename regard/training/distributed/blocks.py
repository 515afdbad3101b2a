"""Blocks whose parameters are divided among processes, and the state of their optimiser."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.training.compilation import find_stacks

Shared = dict[int, Any]
"""Modules and parameters that several blocks use, by their id."""


@dataclass(frozen=True)
class Part:
    """A parameter of which each process holds a part."""

    whole: nn.Parameter
    """The parameter of the original block; empty while it is divided."""
    divided: Any
    """The parameter of the sharded block, a `DTensor`."""
    local: nn.Parameter
    """The part of this process, which the optimiser updates; it shares the memory of `divided`."""


class ShardedBlock:
    """A block of a stack, and its sharded copy, which replaces it in training.

    Args:
        stack: The stack.
        index: Index of the block.
        shared: Modules and parameters that are not copied.
        shard: Divides the parameters of a module among processes.
    """

    def __init__(
        self,
        stack: nn.ModuleList,
        index: int,
        *,
        shared: Shared,
        shard: Callable[[nn.Module], None],
    ) -> None:
        self._stack = stack
        self._index = index
        self._block = stack[index]
        self._sharded = copy.deepcopy(self._block, dict(shared))
        shard(self._sharded)
        divided = dict(self._sharded.named_parameters())
        self.parts = [
            Part(whole, divided[name], _local_part(divided[name]))
            for name, whole in self._block.named_parameters()
            if id(whole) not in shared
        ]

    def divide(self) -> None:
        """Put the sharded block into the stack, and free the parameters of the original one."""
        for part in self.parts:
            part.whole.data = part.whole.data.new_empty(0)
        self._stack[self._index] = self._sharded

    @torch.no_grad()
    def restore(self) -> None:
        """Put the original block into the stack, with the current parameters and buffers."""
        for part in self.parts:
            part.whole.data = part.divided.full_tensor()
        buffers = zip(self._block.buffers(), self._sharded.buffers(), strict=True)
        for original, current in buffers:
            original.copy_(current)
        self._block.train(self._sharded.training)
        self._stack[self._index] = self._block


def shard_blocks(
    model: nn.Module, shard: Callable[[nn.Module, set[nn.Parameter]], None]
) -> list[ShardedBlock]:
    """Return all blocks of a model with a sharded copy each; none is put into the model yet.

    Args:
        model: The model.
        shard: Divides the parameters of a module among processes, except some of them.
    """
    shared = _find_shared(model)
    ignored = {one for one in shared.values() if isinstance(one, nn.Parameter)}
    return [
        ShardedBlock(stack, index, shared=shared, shard=lambda block: shard(block, ignored))
        for stack in find_stacks(model)
        for index in range(len(stack))
    ]


def move_state(
    optimizer: Optimizer,
    replacements: Mapping[nn.Parameter, nn.Parameter],
    change: Callable[[nn.Parameter, Tensor], Tensor],
) -> None:
    """Replace parameters of an optimiser, and change their moments.

    Args:
        optimizer: The optimiser.
        replacements: New parameters by the old ones.
        change: Returns the moment of a new parameter, from the old parameter and its moment.
    """
    for group in optimizer.param_groups:
        group["params"] = [replacements.get(one, one) for one in group["params"]]
    for old, new in replacements.items():
        state = optimizer.state.pop(old, None)
        if state is not None:
            optimizer.state[new] = {
                name: change(old, value) if isinstance(value, Tensor) and value.dim() else value
                for name, value in state.items()
            }


def own_part(tensor: Tensor, *, rank: int, num: int) -> Tensor:
    """Return the rows of a tensor that a process holds."""
    parts = tensor.chunk(num)
    return parts[rank].clone() if rank < len(parts) else tensor[:0].clone()


def _local_part(divided: Any) -> nn.Parameter:
    return nn.Parameter(divided.detach().to_local(), requires_grad=divided.requires_grad)


def _find_shared(model: nn.Module) -> Shared:
    """Return modules and parameters of blocks that are used outside of their block as well."""
    blocks = [block for stack in find_stacks(model) for block in stack]
    inside = Counter(id(one) for block in blocks for one in _members(block))
    whole = Counter(id(one) for one in _every_use(model))
    return {
        id(one): one
        for block in blocks
        for one in _members(block)
        if inside[id(one)] > 1 or whole[id(one)] > _uses(block)[id(one)]
    }


def _members(block: nn.Module) -> list[Any]:
    """Return the modules, except the block itself, and the parameters of a block, each once."""
    modules = [module for module in block.modules() if module is not block]
    return [*modules, *block.parameters()]


def _uses(module: nn.Module) -> Counter[int]:
    return Counter(id(one) for one in _every_use(module))


def _every_use(module: nn.Module) -> Iterator[Any]:
    """Yield modules and parameters as often as they are used."""
    for _, child in module.named_modules(remove_duplicate=False):
        yield child
    for _, parameter in module.named_parameters(remove_duplicate=False):
        yield parameter
