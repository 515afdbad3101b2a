"""Copies of models for inference, with weights packed once in a chosen precision."""

import copy
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import torch
from torch import nn

from regard.attention.positions import Positions
from regard.attention.scores import AdditiveScore
from regard.attention.spans import GlobalAttention
from regard.core.errors import ConfigError
from regard.core.module import Linear, PackedLinear
from regard.core.native.linear import PRODUCTS, PlainProduct
from regard.models.fused import fuse
from regard.models.packed.blocks import PackedStack
from regard.models.packed.recurrent import PackedAdditiveScore, PackedAttention, PackedRecurrence
from regard.models.recurrent import Recurrence
from regard.models.transformer import TransformerStack

M = TypeVar("M", bound=nn.Module)

SearchPrecision = Literal["fp32", "bf16", "int8"]


@torch.no_grad()
def pack(model: M, precision: SearchPrecision) -> M:
    """Return a copy of a model for inference in a precision, in eval mode.

    On a CPU, linear layers multiply in this precision, and everything else is computed in float32.
    Parameters are shared with the model, so the copy is outdated when they change. On a GPU, `bf16`
    converts the whole model.

    Args:
        model: The model.
        precision: The precision of matrix products.
    """
    product = PRODUCTS[precision]
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    packed = copy.deepcopy(model, shared).eval()
    is_cpu = next(model.parameters()).device.type == "cpu"
    if not is_cpu:
        product = PlainProduct
        packed = _convert(packed, precision)
        fuse(packed)
    _replace(packed, Linear, lambda layer: PackedLinear(layer, product))
    if is_cpu:
        _replace(packed, AdditiveScore, PackedAdditiveScore)
        _replace(packed, GlobalAttention, PackedAttention)
        _replace(packed, Recurrence, lambda layers: PackedRecurrence(layers, product))
        _replace(packed, TransformerStack, PackedStack)
    parameter = next(packed.parameters())
    for module in packed.modules():
        if isinstance(module, Positions):
            module.tabulate(parameter)
    return packed


def _convert(model: M, precision: SearchPrecision) -> M:
    """Convert a model on a GPU to a precision; parameters are not shared then."""
    if precision == "int8":
        raise ConfigError(
            "`search.precision` must be one of 'auto', 'fp32', 'bf16' on a GPU, but is 'int8'."
        )
    return model if precision == "fp32" else copy.deepcopy(model).bfloat16()


def _replace(model: nn.Module, kind: type[nn.Module], pack_one: Callable[[Any], nn.Module]) -> None:
    """Replace the parts of exactly one type."""
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if type(child) is kind:
                setattr(parent, name, pack_one(child))
