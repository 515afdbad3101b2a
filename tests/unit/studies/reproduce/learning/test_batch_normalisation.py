import torch
from torch import nn

from regard.studies.reproduce.learning.batch_normalisation import (
    DIM,
    WITH,
    WITHOUT,
    build_network,
    normalise_batch,
    sample_data,
    standardise,
)


def test_standardised_inputs_have_mean_0_and_variance_1():
    x = standardise(sample_data(1)[0].double())
    assert torch.allclose(x.mean(0), torch.zeros(DIM).double(), atol=1e-12)
    assert torch.allclose(x.var(0, correction=0), torch.ones(DIM).double())


def test_inputs_are_badly_scaled():
    std = sample_data(1)[0].std(0)
    assert std.max() / std.min() > 1_000


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
