import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec
from regard.models.encoders.pyramidal_lstm import (
    PyramidalLstmEncoder,
    PyramidalLstmEncoderConfig,
    join_pairs,
)


def build_encoder(num_layers, num_mels=5):
    torch.manual_seed(0)
    return PyramidalLstmEncoder(
        PyramidalLstmEncoderConfig(dim=3, num_layers=num_layers), AudioSpec(num_mels)
    ).eval()


def test_neighbours_are_concatenated():
    states = torch.arange(5.0)[None, :, None]
    assert join_pairs(states).tolist() == [[[0, 1], [2, 3], [4, 0]]]


@pytest.mark.parametrize(
    ("num_layers", "lengths"), [(1, [23, 9, 14]), (2, [12, 5, 7]), (4, [3, 2, 2])]
)
def test_each_layer_but_the_first_halves_the_lengths(recordings, num_layers, lengths):
    memory = build_encoder(num_layers)(recordings.source, recordings.mask)
    assert memory.mask.sum(1).tolist() == lengths
    assert memory.states.shape == (3, lengths[0], 6)
    assert not memory.states[~memory.mask].any()
    assert len(memory.final) == num_layers


def run_both(block, inputs):
    """One direction after the other, by hand."""
    ahead, _ = block.forwards(inputs)
    back, _ = block.backwards(inputs.flip(1))
    return torch.cat([ahead, back.flip(1)], dim=-1)


def test_two_layers_are_two_lstms_over_pairs():
    encoder, frames = build_encoder(2), torch.randn(1, 7, 5)
    memory = encoder(frames, torch.ones(1, 7).bool())
    low = run_both(encoder.blocks[0], frames)
    pairs = torch.stack(
        [torch.cat([low[0, 2 * pair], low[0, 2 * pair + 1]]) for pair in range(3)]
        + [torch.cat([low[0, 6], torch.zeros(6)])]
    )
    high = run_both(encoder.blocks[1], pairs[None])
    assert torch.allclose(memory.states, high, atol=1e-6)
    assert torch.allclose(memory.summary, torch.cat([high[:, -1, :3], high[:, 0, 3:]], dim=1))


def test_memory_positions_map_frames_to_states(recordings):
    groups = build_encoder(3).memory_positions(recordings.source, recordings.mask)
    assert groups.shape == (3, 23)
    assert groups[0].tolist() == [frame // 4 for frame in range(23)]


def test_number_of_layers_must_be_positive():
    with pytest.raises(ConfigError, match="`num_layers` must be at least 1, but is 0"):
        PyramidalLstmEncoderConfig(num_layers=0)
