import dataclasses

import pytest
import torch

from regard.attention.positions import POSITIONS
from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.bert import AlbertEncoder, AlbertEncoderConfig
from regard.models.interfaces import masked_mean

TINY = AlbertEncoderConfig(
    embedding_dim=4,
    dim=8,
    num_layers=3,
    num_heads=2,
    feed_forward_dim=12,
    max_length=9,
    dropout=0.0,
)
IDS = torch.tensor([[2, 5, 6, 3, 7, 3]])
MASK = torch.ones_like(IDS, dtype=torch.bool)


def build(**changes):
    torch.manual_seed(0)
    return AlbertEncoder(dataclasses.replace(TINY, **changes), TextSpec(11)).eval()


def count(encoder):
    return sum(parameter.numel() for parameter in encoder.parameters())


def test_number_of_layers_does_not_change_the_parameters():
    assert count(build(num_layers=1)) == count(build(num_layers=9))
    assert len(build().state_dict()) == len(build(num_layers=9).state_dict())


def test_block_is_applied_once_per_layer():
    encoder = build()
    states = build(num_layers=1)(IDS, MASK).states
    for _ in range(2):
        states = encoder.blocks[0](states, mask=MASK[:, None])
    assert torch.allclose(encoder(IDS, MASK).states, states, atol=1e-6)


def test_embeddings_are_narrower_than_states():
    memory = build()(IDS, MASK)
    assert build().embedding.weight.shape == (11, 4)
    assert memory.states.shape == (1, 6, 8)
    assert torch.allclose(memory.summary, masked_mean(memory.states, MASK))


def test_segments_have_different_embeddings():
    encoder = build()
    with torch.no_grad():
        plain = encoder(IDS, MASK).states
        encoder.segment_embedding.weight[1, 0] += 1
    assert not torch.allclose(encoder(IDS, MASK).states, plain)
    assert build(num_segments=0).segment_embedding is None


@pytest.mark.parametrize("positions", POSITIONS)
def test_every_position_encoding_is_supported(positions):
    assert build(positions=positions)(IDS, MASK).states.isfinite().all()


def test_embedding_width_must_be_positive():
    with pytest.raises(ConfigError, match=r"`embedding_dim` must be at least 1, but is 0"):
        AlbertEncoderConfig(embedding_dim=0)
