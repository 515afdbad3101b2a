import pytest
import torch

from regard.attention.recording import record
from regard.core.specs import ImageSpec
from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 5, "dropout": 0.0}
SHAPE = (3, 7, 5)
MASK = torch.ones(2, 1).bool()


def build_encoder(**changes):
    torch.manual_seed(0)
    grid = ResnetEncoderConfig(widths=(4, 6), blocks=(1, 1))
    return HybridEncoder(
        HybridEncoderConfig(**{**SIZES, "grid": grid, **changes}), ImageSpec(*SHAPE)
    ).eval()


@pytest.fixture
def values():
    return torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(1))


def test_states_are_the_cells_of_the_grid(values):
    encoder = build_encoder()
    memory, grid = encoder(values, MASK), encoder.grid(values, MASK)
    assert memory.layout == grid.layout == (4, 3)
    assert memory.states.shape == (2, 12, 8)
    assert memory.mask.shape == (2, 12) and memory.mask.all()
    assert torch.allclose(memory.summary, memory.states.mean(1), atol=1e-6)


def test_without_attention_a_state_is_its_cell_plus_its_position(values):
    encoder = build_encoder(num_layers=1)
    block = encoder.blocks[0]
    for layer in (block.self_attention.output_map, *block.feed_forward.children()):
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.zeros_(layer.weight)
            torch.nn.init.zeros_(layer.bias)
    cells = encoder.cell_map(encoder.grid(values, MASK).states)
    expected = encoder.norm(cells + encoder.positions.embed(torch.arange(12)))
    assert torch.allclose(encoder(values, MASK).states, expected, atol=1e-5)


def test_positions_distinguish_equal_cells():
    encoder = build_encoder()
    torch.nn.init.zeros_(encoder.cell_map.weight)
    states = encoder(torch.ones(2, *SHAPE), MASK).states[0]
    assert torch.cdist(states, states).add(torch.eye(12)).min() > 1e-3


def test_cells_attend_to_each_other(values):
    encoder = build_encoder()
    with record(encoder, is_self=True) as maps:
        encoder(values, MASK)
    assert maps.stack_self().shape == (2, 2, 2, 12, 12)


@pytest.mark.parametrize("stem", ["small", "medium", "large"])
@pytest.mark.parametrize("size", [(16, 16), (17, 9), (5, 30)])
def test_layout_is_known_without_an_image(stem, size):
    config = ResnetEncoderConfig(stem=stem, widths=(2, 2, 2), blocks=(1, 1, 1))
    encoder = ResnetEncoder(config, ImageSpec(1, *size)).eval()
    assert encoder.layout == encoder(torch.zeros(1, 1, *size), MASK[:1]).layout
