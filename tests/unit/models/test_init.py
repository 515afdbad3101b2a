import math

import pytest
import torch
from torch import nn

from regard.core.errors import ConfigError
from regard.models.init import INITIALIZERS, InitConfig, initialize

# What torch itself does under each name, with its own gain for ReLU.
TORCH = {
    "uniform": lambda weight: nn.init.uniform_(weight, -0.08, 0.08),
    "normal": lambda weight: nn.init.normal_(weight, 0.0, 0.08),
    "xavier_uniform": nn.init.xavier_uniform_,
    "xavier_normal": nn.init.xavier_normal_,
    "kaiming_uniform": lambda weight: nn.init.kaiming_uniform_(weight, nonlinearity="relu"),
    "kaiming_normal": lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="relu"),
    "orthogonal": nn.init.orthogonal_,
}


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.dense = nn.Linear(50, 80)
        self.recurrence = nn.GRU(3, 5, num_layers=2)


def initialised(config):
    torch.manual_seed(0)
    model = Parts()
    initialize(model, config)
    return model


def test_every_rule_but_default_is_compared_with_torch():
    assert set(TORCH) == set(INITIALIZERS) - {"default"}


@pytest.mark.parametrize("rule", TORCH)
def test_rule_equals_torch_with_the_same_seed(rule):
    ours, theirs = torch.empty(50, 80), torch.empty(50, 80)
    torch.manual_seed(3)
    INITIALIZERS[rule](ours, InitConfig())
    torch.manual_seed(3)
    TORCH[rule](theirs)
    assert torch.allclose(ours, theirs)


@pytest.mark.parametrize("rule", ["kaiming_uniform", "kaiming_normal"])
@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
def test_fan_mode_equals_torch_with_the_same_seed(rule, mode):
    ours, theirs = torch.empty(30, 50, 3), torch.empty(30, 50, 3)
    torch.manual_seed(3)
    INITIALIZERS[rule](ours, InitConfig(fan_mode=mode))
    torch.manual_seed(3)
    getattr(nn.init, f"{rule}_")(theirs, mode=mode, nonlinearity="relu")
    assert torch.allclose(ours, theirs)


@pytest.mark.parametrize(
    ("rule", "deviation"),
    [
        ("kaiming_uniform", math.sqrt(2 / 50)),
        ("kaiming_normal", math.sqrt(2 / 50)),
        ("xavier_uniform", math.sqrt(2 / (50 + 80))),
        ("xavier_normal", math.sqrt(2 / (50 + 80))),
        ("uniform", 0.08 / math.sqrt(3)),
        ("normal", 0.08),
    ],
)
def test_standard_deviation_is_that_of_the_formula(rule, deviation):
    model = initialised(InitConfig(rule=rule))
    assert model.dense.weight.std().item() == pytest.approx(deviation, rel=0.05)
    assert model.dense.weight.mean().item() == pytest.approx(0, abs=deviation / 20)


@pytest.mark.parametrize("rule", ["xavier_uniform", "xavier_normal", "orthogonal"])
def test_gain_multiplies_the_standard_deviation(rule):
    plain = initialised(InitConfig(rule=rule)).dense.weight
    assert torch.allclose(initialised(InitConfig(rule=rule, gain=3.0)).dense.weight, 3 * plain)


@pytest.mark.parametrize("rule", ["kaiming_uniform", "kaiming_normal"])
def test_gain_replaces_the_square_root_of_two(rule):
    plain = initialised(InitConfig(rule=rule)).dense.weight
    unit = initialised(InitConfig(rule=rule, gain=1.0)).dense.weight
    assert torch.allclose(unit * math.sqrt(2), plain)


@pytest.mark.parametrize("layer", [0, 1])
def test_recurrent_matrices_are_orthogonal_gate_by_gate(layer):
    model = initialised(InitConfig())
    for gate in getattr(model.recurrence, f"weight_hh_l{layer}").split(5):
        assert torch.allclose(gate @ gate.T, torch.eye(5), atol=1e-5)


def test_fan_of_a_recurrent_matrix_is_that_of_one_gate():
    weight = initialised(InitConfig(recurrent="xavier_uniform")).recurrence.weight_hh_l0
    bound = math.sqrt(6 / (5 + 5))
    assert 0.9 * bound < weight.abs().max().item() <= bound


def test_default_keeps_the_initialisation_of_torch():
    torch.manual_seed(0)
    untouched = Parts()
    model = initialised(InitConfig(recurrent="default"))
    for ours, theirs in zip(model.parameters(), untouched.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_biases_are_zero_with_any_other_rule():
    model = initialised(InitConfig(rule="normal"))
    assert all((p == 0).all() for name, p in model.named_parameters() if "bias" in name)


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.RMSNorm, nn.BatchNorm1d])
def test_weight_of_a_norm_stays_one_under_any_rule(norm):
    layer = norm(4)
    initialize(layer, InitConfig(rule="xavier_uniform"))
    assert layer.weight.tolist() == [1.0] * 4


def test_embeddings_have_their_own_rule():
    torch.manual_seed(0)
    untouched = Parts().embedding.weight
    assert torch.equal(initialised(InitConfig(rule="normal")).embedding.weight, untouched)
    scaled = initialised(InitConfig(embedding="uniform", scale=0.01)).embedding.weight
    assert scaled.abs().max() <= 0.01


@pytest.mark.parametrize("name", ["gain", "scale"])
def test_settings_have_limits(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 0.0, but is -1.0\.$"):
        InitConfig(**{name: -1.0})


@pytest.mark.parametrize("name", ["rule", "recurrent", "embedding"])
def test_unknown_rule_is_named(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be one of .+ Did you mean 'normal'\?$"):
        initialize(Parts(), InitConfig(**{name: "normall"}))


@pytest.mark.parametrize("rule", ["default", "uniform"])
def test_forget_bias_is_added_to_forget_gates_only(rule):
    def biases(forget_bias):
        torch.manual_seed(1)
        layer = nn.LSTM(3, 5, num_layers=2, bidirectional=True)
        initialize(layer, InitConfig(rule=rule, forget_bias=forget_bias))
        return {name: value.detach() for name, value in layer.named_parameters() if "bias" in name}

    plain, raised = biases(0.0), biases(1.5)
    for name, value in raised.items():
        added = torch.zeros(4, 5)
        if name.startswith("bias_ih"):
            added[1] = 1.5
        torch.testing.assert_close(value - plain[name], added.flatten())


def test_forget_bias_leaves_a_gru_as_it_is():
    torch.manual_seed(1)
    layer = nn.GRU(3, 5)
    before = layer.bias_ih_l0.clone()
    initialize(layer, InitConfig(forget_bias=1.0))
    assert torch.equal(layer.bias_ih_l0, before)
