"""Dropout with fast random masks on the CPU."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as torch_dropout

from regard.core.module import Module

MIN_ELEMENTS = 16_384
"""Tensors with fewer elements use torch's dropout, which has less overhead per call."""
LEVELS = 1 << 16
"""Number of values of a random integer; the probability is rounded to a multiple of 1/LEVELS."""


def dropout(inputs: Tensor, probability: float) -> Tensor:
    """Set elements to zero with a probability, and scale the others by 1 / (1 - probability).

    On a CPU, torch samples one element at a time from a serial generator, which takes longer than
    many matrix products of a small model. There, the mask is made of 16-bit integers, four from
    each word of a fast generator, which is seeded by torch's own generator. In compiled code on a
    GPU, the mask is a hash of the index of each element, which is computed again in the backward
    pass instead of being stored: torch's generator takes ten rounds for each element.
    """
    if not probability:
        return inputs
    if torch.compiler.is_compiling() and inputs.device.type == "cuda" and probability < 1:
        return _dropout_by_index(inputs, probability)
    threshold = round(probability * LEVELS)
    is_large = inputs.numel() >= MIN_ELEMENTS and inputs.device.type == "cpu"
    if not is_large or not 0 < threshold < LEVELS or torch.compiler.is_compiling():
        return torch_dropout(inputs, probability)
    kept = _random_int16(inputs.numel()).view(inputs.shape).ge_(threshold - LEVELS // 2)
    return inputs * _scaled_mask(kept, 1 / (1 - probability), inputs.dtype)


def _scaled_mask(kept: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    """Return `scale` where 16-bit integers are 1, and 0 where they are 0; `kept` is overwritten.

    A mask of 16-bit integers is converted several times faster than one of booleans: for a 16-bit
    float by one product with the integer that has the bits of `scale`.
    """
    if dtype.itemsize != kept.dtype.itemsize:
        return kept.to(dtype).mul_(scale)
    bits = torch.tensor(scale, dtype=dtype).view(kept.dtype)
    return kept.mul_(bits).view(dtype)


def _random_int16(num: int) -> Tensor:
    """Return uniformly distributed 16-bit integers (num,), from a seed of torch's generator."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    words = np.random.SFC64(seed).random_raw(-(-num // 4))
    return torch.from_numpy(words.view(np.int16))[:num]


def _dropout_by_index(inputs: Tensor, probability: float) -> Tensor:
    """Apply dropout with a mask from a seed of torch's generator and the index of each element."""
    seed = torch.randint(2**31 - 1, (), dtype=torch.int32, device=inputs.device)
    index = torch.arange(inputs.numel(), dtype=torch.int32, device=inputs.device)
    bits = _mix(_mix(index.view(inputs.shape) ^ seed) + seed)
    threshold = round(probability * 2**32) - 2**31
    return torch.where(bits >= threshold, inputs * (1 / (1 - probability)), 0.0)


def _mix(bits: Tensor) -> Tensor:
    """Mix the bits of 32-bit integers (the finaliser of MurmurHash3)."""
    bits = (bits ^ ((bits >> 16) & 0xFFFF)) * -0x7A143595
    bits = (bits ^ ((bits >> 13) & 0x7FFFF)) * -0x3D4D51CB
    return bits ^ ((bits >> 16) & 0xFFFF)


class Dropout(Module, nn.Dropout):
    """Dropout layer: `dropout` in training, the identity in evaluation."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        return dropout(input, self.p) if self.training else input
