"""The largest number of tokens in a batch is found by trial steps that change nothing."""

import math

import pytest
import torch
from torch import nn

from regard.training import batch_size
from regard.training.batch_size import MemoryTrial, find_max_tokens
from regard.training.losses import cross_entropy
from regard.training.settings import TrainConfig
from tests.training_bench import Batch, build_model


class Sized:
    """Data of `total` tokens; the largest batch is its number of tokens."""

    def __init__(self, num=1, *, total=2**20, most=2**20):
        self.num, self.total, self.most = num, total, most

    def with_max_tokens(self, num):
        return Sized(num, total=self.total, most=self.most)

    def num_batches(self, number):
        return math.ceil(self.total / min(self.num, self.most))

    def largest(self):
        return [self.num - 1, self.num]


@pytest.mark.parametrize(
    ("limit", "found"), [(4096, 4096), (6000, 4096), (1023, 1024), (10**9, 2**20 // 128)]
)
def test_number_doubles_until_batches_do_not_fit_or_an_epoch_has_too_few(limit, found):
    assert find_max_tokens(Sized(), lambda batch: batch <= limit) == found


def test_number_stops_where_the_maximum_number_of_examples_limits_batches():
    tried = []
    assert find_max_tokens(Sized(most=2048), lambda batch: not tried.append(batch)) == 2048
    assert max(tried) == 2048


@pytest.fixture
def memory(monkeypatch):
    """Simulated memory of 1,000 bytes; `memory[0]` is the peak."""
    peak = [0]
    monkeypatch.setattr(batch_size, "usable_memory", lambda device: 1000)
    monkeypatch.setattr(batch_size, "peak_memory", lambda device: peak[0])
    return peak


def run_trial(model, *, limit=10**9):
    def loss(batch):
        logits = model(batch.inputs)
        if len(batch.inputs) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        mask = torch.ones(1, len(batch.labels), dtype=torch.bool)
        return cross_entropy(logits[None], batch.labels[None], mask)

    inputs = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    batch = Batch(inputs, torch.zeros(6, dtype=torch.long), tuple(range(6)))
    return MemoryTrial(model, loss, config=TrainConfig()).fits(batch)


@pytest.mark.parametrize(("peak", "fits"), [(400, True), (401, False)])
def test_batch_fits_within_the_share_of_the_memory(memory, peak, fits):
    memory[0] = peak
    assert run_trial(build_model()) is fits


@pytest.mark.parametrize("limit", [5, 6])
def test_trial_leaves_weights_buffers_gradients_mode_and_generators_unchanged(memory, limit):
    model = nn.Sequential(nn.BatchNorm1d(4), *build_model(dropout=0.5)).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    assert run_trial(model, limit=limit) is (limit == 6)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module.training for module in model.modules())
