import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig

SIZES = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 5, "dropout": 0.0}
SHAPE = (3, 6, 4)


def build_encoder(shape=SHAPE, **changes):
    torch.manual_seed(0)
    return VitEncoder(
        VitEncoderConfig(**{"patch": 2, **SIZES, **changes}), ImageSpec(*shape)
    ).eval()


@pytest.fixture
def values():
    return torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(1))


MASK = torch.ones(2, 1).bool()


def test_states_are_the_patches_row_by_row(values):
    encoder = build_encoder(num_layers=1, summary="mean", positions="sincos2d")
    memory = encoder(values, MASK)
    assert memory.states.shape == (2, 6, 8)
    assert memory.layout == (3, 2)
    assert memory.mask.shape == (2, 6) and memory.mask.all()
    # Without attention, a state depends on its own patch only.
    torch.nn.init.zeros_(encoder.blocks[0].self_attention.output_map.weight)
    before = encoder(values, MASK).states
    changed = values.clone()
    changed[:, :, 2:4, 2:4] += 1.0  # the second row's second patch
    differs = (encoder(changed, MASK).states - before).abs().sum((0, 2)) > 1e-6
    assert differs.tolist() == [False, False, False, True, False, False]


def test_patches_are_a_linear_map_of_their_pixels(values):
    encoder = build_encoder()
    cut = values.unfold(2, 2, 2).unfold(3, 2, 2)  # channels, rows and columns of each patch last
    pixels = cut.permute(0, 2, 3, 1, 4, 5).flatten(3)
    weight = encoder.patch_map.weight.flatten(1)
    expected = pixels @ weight.T + encoder.patch_map.bias
    assert torch.allclose(encoder.patch_map(values).permute(0, 2, 3, 1), expected, atol=1e-6)


def test_class_token_is_the_summary_and_not_in_the_memory(values):
    memory = build_encoder(summary="class")(values, MASK)
    assert memory.states.shape == (2, 6, 8)
    assert not torch.allclose(memory.summary, memory.states.mean(1))


def test_mean_of_the_patches_is_the_summary(values):
    encoder = build_encoder(summary="mean")
    memory = encoder(values, MASK)
    assert encoder.class_token is None
    assert torch.allclose(memory.summary, memory.states.mean(1), atol=1e-6)


@pytest.mark.parametrize("positions", ["learned", "sincos2d"])
def test_positions_distinguish_equal_patches(positions):
    states = build_encoder(positions=positions)(torch.ones(2, *SHAPE), MASK).states[0]
    assert torch.cdist(states, states).add(torch.eye(6)).min() > 1e-3


def test_attention_is_recorded_over_the_class_token_and_all_patches(values):
    encoder = build_encoder()
    with record(encoder, is_self=True) as maps:
        recorded = encoder(values, MASK)
    assert maps.stack_self().shape == (2, 2, 2, 7, 7)
    assert torch.allclose(recorded.states, encoder(values, MASK).states, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 6, 5), (3, 5, 6)])
def test_patch_must_divide_the_image(shape):
    _, rows, columns = shape
    with pytest.raises(
        ConfigError,
        match=rf"^`patch` must divide both sides of the image \({rows} x {columns} pixels\), but "
        r"is 2\.$",
    ):
        build_encoder(shape)


def test_patch_size_must_be_positive():
    with pytest.raises(ConfigError, match="`patch` must be at least 1, but is 0"):
        VitEncoderConfig(patch=0)
