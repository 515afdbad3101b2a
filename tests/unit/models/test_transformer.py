import dataclasses

import pytest
import torch
from torch import nn

from regard.attention.cache import KeyValueCache
from regard.attention.positions import LearnedPositions, Positions, SinusoidalPositions, sinusoids
from regard.core.errors import ConfigError
from regard.models.transformer import (
    TransformerBlock,
    TransformerConfig,
    TransformerStack,
    add_positions,
    build_final_norm,
    build_positions,
    build_stack,
)

TINY = TransformerConfig(dim=8, num_heads=2, feed_forward_dim=12, positions="none", dropout=0.0)
VARIANTS = [(first, kind) for first in (False, True) for kind in ("relu", "gelu")]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(params=VARIANTS, ids=lambda v: f"{'pre' if v[0] else 'post'}-{v[1]}")
def config(request):
    is_norm_first, feed_forward = request.param
    return dataclasses.replace(TINY, is_norm_first=is_norm_first, feed_forward=feed_forward)


def build_block(config, memory_dim=0):
    block = TransformerBlock(
        config, build_positions(config, is_causal=False), memory_dim=memory_dim
    )
    for name, parameter in block.named_parameters():
        if "norm" in name:
            nn.init.normal_(parameter)
    return block.eval()


def attention_weights(ours):
    parts = (ours.query_map, ours.key_map, ours.value_map)
    return {
        "in_proj_weight": torch.cat([part.weight for part in parts]),
        "in_proj_bias": torch.cat([part.bias for part in parts]),
        "out_proj.weight": ours.output_map.weight,
        "out_proj.bias": ours.output_map.bias,
    }


def build_reference(kind, config, block):
    """Torch's own layer with the weights of our block."""
    theirs = kind(
        config.dim,
        config.num_heads,
        config.feed_forward_dim,
        dropout=0.0,
        activation=config.feed_forward,
        batch_first=True,
        norm_first=config.is_norm_first,
    ).eval()
    theirs.self_attn.load_state_dict(attention_weights(block.self_attention))
    residuals = [block.self_residual, block.feed_residual]
    if kind is nn.TransformerDecoderLayer:
        theirs.multihead_attn.load_state_dict(attention_weights(block.cross_attention))
        residuals.insert(1, block.cross_residual)
    theirs.linear1.load_state_dict(block.feed_forward.hidden_map.state_dict())
    theirs.linear2.load_state_dict(block.feed_forward.output_map.state_dict())
    for number, residual in enumerate(residuals, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(residual.norm.state_dict())
    return theirs


def test_encoding_equals_torch(config):
    block = build_block(config)
    theirs = build_reference(nn.TransformerEncoderLayer, config, block)
    states, mask = torch.randn(3, 5, 8), torch.arange(5) < torch.tensor([5, 2, 4])[:, None]
    expected = theirs(states, src_key_padding_mask=~mask)
    assert torch.allclose(block(states, mask=mask[:, None])[mask], expected[mask], atol=1e-5)


def test_decoding_equals_torch(config):
    block = build_block(config, memory_dim=8)
    theirs = build_reference(nn.TransformerDecoderLayer, config, block)
    states, memory = torch.randn(3, 4, 8), torch.randn(3, 5, 8)
    mask = torch.arange(5) < torch.tensor([5, 2, 4])[:, None]
    decoded = block(states, is_causal=True, memory=memory, memory_mask=mask)
    expected = theirs(
        states,
        memory,
        tgt_mask=torch.ones(4, 4).triu(1).bool(),
        memory_key_padding_mask=~mask,
    )
    assert torch.allclose(decoded, expected, atol=1e-5)


def test_block_appends_its_positions_to_the_cache():
    block = build_block(TINY, memory_dim=8)
    memory, mask = torch.randn(1, 5, 8), torch.ones(1, 5).bool()
    states = torch.randn(1, 4, 8)
    options = {"is_causal": True, "memory": memory, "memory_mask": mask}
    first = KeyValueCache()
    block(states[:, :3], cache=first, **options)
    second = first.fork()
    last = block(states[:, 3:], cache=second, **options)
    assert (first.length, second.length) == (3, 4)
    assert [part.shape for part in second.visible] == [(1, 2, 4, 4)] * 2
    assert torch.allclose(last, block(states, **options)[:, 3:], atol=1e-6)


def test_projected_memory_equals_memory():
    stack = build_stack(TINY, build_positions(TINY, is_causal=True), memory_dim=6).eval()
    states, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 6)
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None]
    projected = stack(states, memory=stack.project_memory(memory), memory_mask=mask)
    assert torch.equal(projected, stack(states, memory=memory, memory_mask=mask))


def test_stack_applies_its_blocks_in_order_and_repeatedly():
    blocks = [build_block(TINY) for _ in range(2)]
    states = torch.randn(2, 3, 8)
    expected = states
    for block in [*blocks, *blocks]:
        expected = block(expected)
    assert torch.equal(TransformerStack(blocks, num_rounds=2)(states), expected)


def test_block_without_a_source_has_no_cross_attention():
    assert not hasattr(build_block(TINY), "cross_attention")


@pytest.mark.parametrize(
    ("is_norm_first", "kind"), [(True, nn.LayerNorm), (False, nn.Identity)], ids=["pre", "post"]
)
def test_only_pre_norm_needs_a_norm_after_the_last_block(is_norm_first, kind):
    config = dataclasses.replace(TINY, is_norm_first=is_norm_first)
    assert type(build_final_norm(config)) is kind


def test_position_embeddings_are_added():
    embedded = torch.randn(2, 3, 8)
    placed = add_positions(embedded, SinusoidalPositions(dim=8, num_heads=2), first=4)
    assert torch.allclose(placed, embedded + sinusoids(torch.arange(4, 7), 8))


def test_relative_positions_do_not_change_the_embeddings():
    embedded = torch.randn(2, 3, 8)
    assert add_positions(embedded, Positions(dim=8, num_heads=2)) is embedded


def test_positions_beyond_the_learned_ones_are_an_error():
    positions = LearnedPositions(dim=8, num_heads=2, max_length=5)
    add_positions(torch.randn(2, 3, 8), positions, first=2)
    with pytest.raises(ConfigError, match=r"^`max_length` must be at least .+ \(6 tokens\) "):
        add_positions(torch.randn(2, 3, 8), positions, first=3)


@pytest.mark.parametrize(
    "name", ["dim", "num_layers", "num_heads", "feed_forward_dim", "max_length"]
)
def test_sizes_are_at_least_one(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 1, but is 0\.$"):
        TransformerConfig(**{name: 0})


def test_key_heads_are_not_negative():
    with pytest.raises(ConfigError, match=r"^`num_key_heads` must be at least 0, but is -1\.$"):
        TransformerConfig(num_key_heads=-1)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_dropout_has_limits(dropout):
    with pytest.raises(ConfigError, match=r"^`dropout` must be between 0\.0 and 0\.99, but is "):
        TransformerConfig(dropout=dropout)


def test_heads_divide_the_width():
    with pytest.raises(ConfigError, match=r"^`num_heads` must divide `dim` \(8\), but is 3\.$"):
        TransformerConfig(dim=8, num_heads=3)


def test_key_heads_divide_the_heads():
    with pytest.raises(
        ConfigError, match=r"^`num_key_heads` must divide `num_heads` \(4\), but is 3\.$"
    ):
        TransformerConfig(dim=8, num_heads=4, num_key_heads=3)


@pytest.mark.parametrize(
    ("name", "near"), [("positions", "rotary"), ("feed_forward", "gated"), ("norm", "layer")]
)
def test_unknown_choice_is_named(name, near):
    config = TransformerConfig(**{name: f"{near}s"})
    with pytest.raises(ConfigError, match=rf"^`{name}` must be one of .+ Did you mean '{near}'\?$"):
        TransformerBlock(config, build_positions(config, is_causal=False))
