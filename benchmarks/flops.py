"""Count the operations of a computation, so that models can be compared at equal compute."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def count_flops(model: Callable[..., object], inputs: Sequence[object]) -> int:
    """Return the floating-point operations of `model(*inputs)`: two per multiplication and sum.

    Products of matrices and convolutions are counted, which is nearly all. Fused kernels that hide
    them (attention; recurrent layers of MKL-DNN and cuDNN) are replaced by plain ones for the
    count, so it is the same on every device.
    """
    with _plain_kernels(), FlopCounterMode(display=False) as counter:
        model(*inputs)
    return int(counter.get_total_flops())


@contextmanager
def _plain_kernels() -> Iterator[None]:
    # Its own `flags` warn of what they set besides.
    before, *_ = torch.backends.mkldnn.set_flags(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        torch.backends.mkldnn.set_flags(before)
