"""Activation checkpointing: activations of blocks are recomputed in the backward pass."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from regard.core.logging import logger
from regard.training.compilation import find_blocks


def checkpoint_blocks(model: nn.Module) -> None:
    """Recompute the activations of each block in the backward pass (Chen et al. 2016).

    Blocks are the members of module lists named `blocks`. Only their inputs are kept in memory.
    Random numbers of the recomputation, such as those of dropout, are those of the forward pass, so
    gradients do not change; neither do the names of weights. A second call changes nothing.
    """
    blocks = find_blocks(model)
    if not blocks:
        logger.warning("`checkpoint_activations` has no effect: the model has no stack of blocks")
    for block in blocks:
        if isinstance(block.forward, partial):
            continue
        contexts = partial(_contexts, block)
        recomputed = partial(checkpoint, block.forward, use_reentrant=False, context_fn=contexts)
        block.forward = recomputed


def _contexts(
    block: nn.Module,
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of the forward pass and of the recomputation."""
    return nullcontext(), _unchanged_statistics(block)


@contextmanager
def _unchanged_statistics(block: nn.Module) -> Iterator[None]:
    """Restore the running statistics of batch norms, which the forward pass has updated already."""
    norms = (module for module in block.modules() if isinstance(module, _BatchNorm))
    buffers = [buffer for norm in norms for buffer in norm.buffers()]
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, values in zip(buffers, before, strict=True):
                buffer.copy_(values)
