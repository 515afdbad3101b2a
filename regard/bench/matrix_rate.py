"""Measured rate of matrix products: floating-point operations per second of a device."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from regard.bench.contender import synchronize
from regard.bench.products import PASSES, Product, step_flops

SQUARE = {"cpu": 2048, "cuda": 8192}
"""Rows of the large square matrices, by type of device."""

NUM_TRIALS = 3
"""Measurements of a product, of which the best counts."""


def products_rate(
    products: list[Product], *, dtype: torch.dtype, device: torch.device, seconds: float
) -> float:
    """Return the rate of the products of a training step, weighted by their operations.

    Each distinct shape is measured in the forward pass and in both products of the backward pass.

    Args:
        products: Products of the forward pass.
        dtype: Data type of the matrices.
        device: The device.
        seconds: Approximate time of each measurement of a shape.
    """
    counts: dict[Product, int] = {}
    for product in products:
        one = Product(product.rows, product.inner, product.columns, batch=product.batch)
        counts[one] = counts.get(one, 0) + product.count
    total = sum(
        count * sum(measure(one, seconds, device) for one in _passes(product, dtype, device))
        for product, count in counts.items()
    )
    return step_flops(products) / total


def square_rate(*, dtype: torch.dtype, device: torch.device, seconds: float) -> float:
    """Return the rate of the product of two large square matrices."""
    dim = SQUARE.get(device.type, 2048)
    product = Product(dim, dim, dim)
    forward = _passes(product, dtype, device)[0]
    return product.flops / measure(forward, seconds, device)


def _passes(
    product: Product, dtype: torch.dtype, device: torch.device
) -> tuple[Callable[[], Tensor], ...]:
    """Return the forward product of a linear layer and the two products of its backward pass."""
    leading = (product.batch,) if product.batch > 1 else ()

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.randn(*leading, rows, columns, device=device).to(dtype)

    inputs = matrix(product.rows, product.inner)
    weights = matrix(product.columns, product.inner)
    gradients = matrix(product.rows, product.columns)
    passes = (
        lambda: inputs @ weights.mT,
        lambda: gradients @ weights,
        lambda: gradients.mT @ inputs,
    )
    assert len(passes) == PASSES
    return passes


def measure(compute: Callable[[], object], seconds: float, device: torch.device) -> float:
    """Return the seconds of one call, repeated for about `seconds`; the best of a few trials.

    On a CUDA GPU the calls are captured in a graph, so that launching them takes no time.
    """
    compute()
    once = _time(compute, device)
    repeats = max(1, min(1000, int(seconds / NUM_TRIALS / max(once, 1e-7))))

    def repeat() -> None:
        for _ in range(repeats):
            compute()

    run: Callable[[], object] = repeat
    if device.type == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            repeat()
        run = graph.replay
        run()
    return min(_time(run, device) for _ in range(NUM_TRIALS)) / repeats


def _time(compute: Callable[[], object], device: torch.device) -> float:
    synchronize(device)
    started = time.perf_counter()
    compute()
    synchronize(device)
    return time.perf_counter() - started
