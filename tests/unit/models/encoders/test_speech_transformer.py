import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec
from regard.models.encoders.speech_transformer import SpeechEncoder, SpeechEncoderConfig

SIZES = {"dim": 8, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 5, "dropout": 0.0}


def build_encoder(**changes):
    torch.manual_seed(0)
    return SpeechEncoder(
        SpeechEncoderConfig(channels=3, **{**SIZES, **changes}), AudioSpec(5)
    ).eval()


def test_memory_has_a_quarter_of_the_frames(recordings):
    memory = build_encoder()(recordings.source, recordings.mask)
    assert memory.states.shape == (3, 6, 8)
    assert memory.mask.sum(1).tolist() == [6, 3, 4]


def test_without_attention_a_state_depends_on_its_frames_only(recordings):
    encoder = build_encoder(positions="none")
    torch.nn.init.zeros_(encoder.blocks[0].self_attention.output_map.weight)
    before = encoder(recordings.source, recordings.mask).states
    changed = recordings.source.clone()
    changed[0, 8] += 1.0
    differs = (encoder(changed, recordings.mask).states - before).abs().sum(-1) > 1e-6
    assert differs[0].tolist() == [False, False, True, False, False, False]
    assert not differs[1:].any()


def test_memory_positions_map_frames_to_states(recordings):
    groups = build_encoder().memory_positions(recordings.source, recordings.mask)
    assert groups[0].tolist() == [frame // 4 for frame in range(23)]


def test_number_of_channels_must_be_positive():
    with pytest.raises(ConfigError, match="`channels` must be at least 1, but is 0"):
        SpeechEncoderConfig(channels=0)
