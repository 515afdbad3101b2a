"""Trial passes on a GPU, which find the largest batches that fit."""

import pytest
import torch

from regard.training import batch_size
from regard.training.batch_size import MemoryTrial
from tests.device.test_captured import build_task, random_batches

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here"),
]


@pytest.fixture
def trial():
    task = build_task("vaswani2017-small")
    return MemoryTrial(task.model, task.loss, config=task.recipe.train)


def test_passes_of_a_small_batch_fit_and_free_their_memory(trial):
    (batch,) = random_batches(1)
    assert trial.fits(batch)
    before = torch.cuda.memory_allocated()
    assert trial.fits(batch)
    assert torch.cuda.memory_allocated() == before


def test_batch_above_the_share_of_the_memory_does_not_fit(trial, monkeypatch):
    monkeypatch.setattr(batch_size, "MAX_SHARE", 1e-6)
    (batch,) = random_batches(1)
    assert not trial.fits(batch)


def test_out_of_memory_error_means_that_a_batch_does_not_fit(trial):
    (batch,) = random_batches(1, size=4096, source_length=200, target_length=200)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.005)
    try:
        assert not trial.fits(batch)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
