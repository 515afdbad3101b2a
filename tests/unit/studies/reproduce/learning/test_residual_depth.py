import pytest
import torch

from regard.studies.reproduce.learning import residual_depth as experiment
from regard.studies.reproduce.neurons.shifted_images import sample_shapes


@pytest.fixture
def images():
    return sample_shapes(16, torch.Generator().manual_seed(1), max_shift=2)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(experiment, "WIDTHS", (2, 2, 2))
    monkeypatch.setattr(experiment, "NUM_STEPS", 4)
    monkeypatch.setattr(experiment, "CHECK_EVERY", 2)


def test_errors_are_measured_while_training(images):
    model = experiment.build("plain", 1, seed=1)
    trained = experiment.train_network(model, images, images, seed=1)
    assert [step for step, _ in trained.test_errors] == [2, 4]
    assert all(0 <= value <= 100 for value in trained.errors)


def test_every_convolution_has_a_gradient_norm(images):
    model = experiment.build("residual", 1, seed=1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    norms = experiment.gradient_norms(model, *images)
    assert len(norms) == 7 and all(norm > 0 for norm in norms)  # the stem and three blocks of two
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())


def test_networks_of_a_seed_have_the_same_weights():
    first, second = (experiment.build("plain", 1, seed=2).state_dict() for _ in range(2))
    assert all(value.equal(second[name]) for name, value in first.items())


def test_layers_are_counted_as_in_the_paper():
    assert all(6 * blocks + 2 == layers for layers, blocks in experiment.DEPTHS.items())
