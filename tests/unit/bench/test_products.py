import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.bench.products import Product, forward_products, step_flops
from regard.bench.sizes import RandomBatches, build_task
from tests.bench_sizes import CONVOLUTIONAL, RECURRENT, TRANSFORMER


def count(size):
    """Operations of a training step of this package, counted by torch without fused kernels."""
    task = build_task(size, size.load("fp32"), device=torch.device("cpu"))
    batch = next(RandomBatches(size, seed=1).epoch(0))
    task.model.train()
    before, *_ = torch.backends.mkldnn.set_flags(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            task.loss(batch).total.backward()
    finally:
        torch.backends.mkldnn.set_flags(before)
    return counter.get_total_flops()


@pytest.mark.parametrize(
    ("size", "tolerance"),
    # The zeros that recurrent layers start from have no gradient, which saves two products.
    [(TRANSFORMER, 0), (RECURRENT, 0.01), (CONVOLUTIONAL, 0)],
    ids=["transformer", "recurrent", "convolutional"],
)
def test_formula_equals_operations_counted_by_torch(size, tolerance):
    products = forward_products(
        size.load().model, num_pairs=size.num_pairs, length=size.length, vocab_size=size.vocab_size
    )
    assert step_flops(products) == pytest.approx(count(size), rel=tolerance)


def test_operations_are_two_per_multiplication_and_sum():
    product = Product(2, 3, 5, batch=7)
    assert product.flops == 2 * 2 * 3 * 5 * 7
    assert product.times(11).flops == 11 * product.flops
    assert step_flops([product, product]) == 3 * 2 * product.flops
