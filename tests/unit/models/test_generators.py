"""Generators: every memory becomes an image of the size that was asked for."""

import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.encoders.bottleneck import memory_from_latents
from regard.models.generators import (
    GENERATORS,
    AttentionGenerator,
    AttentionGeneratorConfig,
    ConvolutionGenerator,
    ConvolutionGeneratorConfig,
)
from regard.models.interfaces import Memory

DIM = 6
TINY = {
    "convolution": ConvolutionGeneratorConfig(widths=(5, 4, 3), blocks=(1, 1, 2)),
    "attention": AttentionGeneratorConfig(
        patch=2, dim=8, num_layers=2, num_heads=2, feed_forward_dim=5, dropout=0.0
    ),
}
MEMORIES = {"code": None, "grid": (3, 2), "finer grid": (6, 5), "video": (2, 3, 2)}


def memory_of(layout, num=3):
    size = torch.Size(layout or (1,)).numel()
    states = torch.randn(num, size, DIM, generator=torch.Generator().manual_seed(1))
    return memory_from_latents(states, layout=layout)


def build(kind, layout, shape=(3, 10, 8)):
    torch.manual_seed(0)
    config = TINY[kind]
    model = GENERATORS[type(config)](config, memory_dim=DIM, layout=layout, shape=shape)
    # What begins with nothing would hide mistakes.
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.3)
    return model.eval()


def test_every_generator_is_tested():
    assert {type(config) for config in TINY.values()} == set(GENERATORS)


@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("layout", MEMORIES.values(), ids=MEMORIES)
def test_image_has_the_size_and_every_parameter_a_gradient(kind, layout):
    model = build(kind, layout)
    image = model(memory_of(layout))
    assert image.shape == (3, 3, 10, 8)
    image.square().sum().backward()
    # With one latent the attention weights are constant, so queries and keys get no gradient.
    idle = () if layout else ("cross_attention.query", "cross_attention.key", "cross_residual")
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.any() or any(part in name for part in idle), name


@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("layout", MEMORIES.values(), ids=MEMORIES)
def test_batched_equals_alone(kind, layout):
    model, memory = build(kind, layout), memory_of(layout)
    together = model(memory)
    for row in range(3):
        alone = model(memory_from_latents(memory.states[row : row + 1], layout=layout))
        torch.testing.assert_close(alone[0], together[row])


@pytest.mark.parametrize("size", [(7, 7), (28, 28), (9, 13), (1, 1)])
def test_sides_need_not_be_powers_of_two(size):
    model = build("convolution", None, shape=(1, *size))
    assert model(memory_of(None)).shape == (3, 1, *size)


def test_convolutions_use_the_last_frame_of_a_video():
    model, memory = build("convolution", (2, 3, 2)), memory_of((2, 3, 2))
    changed = memory.states.clone()
    changed[:, :6] += 1.0
    torch.testing.assert_close(model(memory_from_latents(changed, layout=(2, 3, 2))), model(memory))
    changed[:, 6:] += 1.0
    assert not torch.allclose(model(memory_from_latents(changed, layout=(2, 3, 2))), model(memory))


def test_patches_attend_to_all_frames_and_distinguish_them():
    model, memory = build("attention", (2, 3, 2)), memory_of((2, 3, 2))
    swapped = memory.states.roll(6, dims=1)
    assert not torch.allclose(model(memory_from_latents(swapped, layout=(2, 3, 2))), model(memory))


def test_patches_do_not_attend_to_padding():
    model, memory = build("attention", None), memory_of(None)
    states = torch.cat([memory.states, torch.full((3, 2, DIM), 9.0)], dim=1)
    mask = torch.tensor([True, False, False]).expand(3, 3)
    padded = Memory(states, mask=mask, summary=memory.summary)
    torch.testing.assert_close(model(padded), model(memory))


def test_patches_are_at_their_grid_positions():
    """Pixels are put together again in the order in which a convolution would cut them."""
    model = build("attention", None)
    with torch.no_grad():
        model.output.weight.zero_()
        # Each value of a patch encodes its channel, row and column.
        model.output.bias.copy_(torch.arange(12))
    image = model(memory_of(None))[0]
    assert image[:, :2, :2].flatten().tolist() == list(range(12))
    torch.testing.assert_close(image[:, 2:4, 4:6], image[:, :2, :2])


def test_initial_residual_blocks_are_the_identity():
    torch.manual_seed(0)
    model = ConvolutionGenerator(
        TINY["convolution"], memory_dim=DIM, layout=(3, 2), shape=(3, 10, 8)
    )
    assert not model(memory_of((3, 2))).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": (), "blocks": ()}, "`widths` must have at least one stage"),
        ({"widths": (4, 4), "blocks": (1,)}, "`blocks` must have a number for each of the 2"),
        ({"widths": (0,), "blocks": (1,)}, r"`widths\[0\]` must be at least 1, but is 0"),
    ],
)
def test_invalid_stages_are_an_error(settings, message):
    with pytest.raises(ConfigError, match=message):
        ConvolutionGeneratorConfig(**settings)


def test_patch_must_divide_the_image():
    with pytest.raises(ConfigError, match=r"`generator.patch` must divide.*10 x 8.*but is 4"):
        AttentionGenerator(
            AttentionGeneratorConfig(patch=4), memory_dim=DIM, layout=None, shape=(3, 10, 8)
        )
