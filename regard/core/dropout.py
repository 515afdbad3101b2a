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
    each word of a fast generator, which is seeded by torch's own generator.
    """
    if not probability:
        return inputs
    threshold = round(probability * LEVELS)
    is_large = inputs.numel() >= MIN_ELEMENTS and inputs.device.type == "cpu"
    if not is_large or not 0 < threshold < LEVELS or torch.compiler.is_compiling():
        return torch_dropout(inputs, probability)
    kept = _random_int16(inputs.numel()).view(inputs.shape) >= threshold - LEVELS // 2
    return inputs * kept.to(inputs.dtype).mul_(1 / (1 - probability))


def _random_int16(num: int) -> Tensor:
    """Return uniformly distributed 16-bit integers (num,), from a seed of torch's generator."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    words = np.random.Generator(np.random.SFC64(seed)).integers(
        0, 2**64 - 1, size=-(-num // 4), dtype=np.uint64, endpoint=True
    )
    return torch.from_numpy(words.view(np.int16))[:num]


class Dropout(Module, nn.Dropout):
    """Dropout layer: `dropout` in training, the identity in evaluation."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        return dropout(input, self.p) if self.training else input
