"""Batches that do not fit into memory are computed in parts, with equal results."""

import pytest
import torch

from regard.data.batch import Batch
from tests import training_bench as bench_module
from tests.training_bench import SHORT, Bench


def limit_rows(bench, max_rows):
    """Let the loss fail as if a batch of more rows did not fit into memory."""
    original = bench.trainer._gradients._loss

    def loss(batch):
        if len(batch.rows) > max_rows:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return original(batch)

    bench.trainer._gradients._loss = loss


def build_batch(size):
    return Batch(
        source=(torch.arange(size), torch.arange(2 * size).view(size, 2)),
        source_mask=torch.ones(size, 3, dtype=torch.bool),
        target=torch.arange(3 * size).view(size, 3),
        target_mask=torch.ones(size, 3, dtype=torch.bool),
        rows=tuple(range(10, 10 + size)),
    )


@pytest.mark.parametrize(
    ("size", "num", "sizes"), [(5, 2, [3, 2]), (4, 4, [1] * 4), (2, 8, [1, 1])]
)
def test_split_batches_have_all_examples_in_order(size, num, sizes):
    parts = build_batch(size).split(num)
    assert [len(part.rows) for part in parts] == sizes
    assert [len(part.source_mask) for part in parts] == sizes
    assert torch.equal(torch.cat([part.target for part in parts]), build_batch(size).target)
    assert torch.equal(torch.cat([part.source[1] for part in parts]), build_batch(size).source[1])
    assert sum((part.rows for part in parts), ()) == build_batch(size).rows


@pytest.mark.parametrize("max_rows", [1, 2])
def test_batches_that_do_not_fit_are_computed_in_parts(tmp_path, messages, max_rows):
    whole = Bench(tmp_path / "whole", SHORT)
    whole.run()
    parts = Bench(tmp_path / "parts", SHORT)
    limit_rows(parts, max_rows)
    parts.run()
    assert any("does not fit into memory" in message for message in messages())
    for name, weights in parts.present_weights().items():
        assert torch.allclose(weights, whole.present_weights()[name], atol=1e-5), name


def test_single_example_that_does_not_fit_ends_the_run(tmp_path):
    bench = Bench(tmp_path, SHORT)
    limit_rows(bench, 0)
    with pytest.raises(torch.OutOfMemoryError):
        bench.run()


def test_batch_that_cannot_be_split_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.delattr(bench_module.Batch, "split")
    bench = Bench(tmp_path, SHORT)
    limit_rows(bench, 1)
    with pytest.raises(torch.OutOfMemoryError):
        bench.run()
