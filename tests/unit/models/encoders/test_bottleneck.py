"""Bottleneck encoders: the memory contains the latents only."""

import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, TextSpec
from regard.models.bottlenecks import PlainBottleneckConfig, VariationalBottleneckConfig
from regard.models.build import ModelConfig
from regard.models.encoders import build_encoder, max_tokens
from regard.models.encoders.bottleneck import BottleneckEncoderConfig, memory_from_latents
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig

TEXT = TextSpec(11)
RNN = RnnEncoderConfig(cell="lstm", is_bidirectional=True, embedding_dim=4, dim=3)


def narrow(of, encoder=RNN, bottleneck=None):
    bottleneck = bottleneck or VariationalBottleneckConfig(dim=2)
    return BottleneckEncoderConfig(encoder=encoder, bottleneck=bottleneck, of=of)


@pytest.fixture
def build_narrow():
    def build_seeded(config, spec=TEXT):
        torch.manual_seed(0)
        return build_encoder(config, spec).eval()

    return build_seeded


def test_summary_gives_one_latent(build_narrow, sentences):
    encoder = build_narrow(narrow("summary"))
    memory = encoder(sentences.source, sentences.mask)
    expected, _ = encoder.bottleneck(encoder.encoder(sentences.source, sentences.mask).summary)
    assert torch.equal(memory.summary, expected)
    assert torch.equal(memory.states, expected[:, None])
    assert memory.mask.shape == (3, 1) and memory.mask.all()
    assert encoder.memory_dim == 2


def test_every_state_gives_a_latent(build_narrow, sentences):
    encoder = build_narrow(narrow("states"))
    memory = encoder(sentences.source, sentences.mask)
    expected, _ = encoder.bottleneck(encoder.encoder(sentences.source, sentences.mask).states)
    assert torch.equal(memory.states, expected)
    assert torch.equal(memory.mask, sentences.mask)


@pytest.mark.parametrize("of", ["summary", "states"])
def test_memory_contains_the_latents_only(build_narrow, sentences, of):
    memory = build_narrow(narrow(of))(sentences.source, sentences.mask)
    assert memory.final is None and memory.tokens is None and memory.values is None


def test_latents_of_cells_keep_the_layout(build_narrow, images, image_shape):
    config = narrow("states", ResnetEncoderConfig(widths=(3, 4), blocks=(1, 1)))
    memory = build_narrow(config, ImageSpec(*image_shape))(images.source, images.mask)
    assert memory.layout == (4, 3)
    assert memory.states.shape == (3, 12, 2)


def test_loss_of_a_source_does_not_depend_on_padding(build_narrow, sentences):
    encoder = build_narrow(narrow("states"))
    cost = encoder(sentences.source, sentences.mask).losses["kl"]
    assert cost.shape == (3,)
    for row in range(3):
        alone = encoder(*sentences.alone(row)).losses["kl"]
        assert torch.allclose(alone, cost[row : row + 1], atol=1e-5)
    assert torch.allclose(encoder(*sentences.padded(4)).losses["kl"], cost, atol=1e-5)


def test_model_returns_the_losses_of_the_memory(build, sentences):
    model = build(ModelConfig(encoder=narrow("summary")))
    memory = model.encode(sentences.source, sentences.mask)
    for teacher_forcing in (1.0, 0.5):
        output = model(
            sentences.source, sentences.mask, sentences.targets, teacher_forcing=teacher_forcing
        )
        assert torch.equal(output.losses["kl"], memory.losses["kl"])


def test_memory_from_latents_equals_the_memory(build_narrow, sentences):
    memory = build_narrow(narrow("summary"))(sentences.source, sentences.mask)
    again = memory_from_latents(memory.states.flatten(1))
    for name in ("states", "mask", "summary"):
        assert torch.equal(getattr(again, name), getattr(memory, name))


def test_all_tokens_map_to_the_single_latent(build_narrow, sentences):
    inputs = sentences.source, sentences.mask
    assert not build_narrow(narrow("summary")).memory_positions(*inputs).any()
    assert build_narrow(narrow("states")).memory_positions(*inputs) is None


def test_source_embedding_is_shared_through_the_bottleneck(build):
    model = build(
        ModelConfig(
            encoder=narrow("summary", TransformerEncoderConfig(dim=256, num_heads=2)), ties="output"
        )
    )
    assert model.encoder.encoder.embedding.weight is not model.decoder.embedding.weight
    model = build(
        ModelConfig(
            encoder=narrow("summary", TransformerEncoderConfig(dim=256, num_heads=2)), ties="all"
        )
    )
    assert model.encoder.encoder.embedding.weight is model.decoder.embedding.weight


def test_maximum_length_is_that_of_the_inner_encoder():
    inner = TransformerEncoderConfig(positions="learned", max_length=17)
    assert max_tokens(narrow("states", inner)) == 17


def test_inner_encoder_of_another_modality_is_an_error():
    with pytest.raises(
        ConfigError, match=r"`encoder\.encoder\.kind` 'rnn' reads text, but the source is images"
    ):
        build_encoder(
            narrow("summary", bottleneck=PlainBottleneckConfig(dim=2)), ImageSpec(3, 8, 8)
        )
