import torch

from regard.studies.reproduce.learning import regularisation
from regard.studies.reproduce.learning.regularisation import (
    Batches,
    build_network,
    compare_penalty,
    sample_data,
    train,
)


def test_penalty_of_the_cost_equals_weight_decay_of_sgd():
    assert compare_penalty(1, num_steps=3) < 1e-14


def test_some_labels_are_wrong():
    data = sample_data(1)
    right = (data.valid_x[:, : regularisation.NUM_INFORMATIVE].sum(1) > 0).long()
    share = (right != data.valid_labels).double().mean().item()
    assert 0.07 < share < 0.13


def test_each_epoch_has_every_example_once():
    data = sample_data(1)
    batches = Batches(data, seed=1)
    epoch = list(batches.epoch(3))
    assert len(epoch) == batches.num_batches(3)
    found = torch.cat([batch.x for batch in epoch])
    assert torch.equal(found.sum(1).sort().values, data.x.sum(1).sort().values)
    assert not torch.equal(found, torch.cat([batch.x for batch in batches.epoch(4)]))


def test_early_stopping_waits_for_its_patience(monkeypatch):
    monkeypatch.setattr(regularisation, "NUM_EPOCHS", 30)
    curves = train(sample_data(1), 1, patience=2)
    assert len(curves.valid) == curves.best_epoch + 2
    assert curves.valid[curves.best_epoch - 1] == min(curves.valid)


def test_dropout_is_part_of_the_network():
    x = torch.randn(3, regularisation.DIM)
    model = build_network(1, 0.5)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))
