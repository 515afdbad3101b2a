import pytest
import torch
from torch import nn

from regard.attention.cache import KeyValueCache
from regard.attention.masks import causal_mask
from regard.attention.multihead import (
    CrossAttention,
    SelfAttention,
    scaled_self_attention,
    simplified_self_attention,
)
from regard.attention.positions import POSITIONS, sinusoids
from regard.core.errors import ConfigError

DIM, NUM_HEADS = 8, 4


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def build_pair(memory_dim=0):
    """Ours, and torch's with the same weights."""
    ours = CrossAttention(dim=DIM, num_heads=NUM_HEADS, memory_dim=memory_dim)
    width = memory_dim or DIM
    theirs = nn.MultiheadAttention(DIM, NUM_HEADS, kdim=width, vdim=width, batch_first=True)
    maps = (ours.query_map, ours.key_map, ours.value_map)
    with torch.no_grad():
        if memory_dim:
            theirs.q_proj_weight.copy_(ours.query_map.weight)
            theirs.k_proj_weight.copy_(ours.key_map.weight)
            theirs.v_proj_weight.copy_(ours.value_map.weight)
        else:
            theirs.in_proj_weight.copy_(torch.cat([part.weight for part in maps]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in maps]))
    theirs.out_proj.load_state_dict(ours.output_map.state_dict())
    return ours, theirs


def attend(attention, queries, states, *, needs_weights=False, **options):
    attention.needs_weights = needs_weights
    projected = attention.split_heads(attention.query_map(queries))
    return attention.attend(projected, attention.project(states), **options)


@pytest.mark.parametrize("needs_weights", [False, True], ids=["fused", "explicit"])
@pytest.mark.parametrize("is_causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("is_padded", [False, True], ids=["whole", "padded"])
def test_self_attention_equals_torch(needs_weights, is_causal, is_padded):
    ours, theirs = build_pair()
    states = torch.randn(3, 5, DIM)
    mask = torch.arange(5) < torch.tensor([5, 2, 4] if is_padded else [5, 5, 5])[:, None]
    answer, weights = attend(
        ours,
        states,
        states,
        needs_weights=needs_weights,
        mask=mask[:, None] if is_padded else None,
        is_causal=is_causal,
    )
    expected, expected_weights = theirs(
        states,
        states,
        states,
        key_padding_mask=~mask,
        attn_mask=~causal_mask(5, 5) if is_causal else None,
        average_attn_weights=False,
    )
    assert torch.allclose(answer, expected, atol=1e-5)
    if needs_weights:
        assert torch.allclose(weights, expected_weights, atol=1e-5)


@pytest.mark.parametrize("needs_weights", [False, True], ids=["fused", "explicit"])
@pytest.mark.parametrize("memory_dim", [0, 6], ids=["same-width", "other-width"])
def test_cross_attention_equals_torch(needs_weights, memory_dim):
    ours, theirs = build_pair(memory_dim)
    queries, memory = torch.randn(3, 4, DIM), torch.randn(3, 5, memory_dim or DIM)
    mask = torch.arange(5) < torch.tensor([5, 2, 4])[:, None]
    ours.needs_weights = needs_weights
    answer, weights = ours(queries, memory, mask=mask[:, None])
    expected, expected_weights = theirs(
        queries, memory, memory, key_padding_mask=~mask, average_attn_weights=False
    )
    assert torch.allclose(answer, expected, atol=1e-5)
    if needs_weights:
        assert torch.allclose(weights, expected_weights, atol=1e-5)


def test_weights_are_not_computed_unless_recorded():
    states = torch.randn(1, 3, DIM)
    assert attend(CrossAttention(dim=DIM, num_heads=2), states, states)[1] is None


@pytest.mark.parametrize("needs_weights", [False, True], ids=["fused", "explicit"])
@pytest.mark.parametrize("num_key_heads", [1, 2, 4], ids=["one", "two", "all"])
def test_shared_key_heads_equal_repeated_full_heads(needs_weights, num_key_heads):
    grouped = CrossAttention(dim=DIM, num_heads=4, num_key_heads=num_key_heads)
    full = CrossAttention(dim=DIM, num_heads=4)
    full.query_map.load_state_dict(grouped.query_map.state_dict())
    full.output_map.load_state_dict(grouped.output_map.state_dict())
    group = 4 // num_key_heads
    with torch.no_grad():
        for name in ("key_map", "value_map"):
            few, many = getattr(grouped, name), getattr(full, name)
            # A head is two rows of the map.
            rows = few.weight.view(num_key_heads, 2, DIM).repeat_interleave(group, dim=0)
            many.weight.copy_(rows.reshape(DIM, DIM))
            many.bias.copy_(few.bias.view(num_key_heads, 2).repeat_interleave(group, 0).flatten())
    states = torch.randn(2, 5, DIM)
    answer, weights = attend(grouped, states, states, needs_weights=needs_weights, is_causal=True)
    expected, expected_weights = attend(
        full, states, states, needs_weights=needs_weights, is_causal=True
    )
    assert torch.allclose(answer, expected, atol=1e-6)
    if needs_weights:
        assert torch.allclose(weights, expected_weights, atol=1e-6)


def test_multi_query_attention_has_one_key_and_value_head():
    attention = CrossAttention(dim=DIM, num_heads=4, num_key_heads=1)
    keys, values = attention.project(torch.randn(2, 5, DIM))
    assert keys.shape == values.shape == (2, 1, 5, 2)


@pytest.mark.parametrize("num_key_heads", [1, 2, 4])
@pytest.mark.parametrize("name", POSITIONS)
def test_incremental_decoding_equals_parallel_processing(name, num_key_heads):
    positions = POSITIONS[name](dim=DIM, num_heads=4, max_length=8, is_causal=True)
    attention = SelfAttention(
        dim=DIM, num_heads=4, num_key_heads=num_key_heads, positions=positions
    )
    states = torch.randn(2, 6, DIM)
    expected, _ = attention(states, is_causal=True)
    cache, outputs = KeyValueCache(), []
    for piece in states.split([3, 1, 2], dim=1):
        cache = cache.fork()
        outputs.append(attention(piece, is_causal=True, cache=cache)[0])
    assert torch.allclose(torch.cat(outputs, dim=1), expected, atol=1e-6)


def test_weights_are_dropped_in_training_only():
    attention = CrossAttention(dim=DIM, num_heads=2, dropout=0.5)
    states = torch.randn(1, 4, DIM)
    assert not torch.equal(
        attend(attention, states, states)[0], attend(attention, states, states)[0]
    )
    attention.eval()
    assert torch.equal(attend(attention, states, states)[0], attend(attention, states, states)[0])


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ConfigError, match=r"^`num_heads` must divide `dim` \(8\), but is 3\.$"):
        CrossAttention(dim=8, num_heads=3)


def test_key_heads_that_do_not_divide_the_heads_are_refused():
    with pytest.raises(
        ConfigError, match=r"^`num_key_heads` must divide `num_heads` \(4\), but is 3\.$"
    ):
        CrossAttention(dim=8, num_heads=4, num_key_heads=3)


WITHOUT_PARAMETERS = {simplified_self_attention: 1.0, scaled_self_attention: 3**0.5}
"""Self-attention without parameters, and the divisor of its scores for width 3."""
without_parameters = pytest.mark.parametrize(
    "self_attention", WITHOUT_PARAMETERS, ids=lambda function: function.__name__
)


@without_parameters
def test_self_attention_without_parameters_is_the_softmax_of_products(self_attention):
    inputs = torch.randn(2, 5, 3)
    contexts, weights = self_attention(inputs)
    for row in range(2):
        powers = (inputs[row] @ inputs[row].T / WITHOUT_PARAMETERS[self_attention]).exp()
        expected = powers / powers.sum(-1, keepdim=True)
        assert torch.allclose(weights[row], expected, atol=1e-6)
        assert torch.allclose(contexts[row], expected @ inputs[row], atol=1e-6)


@without_parameters
def test_causal_self_attention_covers_earlier_positions_only(self_attention):
    _, weights = self_attention(torch.randn(1, 5, 3), is_causal=True)
    for i, row in enumerate(weights[0].tolist()):
        assert [weight > 0 for weight in row] == [j <= i for j in range(5)]


@without_parameters
def test_first_causal_context_is_the_first_input(self_attention):
    inputs = torch.randn(2, 5, 3)
    contexts, _ = self_attention(inputs, is_causal=True)
    assert torch.allclose(contexts[:, 0], inputs[:, 0])


@without_parameters
def test_permuted_inputs_give_permuted_outputs(self_attention):
    inputs, order = torch.randn(1, 5, 6), torch.tensor([3, 0, 4, 1, 2])
    contexts, _ = self_attention(inputs)
    permuted, _ = self_attention(inputs[:, order])
    assert torch.allclose(permuted, contexts[:, order], atol=1e-6)


@without_parameters
def test_added_positions_encode_the_order(self_attention):
    inputs, order = torch.randn(1, 5, 6), torch.tensor([3, 0, 4, 1, 2])
    positions = sinusoids(torch.arange(5), 6)
    contexts, _ = self_attention(inputs + positions)
    permuted, _ = self_attention(inputs[:, order] + positions)
    assert not torch.allclose(permuted, contexts[:, order], atol=1e-2)


# Added positions are no part of the attention itself, so it stays blind with them.
BLIND = ("none", "sinusoidal", "sinusoidal_halves", "learned")


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_inside_attention_encode_the_order(name):
    positions = POSITIONS[name](dim=DIM, num_heads=4, max_length=8)
    attention = SelfAttention(dim=DIM, num_heads=4, positions=positions)
    states, order = torch.randn(1, 5, DIM), torch.tensor([3, 0, 4, 1, 2])
    answer, _ = attention(states)
    permuted, _ = attention(states[:, order])
    assert torch.allclose(permuted, answer[:, order], atol=1e-4) == (name in BLIND)


@pytest.mark.parametrize("kind", ["rotary", "alibi", "t5", "shaw"])
def test_relative_positions_do_not_depend_on_the_offset(kind):
    torch.manual_seed(0)
    positions = POSITIONS[kind](dim=8, num_heads=2, max_length=9, is_causal=True)
    attention = SelfAttention(dim=8, num_heads=2, positions=positions).eval()
    states = torch.randn(2, 5, 8)
    usual, _ = attention(states, is_causal=True)
    positions = torch.arange(70, 75)
    key_value = attention.project(states, positions)
    queries = attention.split_heads(attention.query_map(states), positions)
    moved, _ = attention.attend(queries, key_value, is_causal=True, key_positions=positions)
    assert torch.allclose(moved, usual, atol=1e-4)


def test_projected_memory_gives_the_same_output():
    attention = CrossAttention(dim=8, num_heads=4, num_key_heads=2, memory_dim=6)
    states, memory = torch.randn(3, 5, 8), torch.randn(3, 4, 6)
    projected, _ = attention(states, attention.project(memory))
    assert torch.equal(projected, attention(states, memory)[0])
