import pytest
import torch

from regard.attention.positions import POSITIONS, sinusoids
from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.decoders import TransformerDecoder, TransformerDecoderConfig


def build_decoder(**changes):
    torch.manual_seed(0)
    sizes = {"dim": 8, "num_layers": 2, "num_heads": 4, "feed_forward_dim": 12, "dropout": 0.0}
    return TransformerDecoder(TransformerDecoderConfig(**(sizes | changes)), 9, memory_dim=4).eval()


@pytest.fixture
def targets():
    return torch.tensor([[2, 5, 8, 4], [2, 4, 4, 7], [2, 8, 6, 5]])


def run_blocks(decoder, targets, memory, num_blocks):
    """The states after so many blocks."""
    states = decoder.embedding(targets) * 8**0.5 + sinusoids(torch.arange(4), 8)
    for block in decoder.blocks[:num_blocks]:
        states = block(states, is_causal=True, memory=memory.states, memory_mask=memory.mask)
    return states


def test_logits_are_blocks_over_scaled_embeddings_with_positions(memory, targets):
    decoder = build_decoder()
    expected = decoder.output(run_blocks(decoder, targets, memory, 2))
    assert torch.allclose(decoder(targets, memory).logits, expected, atol=1e-6)


def test_pre_norm_ends_in_a_norm(memory, targets):
    decoder = build_decoder(is_norm_first=True)
    torch.nn.init.normal_(decoder.norm.weight)
    expected = decoder.output(decoder.norm(run_blocks(decoder, targets, memory, 2)))
    assert torch.allclose(decoder(targets, memory).logits, expected, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_later_token_never_changes_earlier_logits(memory, targets, positions):
    decoder = build_decoder(positions=positions)
    changed = targets.clone()
    changed[:, 2] = 3
    before, after = (decoder(given, memory).logits for given in (targets, changed))
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2:], after[:, 2:], atol=1e-3)


def test_recorded_cross_maps_are_softmax_of_scaled_products(memory, targets):
    decoder = build_decoder()
    with record(decoder) as maps:
        decoder(targets, memory)
    maps = maps.stack()
    assert maps.shape == (3, 2, 4, 4, 5)  # (B, N, H, T, S)
    for layer, block in enumerate(decoder.blocks):
        states = run_blocks(decoder, targets, memory, layer)
        attended, _ = block.self_attention(states, is_causal=True)
        queries = block.self_residual.norm(states + attended)
        queries = block.cross_attention.query_map(queries).view(3, 4, 4, 2)
        keys = block.cross_attention.key_map(memory.states).view(3, 5, 4, 2)
        for head in range(4):
            powers = (queries[:, :, head] @ keys[:, :, head].mT / 2**0.5).exp()
            powers = powers * memory.mask[:, None]
            expected = powers / powers.sum(-1, keepdim=True)
            assert torch.allclose(maps[:, layer, head], expected, atol=1e-5)


def test_recorded_self_attention_is_causal(memory, targets):
    decoder = build_decoder()
    with record(decoder, is_self=True) as maps:
        decoder(targets, memory)
    maps = maps.stack()
    assert maps.shape == (3, 2, 4, 4, 4)
    assert torch.equal(maps > 0, torch.ones(4, 4).tril().bool().expand_as(maps))
    assert torch.allclose(maps.sum(-1), torch.ones(3, 2, 4, 4))


@pytest.mark.parametrize("is_self", [False, True], ids=["cross", "self"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_recording_changes_no_logits(memory, targets, positions, is_self):
    decoder = build_decoder(positions=positions, num_key_heads=2)
    with record(decoder, is_self=is_self):
        recorded = decoder(targets, memory).logits
    assert torch.allclose(recorded, decoder(targets, memory).logits, atol=1e-5)


def test_source_keys_are_projected_once_per_sentence(memory):
    state = build_decoder(num_key_heads=2).start(memory, beams=4)
    for key_value in state.per_source["memory"]:
        assert [part.shape for part in key_value] == [(3, 2, 5, 2)] * 2
    assert [cache.length for cache in state.per_hypothesis.caches] == [0, 0]


def test_target_longer_than_the_learned_positions_is_an_error(memory, targets):
    decoder = build_decoder(positions="learned", max_length=3)
    with pytest.raises(
        ConfigError,
        match=r"^`max_length` must be at least the length of the text \(4 tokens\) with learned "
        r"positions, but is 3\. Shorten the text, or train with a larger one\.$",
    ):
        decoder(targets, memory)


def test_step_beyond_the_learned_positions_is_an_error(memory, targets):
    decoder = build_decoder(positions="learned", max_length=3)
    _, state = decoder.step(targets[:, :3], decoder.start(memory))
    with pytest.raises(ConfigError, match=r"^`max_length` must be at least .+ \(4 tokens\) "):
        decoder.step(targets[:, 3:], state)


def test_dropout_is_active_in_training_only(memory, targets):
    decoder = build_decoder(dropout=0.5)
    assert torch.equal(decoder(targets, memory).logits, decoder(targets, memory).logits)
    decoder.train()
    assert not torch.equal(decoder(targets, memory).logits, decoder(targets, memory).logits)
