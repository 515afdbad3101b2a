from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, TextSpec
from regard.models.encoders import build_encoder
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.language_model import (
    LanguageModelEncoder,
    RnnLanguageConfig,
    TransformerLanguageConfig,
    build_language_model,
)
from regard.models.layer_states import LAYERS, layer_states

VOCAB_SIZE = 11
KINDS = ("vanilla-both", "gru-one", "lstm-both", "convolution", "transformer", "bert", "albert")


@pytest.fixture(params=KINDS)
def encoder(request, tiny_token_encoders):
    torch.manual_seed(3)
    return build_encoder(tiny_token_encoders[request.param], TextSpec(VOCAB_SIZE)).eval()


def test_every_supported_encoder_is_tested(tiny_token_encoders):
    tested = {
        type(build_encoder(tiny_token_encoders[kind], TextSpec(VOCAB_SIZE))) for kind in KINDS
    }
    assert tested == set(LAYERS)


def test_last_layer_equals_the_memory(encoder, sentences):
    layers = layer_states(encoder, sentences.source, sentences.mask)
    memory = encoder(sentences.source, sentences.mask)
    assert len(layers) == 3  # embeddings and two layers
    real = sentences.mask
    torch.testing.assert_close(layers[-1][real], memory.states[real])


def test_layers_do_not_depend_on_the_batch(encoder, sentences):
    together = layer_states(encoder, sentences.source, sentences.mask)
    for row, length in enumerate(sentences.lengths):
        alone = layer_states(encoder, *sentences.alone(row))
        for whole, own in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[row, :length], own[0])


def test_layer_states_do_not_change_encoder_or_random_state(encoder, sentences):
    before = torch.get_rng_state()
    expected = encoder(sentences.source, sentences.mask).states
    layer_states(encoder, sentences.source, sentences.mask)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(encoder(sentences.source, sentences.mask).states, expected)
    assert not any(module._forward_hooks for module in encoder.modules())


def test_layers_of_a_reversed_source_are_in_source_order(sentences):
    config = RnnEncoderConfig(embedding_dim=4, dim=3, num_layers=2, is_reversed=True)
    encoder = build_encoder(config, TextSpec(VOCAB_SIZE)).eval()
    first, *_, last = layer_states(encoder, sentences.source, sentences.mask)
    real = sentences.mask
    torch.testing.assert_close(first[real], encoder.embedding(sentences.source)[real])
    torch.testing.assert_close(last[real], encoder(sentences.source, sentences.mask).states[real])


def test_layers_are_those_before_pooling(sentences):
    config = TransformerEncoderConfig(
        dim=4, num_layers=2, num_heads=2, feed_forward_dim=5, dropout=0.0
    )
    torch.manual_seed(1)
    whole = build_encoder(config, TextSpec(VOCAB_SIZE)).eval()
    pooled = build_encoder(replace(config, pooling=2), TextSpec(VOCAB_SIZE)).eval()
    pooled.load_state_dict(whole.state_dict())
    found = layer_states(pooled, sentences.source, sentences.mask)
    torch.testing.assert_close(found[-1], whole(sentences.source, sentences.mask).states)


def test_layers_are_those_before_the_bottleneck(sentences):
    config = BottleneckEncoderConfig(encoder=RnnEncoderConfig(embedding_dim=4, dim=3, num_layers=2))
    narrow = build_encoder(config, TextSpec(VOCAB_SIZE)).eval()
    found = layer_states(narrow, sentences.source, sentences.mask)
    expected = layer_states(narrow.encoder, sentences.source, sentences.mask)
    torch.testing.assert_close(found, expected)


def test_bottleneck_with_an_unsupported_encoder_is_an_error(images, image_shape):
    config = BottleneckEncoderConfig(encoder=ResnetEncoderConfig(widths=[4], blocks=[1]))
    encoder = build_encoder(config, ImageSpec(*image_shape)).eval()
    with pytest.raises(ConfigError, match="this run has the encoder ResnetEncoder"):
        layer_states(encoder, images.source, images.mask)


def test_unsupported_encoder_is_an_error(tiny_image_encoders, image_shape, images):
    encoder = build_encoder(tiny_image_encoders["resnet-small"], ImageSpec(*image_shape)).eval()
    with pytest.raises(ConfigError, match="Single layers.*ResnetEncoder"):
        layer_states(encoder, images.source, images.mask)


@pytest.mark.parametrize(
    "config",
    [
        RnnLanguageConfig(embedding_dim=4, dim=4, num_layers=2),
        TransformerLanguageConfig(dim=4, num_layers=2, num_heads=2, feed_forward_dim=5),
    ],
)
def test_summary_of_a_language_model_is_the_last_real_state(config, sentences):
    model = build_language_model(config, vocab_size=VOCAB_SIZE).eval()
    reader = LanguageModelEncoder(model).eval()
    memory = reader(sentences.source, sentences.mask)
    assert memory.summary.shape == (3, reader.memory_dim)
    torch.testing.assert_close(model.output(memory.states), model(sentences.source).logits)
    for row, length in enumerate(sentences.lengths):
        alone = reader(*sentences.alone(row))
        torch.testing.assert_close(memory.summary[row], alone.states[0, length - 1])
