"""Measured rate of matrix products: floating-point operations per second of a device."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from regard.bench.contender import synchronize
from regard.bench.products import Product, step_flops
from regard.core.native.linear import has_onednn, multiply

SQUARE = {"cpu": 2048, "cuda": 8192}
"""Rows of the large square matrices, by type of device."""

MAX_REPEATS = 1000


class MatrixRate:
    """Rates of the matrix products of a training step, and of large square matrices.

    Args:
        products: Products of a forward pass.
        dtype: Data type of the matrices.
        device: The device.
    """

    def __init__(
        self, products: list[Product], *, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._flops = step_flops(products)
        self._counts: Counter[Product] = Counter()
        for product in products:
            self._counts[replace(product, count=1)] += product.count
        dim = SQUARE.get(device.type, SQUARE["cpu"])
        self._square = Product(dim, dim, dim)
        self._dtype = dtype
        self._device = device
        self._best: dict[tuple[Product, int], float] = {}

    def measure(self, seconds: float) -> None:
        """Measure every shape in the forward pass and in both products of the backward pass.

        The fastest of all measurements counts, of all libraries.

        Args:
            seconds: Approximate time per product.
        """
        for product in (*self._counts, self._square):
            for number, computations in enumerate(_passes(product, self._dtype, self._device)):
                key = (product, number)
                for compute in computations:
                    duration = time_call(compute, seconds / len(computations), self._device)
                    self._best[key] = min(duration, self._best.get(key, duration))

    @property
    def model(self) -> float:
        """Rate of the products of a training step: all operations divided by the total time."""
        total = sum(
            self._counts[product] * duration for (product, _), duration in self._best.items()
        )
        return self._flops / total

    @property
    def square(self) -> float:
        """Rate of the product of two large square matrices."""
        return self._square.flops / self._best[self._square, 0]


def _passes(
    product: Product, dtype: torch.dtype, device: torch.device
) -> Iterator[list[Callable[[], Tensor]]]:
    """Yield computations of the forward product of a linear layer and of its two gradients.

    Each is computed by torch, and on a CPU also by oneDNN, which training uses where it is faster.
    """
    leading = (product.batch,) if product.batch > 1 else ()

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.rand(*leading, rows, columns, dtype=dtype, device=device) - 0.5

    inputs = matrix(product.rows, product.inner)
    weights = matrix(product.columns, product.inner)
    gradients = matrix(product.rows, product.columns)
    for one, other in (inputs, weights.mT), (gradients, weights), (gradients.mT, inputs):
        computations: list[Callable[[], Tensor]] = [partial(torch.matmul, one, other)]
        if device.type == "cpu" and not leading and has_onednn():
            computations.append(partial(multiply, one, other.mT))
        yield computations


def time_call(compute: Callable[[], object], seconds: float, device: torch.device) -> float:
    """Return the seconds of a call, as the mean of calls that take about `seconds` together.

    On a CUDA GPU, the calls are captured in a graph, so that launching them takes no time.
    """
    first = _time(compute, device)
    if device.type == "cpu" and first > seconds:
        return first
    repeats = max(1, min(MAX_REPEATS, int(seconds / max(_time(compute, device), 1e-7))))

    def repeat() -> None:
        for _ in range(repeats):
            compute()

    if device.type != "cuda":
        return _time(repeat, device) / repeats
    graph = torch.cuda.CUDAGraph()
    # Trainers of contenders wait in other threads.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        repeat()
    graph.replay()
    return _time(graph.replay, device) / repeats


def _time(compute: Callable[[], object], device: torch.device) -> float:
    synchronize(device)
    started = time.perf_counter()
    compute()
    synchronize(device)
    return time.perf_counter() - started
