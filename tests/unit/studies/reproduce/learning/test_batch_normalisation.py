import pytest
import torch
from torch import nn

from regard.studies.reproduce.learning import batch_normalisation as module
from regard.studies.reproduce.learning.batch_normalisation import (
    DIM,
    NUM_STEPS,
    WITH,
    WITHOUT,
    build_network,
    normalise_batch,
    sample_data,
    standardise,
    train,
)


def test_standardised_inputs_have_mean_0_and_variance_1():
    inputs = sample_data(1).x.double()
    x = standardise(inputs, inputs)
    assert torch.allclose(x.mean(0), torch.zeros(DIM).double(), atol=1e-12)
    assert torch.allclose(x.var(0, correction=0), torch.ones(DIM).double())


def test_inputs_are_badly_scaled():
    std = sample_data(1).x.std(0)
    assert std.max() / std.min() > 1_000


def test_validation_inputs_are_standardised_by_the_training_inputs():
    raw = sample_data(1)
    data = raw.standardise()
    means, stds = raw.x.mean(0), raw.x.std(0, correction=0)
    assert torch.allclose(data.valid_x * stds + means, raw.valid_x, atol=1e-3)
    assert data.valid_x.mean(0).abs().max() > 0.01
    assert data.valid_labels is raw.valid_labels


def test_validation_does_not_change_training():
    data, losses = sample_data(1).standardise(), []
    for interval in (10, NUM_STEPS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "INTERVAL", interval)
            model = build_network(1, norm=WITH, activation=nn.ReLU)
            run = train(model, data, rate=0.1, seed=1)
        assert len(run.valid) == NUM_STEPS // interval
        losses.append(run.losses)
    assert losses[0] == losses[1]


def test_formula_and_gradients_equal_torch():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    norm = nn.BatchNorm1d(4).double()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2, generator=generator)
        norm.bias.uniform_(-1, 1, generator=generator)
    factors = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    results = []
    for function in (lambda x: normalise_batch(x, norm.weight, norm.bias), norm):
        leaf = x.clone().requires_grad_()
        output = function(leaf)
        gradients = torch.autograd.grad((output * factors).sum(), [leaf, *norm.parameters()])
        results.append([output, *gradients])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs)


def test_only_one_network_has_batch_norms():
    networks = {norm: build_network(1, norm=norm, activation=nn.ReLU) for norm in (WITH, WITHOUT)}
    counts = {
        norm: sum(isinstance(one, nn.BatchNorm1d) for one in model)
        for norm, model in networks.items()
    }
    assert counts == {WITH: 3, WITHOUT: 0}
