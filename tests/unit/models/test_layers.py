import math

import pytest
import torch
from torch import nn

from regard.models.layers import EPSILON, FEED_FORWARDS, NORMS, Residual

# Four positions of three columns.
TABLE = torch.tensor([[1.0, 2.0, 6.0], [3.0, 2.0, 1.0], [5.0, 8.0, 2.0], [7.0, 4.0, 7.0]])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def norm_table(name):
    """Output of a norm in training for the table, as one text of four positions."""
    return NORMS[name](3, EPSILON)(TABLE[None])[0]


def test_layer_norm_is_taken_along_each_row():
    # Means 3, 2, 5, 6 and variances 14/3, 2/3, 6, 2.
    deviations = [math.sqrt(14 / 3), math.sqrt(2 / 3), math.sqrt(6), math.sqrt(2)]
    centred = torch.tensor([[-2, -1, 3], [1, 0, -1], [0, 3, -3], [1, -2, 1]])
    expected = centred / torch.tensor(deviations)[:, None]
    assert torch.allclose(norm_table("layer"), expected, atol=1e-4)


def test_batch_norm_is_taken_along_each_column():
    # Means 4, 4, 4 and variances 5, 6, 6.5.
    centred = torch.tensor([[-3, -2, 2], [-1, -2, -3], [1, 4, -2], [3, 0, 3]])
    expected = centred / torch.tensor([5, 6, 6.5]).sqrt()
    assert torch.allclose(norm_table("batch"), expected, atol=1e-4)


def test_root_mean_square_norm_only_scales_each_row():
    # Mean squares 41/3, 14/3, 31, 38.
    expected = TABLE / torch.tensor([41 / 3, 14 / 3, 31, 38]).sqrt()[:, None]
    assert torch.allclose(norm_table("rms"), expected, atol=1e-4)


def test_norm_none_is_the_identity():
    assert torch.equal(norm_table("none"), TABLE)


def test_batch_norm_counts_the_positions_of_all_texts():
    apart = NORMS["batch"](3, EPSILON)(TABLE.view(2, 2, 3))
    assert torch.allclose(apart.flatten(0, 1), norm_table("batch"))


def test_batch_norm_depends_on_other_texts_in_training_only():
    norm, other = NORMS["batch"](3, EPSILON), torch.randn(1, 4, 3)
    both = torch.cat([TABLE[None], other])
    assert not torch.allclose(norm(both)[0], norm(TABLE[None])[0], atol=1e-2)
    norm.eval()
    assert torch.allclose(norm(both)[0], norm(TABLE[None])[0])


def test_layer_norm_never_depends_on_other_texts():
    norm, other = NORMS["layer"](3, EPSILON), torch.randn(1, 4, 3)
    assert torch.allclose(norm(torch.cat([TABLE[None], other]))[0], norm(TABLE[None])[0])


ACTIVATIONS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + math.exp(-x)),
}


def activate(name, vector):
    return torch.tensor([ACTIVATIONS[name](x) for x in vector.tolist()])


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_feed_forward_is_two_maps_with_an_activation_between(name):
    layer, states = FEED_FORWARDS[name](3, 5, 0.0), torch.randn(2, 4, 3)
    out = layer(states)
    for row in range(2):
        for position in range(4):
            hidden = activate(name, layer.hidden_map(states[row, position]))
            assert torch.allclose(out[row, position], layer.output_map(hidden), atol=1e-6)


def test_gated_feed_forward_multiplies_one_map_by_the_gate_of_another():
    layer, states = FEED_FORWARDS["gated"](3, 5, 0.0), torch.randn(2, 4, 3)
    out = layer(states)
    for row in range(2):
        for position in range(4):
            state = states[row, position]
            hidden = activate("silu", layer.gate_map(state)) * layer.hidden_map(state)
            assert torch.allclose(out[row, position], layer.output_map(hidden), atol=1e-6)


@pytest.mark.parametrize("name", FEED_FORWARDS)
def test_feed_forward_dropout_is_active_in_training_only(name):
    layer, states = FEED_FORWARDS[name](3, 5, 0.5), torch.randn(2, 4, 3)
    assert not torch.equal(layer(states), layer(states))
    layer.eval()
    assert torch.equal(layer(states), layer(states))


def residual(*, is_norm_first, dropout=0.0, norm="layer"):
    made = Residual(NORMS[norm](3, EPSILON), is_norm_first=is_norm_first, dropout=dropout)
    if norm == "layer":
        nn.init.normal_(made.norm.weight)
        nn.init.normal_(made.norm.bias)
    return made


@pytest.fixture
def inner():
    return nn.Linear(3, 3)


def test_pre_norm_adds_the_output_for_normalised_states(inner):
    before, states = residual(is_norm_first=True), torch.randn(2, 4, 3)
    expected = states + inner(before.norm(states))
    assert torch.allclose(before(states, inner), expected)


def test_post_norm_normalises_the_sum(inner):
    after, states = residual(is_norm_first=False), torch.randn(2, 4, 3)
    expected = after.norm(states + inner(states))
    assert torch.allclose(after(states, inner), expected)


@pytest.mark.parametrize("is_norm_first", [True, False], ids=["pre", "post"])
def test_dropout_applies_to_the_layer_output_only(inner, is_norm_first):
    bare = residual(is_norm_first=is_norm_first, dropout=0.99, norm="none")
    states = torch.randn(2, 4, 3)
    kept = bare(states, inner) == states
    assert kept.float().mean() > 0.7
    bare.eval()
    assert torch.equal(bare(states, inner), states + inner(states))


@pytest.mark.parametrize("name", ["layer", "rms", "batch"])
def test_epsilon_is_added_to_the_variance(name):
    states = torch.tensor([[-1.0, 1.0], [1.0, -1.0]])[None]
    # Means are 0 and variances are 1, along rows as along columns.
    assert torch.allclose(NORMS[name](2, 3.0)(states), states / 2)


def test_silu_feed_forward_uses_silu():
    layer = FEED_FORWARDS["silu"](1, 1, 0.0)
    for parameter, value in zip(layer.parameters(), (2.0, 0.0, 3.0, 1.0), strict=True):
        nn.init.constant_(parameter, value)
    # 3 · 2x · sigmoid(2x) + 1 at x = 0.5.
    assert layer(torch.tensor([[[0.5]]])).item() == pytest.approx(3 / (1 + math.exp(-1)) + 1)
