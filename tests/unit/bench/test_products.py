import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.bench.products import Product, forward_products, step_flops
from regard.bench.sizes import SIZES, Size, build_task, find_size

TRANSFORMER = find_size("tiny")
RECURRENT = Size(
    "bahdanau2015",
    num_pairs=3,
    length=7,
    overrides=(
        *("model.encoder.embedding_dim=12", "model.encoder.dim=8"),
        *("model.decoder.embedding_dim=12", "model.decoder.dim=10"),
        "model.decoder.attention_dim=6",
    ),
    vocab_size=40,
)
CONVOLUTIONAL = Size(
    "gehring2017",
    num_pairs=3,
    length=7,
    overrides=tuple(
        f"model.{side}.{setting}"
        for side in ("encoder", "decoder")
        for setting in ("embedding_dim=8", "dim=12", "num_layers=2")
    ),
    vocab_size=40,
)


def count(size):
    """Operations of a training step of this package, counted by torch."""
    from regard.bench.sizes import RandomBatches

    task = build_task(size, "fp32", device=torch.device("cpu"), seed=1)
    batch = next(RandomBatches(size, seed=1).epoch(0))
    task.model.train()
    before, *_ = torch.backends.mkldnn.set_flags(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            task.loss(batch).total.backward()
    finally:
        torch.backends.mkldnn.set_flags(before)
    return counter.get_total_flops()


@pytest.mark.parametrize("size", [TRANSFORMER, RECURRENT, CONVOLUTIONAL])
def test_formula_equals_operations_counted_by_torch(size):
    products = forward_products(
        size.load().model, num_pairs=size.num_pairs, length=size.length, vocab_size=size.vocab_size
    )
    print(step_flops(products), count(size))
    assert step_flops(products) == pytest.approx(count(size), rel=0.01)
