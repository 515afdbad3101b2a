import pytest
import torch

from regard.attention.positions import sinusoids
from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig


def build_encoder(**changes):
    torch.manual_seed(0)
    sizes = {"dim": 8, "num_layers": 2, "num_heads": 4, "feed_forward_dim": 12, "dropout": 0.0}
    return TransformerEncoder(TransformerEncoderConfig(**(sizes | changes)), TextSpec(11)).eval()


def read(encoder, sentences):
    return encoder(sentences.source, sentences.mask)


def run_blocks(encoder, sentences, num_blocks):
    embedded = encoder.embedding(sentences.source) * 8**0.5
    states = embedded + sinusoids(torch.arange(7), 8)
    for block in list(encoder.blocks)[:num_blocks]:
        states = block(states, mask=sentences.mask[:, None])
    return states


def test_states_are_blocks_over_scaled_embeddings_with_positions(sentences):
    encoder = build_encoder()
    expected = run_blocks(encoder, sentences, 2)
    assert torch.allclose(read(encoder, sentences).states, expected, atol=1e-6)


def test_pre_norm_ends_in_a_norm(sentences):
    encoder = build_encoder(is_norm_first=True)
    torch.nn.init.normal_(encoder.norm.weight)
    expected = encoder.norm(run_blocks(encoder, sentences, 2))
    assert torch.allclose(read(encoder, sentences).states, expected, atol=1e-6)


def test_memory_has_mask_tokens_and_width(sentences):
    encoder = build_encoder()
    memory = read(encoder, sentences)
    assert torch.equal(memory.mask, sentences.mask)
    assert torch.equal(memory.tokens, sentences.source)
    assert memory.states.shape == (3, 7, encoder.memory_dim)


def test_summary_is_the_mean_of_the_real_positions(sentences):
    memory = read(build_encoder(), sentences)
    for row, length in enumerate(sentences.lengths):
        assert torch.allclose(memory.summary[row], memory.states[row, :length].mean(0), atol=1e-6)


def recorded(encoder, sentences):
    with record(encoder, is_self=True) as maps:
        memory = read(encoder, sentences)
    return maps.stack(), memory


@pytest.mark.parametrize("num_key_heads", [4, 2, 1])
def test_recorded_maps_are_softmax_of_scaled_products(sentences, num_key_heads):
    encoder = build_encoder(num_key_heads=num_key_heads)
    maps, _ = recorded(encoder, sentences)
    assert maps.shape == (3, 2, 4, 7, 7)  # (B, N, H, S, S)
    for layer, block in enumerate(encoder.blocks):
        states = run_blocks(encoder, sentences, layer)
        queries = block.self_attention.query_map(states).view(3, 7, 4, 2)
        keys = block.self_attention.key_map(states).view(3, 7, num_key_heads, 2)
        for head in range(4):
            key = keys[:, :, head * num_key_heads // 4]
            powers = (queries[:, :, head] @ key.mT / 2**0.5).exp() * sentences.mask[:, None]
            expected = powers / powers.sum(-1, keepdim=True)
            assert torch.allclose(maps[:, layer, head], expected, atol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "shaw", "t5", "alibi"])
def test_recording_changes_no_states(sentences, positions):
    encoder = build_encoder(positions=positions)
    _, memory = recorded(encoder, sentences)
    assert torch.allclose(memory.states, read(encoder, sentences).states, atol=1e-6)


def test_encoder_has_no_cross_attention(sentences):
    with record(build_encoder()) as maps:
        pass
    assert maps.num_layers == 0


def test_without_positions_the_order_is_lost(sentences):
    encoder = build_encoder(positions="none")
    source, mask = sentences.alone(0)
    order = torch.tensor([3, 6, 0, 4, 1, 5, 2])
    permuted = encoder(source[:, order], mask).states
    assert torch.allclose(permuted, encoder(source, mask).states[:, order], atol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "shaw", "t5", "alibi"])
def test_with_positions_the_order_is_kept(sentences, positions):
    encoder = build_encoder(positions=positions)
    source, mask = sentences.alone(0)
    order = torch.tensor([3, 6, 0, 4, 1, 5, 2])
    permuted = encoder(source[:, order], mask).states
    assert not torch.allclose(permuted, encoder(source, mask).states[:, order], atol=1e-3)


def test_positions_belong_to_all_blocks_together():
    encoder = build_encoder(positions="t5")
    assert all(block.self_attention.positions is encoder.positions for block in encoder.blocks)


def test_source_longer_than_the_learned_positions_is_an_error(sentences):
    encoder = build_encoder(positions="learned", max_length=6)
    with pytest.raises(
        ConfigError,
        match=r"^`max_length` must be at least the length of the text \(7 tokens\) with learned "
        r"positions, but is 6\. Shorten the text, or train with a larger one\.$",
    ):
        read(encoder, sentences)


def test_dropout_is_active_in_training_only(sentences):
    encoder = build_encoder(dropout=0.5)
    assert torch.equal(read(encoder, sentences).states, read(encoder, sentences).states)
    encoder.train()
    assert not torch.equal(read(encoder, sentences).states, read(encoder, sentences).states)


def test_window_reaches_one_window_farther_with_every_block():
    encoder = build_encoder(window=1, positions="rotary")
    source = torch.randint(4, 11, (1, 9), generator=torch.Generator().manual_seed(2))
    mask = torch.ones(1, 9, dtype=torch.bool)
    other = source.clone()
    other[0, 8] = 4 if source[0, 8] != 4 else 5
    before, after = encoder(source, mask).states, encoder(other, mask).states
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)
    assert not torch.allclose(before[:, 6], after[:, 6], atol=1e-4)


def test_window_as_wide_as_the_text_equals_full_attention(sentences):
    wide, full = build_encoder(window=7), build_encoder()
    ours, theirs = (read(encoder, sentences).states[sentences.mask] for encoder in (wide, full))
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_windowed_and_full_encoders_load_each_others_weights():
    build_encoder(window=2).load_state_dict(build_encoder().state_dict())


def test_pooled_memory_is_the_mean_of_real_neighbours(sentences):
    pooled, plain = read(build_encoder(pooling=3), sentences), read(build_encoder(), sentences)
    assert pooled.states.shape == (3, 3, 8)
    assert pooled.mask.tolist() == [[True] * 3, [True, False, False], [True, True, False]]
    for row, length in enumerate(sentences.lengths):
        for index, group in enumerate(plain.states[row, :length].split(3)):
            assert torch.allclose(pooled.states[row, index], group.mean(0), atol=1e-6)
    assert torch.allclose(pooled.summary, plain.summary, atol=1e-6)
    assert pooled.tokens is None


def test_pooled_states_do_not_depend_on_the_batch(sentences):
    encoder = build_encoder(pooling=2, window=2)
    together = read(encoder, sentences)
    for row in range(3):
        alone = encoder(*sentences.alone(row))
        num = alone.states.shape[1]
        assert torch.allclose(together.states[row, :num], alone.states[0], atol=1e-6)
        assert together.mask[row].sum() == alone.mask.sum() == num


def test_memory_positions_map_each_position_to_its_pooled_state(sentences):
    groups = build_encoder(pooling=3).memory_positions(sentences.source, sentences.mask)
    assert groups.tolist() == [[0, 0, 0, 1, 1, 1, 2]] * 3


def test_without_pooling_memory_positions_is_none(sentences):
    assert build_encoder().memory_positions(sentences.source, sentences.mask) is None


@pytest.mark.parametrize(("name", "value", "least"), [("window", -1, 0), ("pooling", 0, 1)])
def test_invalid_window_and_pooling_are_an_error(name, value, least):
    with pytest.raises(ConfigError, match=f"^`{name}` must be at least {least}, but is {value}"):
        TransformerEncoderConfig(**{name: value})
