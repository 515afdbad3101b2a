import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.build import ModelConfig
from regard.models.decoders import PrefixDecoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 6, "dropout": 0.0}


def config(**changes):
    return ModelConfig(
        encoder=EmbeddingEncoderConfig(dim=8),
        decoder=PrefixDecoderConfig(**{**SIZES, "is_norm_first": True, **changes}),
        ties="all",
    )


@pytest.fixture
def model(build):
    return build(config(positions="rotary", source_weight=0.5))


def as_one_text(model, source, targets):
    """Logits of source and target, read by the blocks as a single text with a mask."""
    decoder = model.decoder
    num_source, num_target = source.shape[1], targets.shape[1]
    segment = torch.tensor([0] * num_source + [1] * num_target)
    positions = torch.cat([torch.arange(num_source), torch.arange(num_target)])
    embedded = decoder.embedding(torch.cat([source, targets], dim=1)) * decoder.scale
    states = embedded + decoder.segment_embedding(segment)
    order = torch.ones(len(segment), len(segment)).tril().bool()[None]
    for block in decoder.blocks:
        attention = block.self_attention

        def attend(inputs, attention=attention):
            key_value = attention.project(inputs, positions)
            queries = attention.split_heads(attention.query_map(inputs), positions)
            return attention.attend(queries, key_value, mask=order, key_positions=positions)[0]

        states = block.feed_residual(block.self_residual(states, attend), block.feed_forward)
    return decoder.output(decoder.norm(states))


def test_source_and_target_are_one_causal_text(model, sentences):
    source, mask = sentences.alone(0)
    targets = sentences.targets[:1]
    output = model(source, mask, targets)
    whole = as_one_text(model, source, targets)
    assert torch.allclose(output.logits, whole[:, source.shape[1] :], atol=1e-5)
    expected = cross_entropy(whole[0, : source.shape[1] - 1], source[0, 1:])
    assert torch.allclose(output.losses["source"], 0.5 * expected, atol=1e-5)


def test_source_loss_ignores_padding(model, sentences):
    whole = model(sentences.source, sentences.mask, sentences.targets).losses["source"]
    sums, counts = 0.0, 0
    for row in range(3):
        source, mask = sentences.alone(row)
        count = source.shape[1] - 1
        sums += model(source, mask, sentences.targets[row : row + 1]).losses["source"] * count
        counts += count
    assert torch.allclose(whole, sums / counts, atol=1e-6)


def test_without_a_weight_there_is_no_source_loss(build, sentences):
    model = build(config())
    assert model(sentences.source, sentences.mask, sentences.targets).losses == {}


def test_maps_are_the_weights_on_the_source(model, sentences):
    with torch.no_grad(), record(model) as maps:
        model(sentences.source, sentences.mask, sentences.targets)
    weights = maps.stack()  # (B, N, H, T, S)
    assert weights.shape == (3, 2, 2, 6, 7)
    assert (weights.sum(-1) < 1).all()
    assert (weights[~sentences.mask[:, None, None, None].expand_as(weights)] == 0).all()


def test_source_loss_needs_the_embedding_encoder():
    with pytest.raises(ConfigError, match="needs the encoder 'embedding'.*is 'transformer'"):
        ModelConfig(
            encoder=TransformerEncoderConfig(**SIZES),
            decoder=PrefixDecoderConfig(**SIZES, source_weight=0.1),
        )


def test_weight_of_the_source_is_not_negative():
    with pytest.raises(ConfigError, match="`source_weight` must be at least 0"):
        PrefixDecoderConfig(source_weight=-1.0)
