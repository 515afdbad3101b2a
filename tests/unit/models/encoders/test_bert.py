import dataclasses

import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.models.encoders.bert import BertEncoder, BertEncoderConfig, segment

TINY = BertEncoderConfig(
    dim=8, num_layers=2, num_heads=2, feed_forward_dim=12, max_length=9, dropout=0.0
)
START, END = 2, 3
PAIR = torch.tensor([[START, 5, 6, END, 7, END]])


def build(**changes):
    torch.manual_seed(0)
    return BertEncoder(dataclasses.replace(TINY, **changes), TextSpec(11)).eval()


def read(encoder, ids):
    return encoder(ids, torch.ones_like(ids, dtype=torch.bool)).states


def test_separator_ends_its_own_segment():
    assert segment(PAIR, END).tolist() == [[0, 0, 0, 0, 1, 1]]


def test_second_text_has_the_second_segment():
    encoder = build()
    plain = encoder.embedding(PAIR) + encoder.positions.embedding.weight[:6]
    difference = encoder.embed(PAIR) - plain
    first, second = encoder.segment_embedding.weight
    assert torch.allclose(difference[0, :4], first.expand(4, -1), atol=1e-6)
    assert torch.allclose(difference[0, 4:], second.expand(2, -1), atol=1e-6)


def test_last_segment_extends_to_the_end():
    encoder, three = build(), torch.tensor([[5, END, 6, END, 7, END]])
    assert (segment(three, END) == 2).any()
    assert read(encoder, three).isfinite().all()


def test_separator_is_a_setting():
    ids = torch.tensor([[5, 6, 7]])
    encoder = build(separator=5)
    assert not torch.allclose(read(encoder, ids), read(build(), ids))


def test_without_segments_there_is_no_segment_embedding():
    encoder = build(num_segments=0)
    assert encoder.segment_embedding is None
    plain = encoder.embedding(PAIR) + encoder.positions.embedding.weight[:6]
    assert torch.equal(encoder.embed(PAIR), plain)


def test_padding_has_no_effect():
    encoder = build()
    padded = torch.cat([PAIR, torch.zeros(1, 3, dtype=torch.long)], dim=1)
    mask = torch.arange(9)[None] < 6
    assert torch.allclose(encoder(padded, mask).states[:, :6], read(encoder, PAIR), atol=1e-6)


def test_every_position_attends_to_every_other():
    encoder, other = build(), PAIR.clone()
    other[0, 4] = 8
    changed = (read(encoder, PAIR) - read(encoder, other)).abs().amax(-1)
    assert (changed > 1e-4).all()


def test_text_longer_than_the_learned_positions_is_an_error():
    with pytest.raises(ConfigError, match=r"^`max_length` must be at least .+ \(10 tokens\)"):
        read(build(), torch.ones(1, 10, dtype=torch.long))


@pytest.mark.parametrize("name", ["num_segments", "separator"])
def test_counts_are_not_negative(name):
    with pytest.raises(ConfigError, match=rf"^`{name}` must be at least 0, but is -1\.$"):
        BertEncoderConfig(**{name: -1})


def test_epsilon_has_limits():
    with pytest.raises(ConfigError, match=r"^`norm_epsilon` must be between 0\.0 and 0\.1, but is"):
        BertEncoderConfig(norm_epsilon=1.0)
