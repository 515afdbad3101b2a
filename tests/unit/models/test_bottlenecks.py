"""Bottlenecks against torch's distributions and autograd's Jacobian, and saved states."""

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from regard.core.errors import ConfigError
from regard.models.bottlenecks import (
    BOTTLENECKS,
    PlainBottleneckConfig,
    RoundedBottleneckConfig,
    VariationalBottleneckConfig,
    build_bottleneck,
    kl_from_standard_normal,
    sample_latent,
)

DIM = 6


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def states():
    return torch.randn(4, 5, DIM)


def build(config):
    return build_bottleneck(config, DIM)


@pytest.mark.parametrize("settings", BOTTLENECKS, ids=lambda settings: settings.kind)
def test_every_bottleneck_acts_on_the_last_axis_only(settings, states):
    bottleneck = build(settings(dim=3)).eval()
    together, terms = bottleneck(states)
    assert together.shape == (4, 5, 3)
    alone, own = bottleneck(states[2, 3])
    assert torch.allclose(alone, together[2, 3], atol=1e-6)
    assert terms.keys() == own.keys()
    for name in terms:
        assert terms[name].shape == (4, 5)
        assert torch.allclose(own[name], terms[name][2, 3], atol=1e-6)


@pytest.mark.parametrize("activation", ["linear", "tanh"])
def test_contractive_penalty_is_the_squared_jacobian(activation, states):
    bottleneck = build(PlainBottleneckConfig(dim=3, activation=activation, contractive=0.7))
    penalty = bottleneck(states)[1]["contractive"]
    for row in range(4):
        jacobian = torch.func.jacrev(lambda state: bottleneck(state)[0])(states[row, 0])
        assert torch.allclose(penalty[row, 0], 0.7 * jacobian.square().sum(), rtol=1e-5)


def test_sparse_penalty_is_the_sum_of_absolute_values(states):
    code, terms = build(PlainBottleneckConfig(dim=3, sparse=0.5))(states)
    assert torch.allclose(terms["sparse"], 0.5 * code.norm(p=1, dim=-1))


def test_plain_latents_have_no_loss_by_default(states):
    assert build(PlainBottleneckConfig(dim=3))(states)[1] == {}


def test_kl_divergence_equals_that_of_torch():
    mean, log_variance = torch.randn(2, 50).unbind()
    theirs = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0))
    assert torch.allclose(kl_from_standard_normal(mean, log_variance), theirs, atol=1e-6)


def test_samples_have_the_given_mean_and_variance():
    mean, log_variance = torch.tensor([3.0, -1.0]), torch.tensor([0.0, -2.0])
    codes = sample_latent(mean.expand(9_000, 2), log_variance.expand(9_000, 2))
    assert torch.allclose(codes.mean(0), mean, atol=0.05)
    assert torch.allclose(codes.var(0).log(), log_variance, atol=0.05)


def test_variational_latent_is_the_mean_in_evaluation(states):
    bottleneck = build(VariationalBottleneckConfig(dim=3, weight=0.5, annealing_steps=9))
    drawn, _ = bottleneck.train()(states)
    code, terms = bottleneck.eval()(states)
    mean, log_variance = bottleneck.posterior(states)
    assert torch.equal(code, mean)
    assert not torch.allclose(drawn, code)
    # Neither annealed nor free: what is measured is the bound itself.
    assert torch.allclose(terms["kl"], 0.5 * kl_from_standard_normal(mean, log_variance).sum(-1))


def test_kl_below_free_bits_is_constant_without_gradient(states):
    free = build(VariationalBottleneckConfig(dim=3, free_bits=100.0)).train()
    cost = free(states)[1]["kl"]
    assert torch.equal(cost, torch.full((4, 5), 300.0))
    cost.sum().backward()
    assert all(not parameter.grad.any() for parameter in free.parameters())


def test_free_bits_apply_per_dimension(states):
    bottleneck = build(VariationalBottleneckConfig(dim=3, free_bits=0.2)).train()
    own = kl_from_standard_normal(*bottleneck.posterior(states))
    assert (own < 0.2).any() and (own > 0.2).any()
    expected = torch.maximum(own, torch.tensor(0.2)).sum(-1)
    assert torch.allclose(bottleneck(states)[1]["kl"], expected)


def test_annealed_weight_grows_and_then_stays(states):
    bottleneck = build(VariationalBottleneckConfig(dim=3, weight=2.0, annealing_steps=4)).train()
    whole = 2.0 * kl_from_standard_normal(*bottleneck.posterior(states)).sum(-1)
    for share in (0.25, 0.5, 0.75, 1.0, 1.0):
        assert torch.allclose(bottleneck(states)[1]["kl"], share * whole)


def test_annealing_continues_from_a_saved_state(states):
    config = VariationalBottleneckConfig(dim=3, annealing_steps=10)
    first, other = build(config).train(), build(config).train()
    for _ in range(3):
        first(states)
    first.eval()(states)  # does not count
    other.load_state_dict(first.state_dict())
    torch.manual_seed(1)
    code, terms = first.train()(states)
    torch.manual_seed(1)
    again, terms_again = other(states)
    assert torch.equal(code, again)
    assert torch.equal(terms["kl"], terms_again["kl"])
    assert other.step == 4


@pytest.mark.parametrize("levels", [2, 4, 5, 16])
def test_rounded_latents_are_integers_in_range(levels):
    bottleneck = build(RoundedBottleneckConfig(dim=3, levels=levels))
    code, terms = bottleneck(30 * torch.randn(500, DIM))
    assert terms == {}
    assert torch.equal(code, code.round())
    assert bottleneck.highest - bottleneck.lowest + 1 == levels
    assert set(code.unique().tolist()) == set(range(bottleneck.lowest, bottleneck.highest + 1))


def test_gradients_are_straight_through(states):
    bottleneck = build(RoundedBottleneckConfig(dim=3, levels=5))
    states.requires_grad_()
    factors = torch.randn(4, 5, 3)
    (found,) = torch.autograd.grad((factors * bottleneck(states)[0]).sum(), states)
    smooth = 2.5 * bottleneck.code_map(states).tanh()
    (expected,) = torch.autograd.grad((factors * smooth).sum(), states)
    assert torch.allclose(found, expected)


@pytest.mark.parametrize(
    ("settings", "values", "message"),
    [
        (PlainBottleneckConfig, {"dim": 0}, "`dim` must be at least 1, but is 0"),
        (PlainBottleneckConfig, {"sparse": -1.0}, "`sparse` must be at least 0"),
        (PlainBottleneckConfig, {"contractive": -1.0}, "`contractive` must be at least 0"),
        (VariationalBottleneckConfig, {"dim": 0}, "`dim` must be at least 1"),
        (VariationalBottleneckConfig, {"weight": -1.0}, "`weight` must be at least 0"),
        (VariationalBottleneckConfig, {"annealing_steps": -1}, "`annealing_steps` must be at"),
        (VariationalBottleneckConfig, {"free_bits": -0.1}, "`free_bits` must be at least 0"),
        (RoundedBottleneckConfig, {"levels": 1}, "`levels` must be at least 2, but is 1"),
        (RoundedBottleneckConfig, {"dim": 0}, "`dim` must be at least 1"),
    ],
)
def test_settings_out_of_range_are_an_error(settings, values, message):
    with pytest.raises(ConfigError, match=message):
        settings(**values)
