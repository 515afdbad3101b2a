import threading

import pytest
import torch

from regard.bench import contender as module
from regard.bench.contender import TrainerContender
from regard.bench.sizes import RandomBatches, build_task
from regard.core.errors import RegardError
from tests.bench_sizes import TRANSFORMER

CPU = torch.device("cpu")


@pytest.fixture
def task():
    return build_task(TRANSFORMER, TRANSFORMER.load("fp32"), device=CPU)


@pytest.fixture
def contender(task):
    found = TrainerContender(task, RandomBatches(TRANSFORMER, seed=1))
    yield found
    found.close()


def weights(task):
    return task.model.decoder.output.weight.detach().clone()


def test_trainer_makes_the_steps_of_a_turn_and_then_waits(task, contender, monkeypatch):
    counts = []
    loss = task.loss
    before = weights(task)
    contender.close()

    def counted(batch):
        counts.append(batch.num_target_tokens)
        return loss(batch)

    monkeypatch.setattr(task, "loss", counted)
    trained = TrainerContender(task, RandomBatches(TRANSFORMER, seed=1))
    try:
        assert counts == []
        assert trained.run(3) > 0
        assert len(counts) == 3
        assert trained.run(2) > 0
        assert len(counts) == 5
    finally:
        trained.close()
    assert not torch.equal(weights(task), before)


def test_turns_train_as_one_run_does(task, contender):
    other = build_task(TRANSFORMER, TRANSFORMER.load("fp32"), device=CPU)
    # Dropout samples from one generator: start it equally for both.
    torch.manual_seed(5)
    contender.run(1)
    contender.run(2)
    torch.manual_seed(5)
    whole = TrainerContender(other, RandomBatches(TRANSFORMER, seed=1))
    whole.run(3)
    whole.close()
    assert torch.equal(weights(task), weights(other))


def test_closing_ends_the_thread_and_removes_the_folder(task):
    before = threading.active_count()
    found = TrainerContender(task, RandomBatches(TRANSFORMER, seed=1))
    found.run(1)
    folder = module.Path(found._folder.name)
    assert folder.exists()
    found.close()
    assert not folder.exists()
    assert threading.active_count() == before


def test_error_of_the_trainer_is_raised_by_the_turn(task, monkeypatch):
    def fail(batch):
        raise RegardError("The loss became NaN.")

    monkeypatch.setattr(task, "loss", fail)
    found = TrainerContender(task, RandomBatches(TRANSFORMER, seed=1))
    with pytest.raises(RegardError, match="NaN"):
        found.run(2)
    found.close()


def test_number_of_parameters(task, contender):
    assert contender.num_parameters == task.num_parameters
