import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.convolutional import ConvolutionEncoder, ConvolutionEncoderConfig


def build_encoder(**changes):
    torch.manual_seed(0)
    sizes = {"embedding_dim": 4, "dim": 6, "num_layers": 2, "max_length": 12, "dropout": 0.0}
    return ConvolutionEncoder(ConvolutionEncoderConfig(**(sizes | changes)), TextSpec(11)).eval()


def read(encoder, sentences):
    return encoder(sentences.source, sentences.mask)


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_layers_are_gated_windows_beside_their_inputs(sentences, kernel):
    encoder = build_encoder(kernel=kernel)
    memory = read(encoder, sentences)
    radius = kernel // 2
    for row, length in enumerate(sentences.lengths):
        embedded = encoder.embedding(sentences.source[row, :length])
        embedded = embedded + encoder.positions.embedding.weight[:length]
        states = encoder.input_map(embedded)
        for block in encoder.blocks:
            ends = torch.zeros(radius, 6)
            wide = torch.cat([ends, states, ends])
            windows = [block(wide[None, i : i + kernel])[0, 0] for i in range(length)]
            states = (torch.stack(windows) + states) / 2**0.5
        states = encoder.output_map(states)
        assert torch.allclose(memory.states[row, :length], states, atol=1e-5)
        values = (states + embedded) / 2**0.5
        assert torch.allclose(memory.values[row, :length], values, atol=1e-5)
        assert torch.allclose(memory.summary[row], states.mean(0), atol=1e-5)


def test_padding_has_no_effect(sentences):
    encoder = build_encoder(kernel=5)
    # Tokens under the padding that would be seen if they were not zeroed.
    dirty = sentences.source.masked_fill(~sentences.mask, 9)
    memory, expected = encoder(dirty, sentences.mask), read(encoder, sentences)
    assert torch.equal(memory.states[sentences.mask], expected.states[sentences.mask])
    assert torch.equal(memory.summary, expected.summary)


@pytest.mark.parametrize(("num_layers", "radius"), [(1, 1), (2, 2), (3, 3)])
def test_receptive_field_grows_with_every_layer(num_layers, radius):
    encoder = build_encoder(num_layers=num_layers)
    source, mask = torch.full((1, 9), 5), torch.ones(1, 9).bool()
    changed = source.clone()
    changed[0, 4] = 6
    is_moved = (encoder(source, mask).states != encoder(changed, mask).states).any(-1)[0]
    assert is_moved.tolist() == [abs(position - 4) <= radius for position in range(9)]


def test_memory_has_mask_tokens_and_width(sentences):
    encoder = build_encoder()
    memory = read(encoder, sentences)
    assert torch.equal(memory.mask, sentences.mask)
    assert torch.equal(memory.tokens, sentences.source)
    assert memory.states.shape == memory.values.shape == (3, 7, encoder.memory_dim)


def test_kernel_must_be_odd():
    with pytest.raises(ConfigError, match=r"^`kernel` must be odd in an encoder, but is 4\.$"):
        ConvolutionEncoderConfig(kernel=4)


def test_source_longer_than_the_learned_positions_is_an_error(sentences):
    with pytest.raises(
        ConfigError, match=r"^`max_length` must be at least the length of the text \(7 tokens\) "
    ):
        read(build_encoder(max_length=6), sentences)


def test_dropout_is_active_in_training_only(sentences):
    encoder = build_encoder(dropout=0.5)
    assert torch.equal(read(encoder, sentences).states, read(encoder, sentences).states)
    encoder.train()
    assert not torch.equal(read(encoder, sentences).states, read(encoder, sentences).states)
