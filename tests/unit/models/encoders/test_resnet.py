import os
import subprocess
import sys

import pytest
import torch
from torch.nn.functional import batch_norm, conv2d

from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec
from regard.models.encoders.resnet import (
    MIN_STRIDED_WIDTH,
    PlainBlock,
    ResidualBlock,
    ResnetEncoder,
    ResnetEncoderConfig,
)

SHAPE = (3, 8, 5)
MASK = torch.ones(4, 1).bool()


def build_encoder(**changes):
    torch.manual_seed(0)
    settings = {"widths": (4, 6), "blocks": (1, 2), **changes}
    return ResnetEncoder(ResnetEncoderConfig(**settings), ImageSpec(*SHAPE)).eval()


@pytest.fixture
def values():
    return torch.randn(4, *SHAPE, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("stem", "layout"),
    [("small", (4, 3)), ("medium", (2, 2)), ("large", (1, 1))],
    ids=["small", "medium", "large"],
)
def test_states_are_the_last_grid_row_by_row(values, stem, layout):
    encoder = build_encoder(stem=stem)
    memory = encoder(values, MASK)
    # Equal to the last bit in the memory format of the encoder only.
    grid = encoder.stem(values.contiguous(memory_format=torch.channels_last))
    for block in encoder.blocks:
        grid = block(grid)
    assert memory.layout == layout == tuple(grid.shape[2:])
    assert memory.states.shape == (4, layout[0] * layout[1], 6)
    assert memory.mask.shape == memory.states.shape[:2] and memory.mask.all()
    for row in range(layout[0]):
        for column in range(layout[1]):
            state = memory.states[:, row * layout[1] + column]
            assert torch.equal(state, grid[:, :, row, column])
    assert torch.allclose(memory.summary, memory.states.mean(1), atol=1e-6)


@pytest.mark.parametrize(("before", "stride"), [(4, 1), (3, 1), (4, 2)])
def test_block_adds_its_output_to_its_input(before, stride):
    torch.manual_seed(0)
    block, grid = ResidualBlock(before, 4, stride=stride).train(), torch.randn(2, before, 6, 4)

    def norm(found):
        return batch_norm(found, None, None, training=True)

    first, second = block.inner[0].weight, block.inner[3].weight
    hidden = norm(conv2d(grid, first, stride=stride, padding=1)).relu()
    kept = grid
    if before != 4 or stride != 1:
        kept = norm(conv2d(grid, block.shortcut[0].weight, stride=stride))
    expected = (norm(conv2d(hidden, second, padding=1)) + kept).relu()
    assert torch.allclose(block(grid), expected, atol=1e-5)


@pytest.mark.parametrize("before", [1, 3, 6, 8, 15, 16])
def test_strided_block_has_the_gradients_of_a_strided_convolution(before):
    torch.manual_seed(0)
    block = ResidualBlock(before, 8, stride=2).train()
    grid = torch.randn(2, before, 9, 12).to(memory_format=torch.channels_last).requires_grad_()
    block(grid).square().sum().backward()

    # In float64 torch computes convolutions without oneDNN.
    weight = block.shortcut[0].weight.detach().double().requires_grad_()
    precise = grid.detach().double().requires_grad_()
    inner = block.inner.double()
    kept = batch_norm(conv2d(precise, weight, stride=2), None, None, training=True)
    (inner(precise) + kept).relu().square().sum().backward()
    assert torch.allclose(block.shortcut[0].weight.grad.double(), weight.grad, atol=1e-4)
    assert torch.allclose(grid.grad.double(), precise.grad, atol=1e-4)


TRAIN_NARROW_BLOCK = """
import torch
from regard.models.encoders import resnet

resnet.MIN_STRIDED_WIDTH = {min_width}
block = resnet.ResidualBlock(4, 8, stride=2)
for _ in range(20):
    grid = torch.randn(32, 4, 32, 32).contiguous(memory_format=torch.channels_last)
    block(grid).sum().backward()
"""


def has_trained_narrow_block(min_width):
    """Return whether training in another process ends without a crash or an endless loop."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_CHECK_": "3"}
    command = [sys.executable, "-c", TRAIN_NARROW_BLOCK.format(min_width=min_width)]
    try:
        return not subprocess.run(command, env=environment, timeout=60, check=False).returncode
    except subprocess.TimeoutExpired:
        return False


def test_training_of_a_narrow_block_does_not_corrupt_memory():
    assert has_trained_narrow_block(MIN_STRIDED_WIDTH)
    if has_trained_narrow_block(0):
        pytest.skip("Strided 1 x 1 convolutions of oneDNN stay in bounds on this processor.")


def test_plain_block_does_not_add_its_input():
    torch.manual_seed(0)
    residual, grid = ResidualBlock(4, 4, stride=1).eval(), torch.randn(2, 4, 6, 4)
    plain = PlainBlock(4, 4, stride=1).eval()
    plain.inner.load_state_dict(residual.inner.state_dict())
    assert torch.allclose((plain.inner(grid) + grid).relu(), residual(grid))
    assert torch.equal(plain(grid), plain.inner(grid).relu())


def test_plain_network_has_no_shortcut():
    plain, residual = build_encoder(is_residual=False), build_encoder()
    kept = [name for name in residual.state_dict() if "shortcut" not in name]
    assert list(plain.state_dict()) == kept


def test_in_evaluation_states_do_not_depend_on_the_batch(values):
    encoder = build_encoder().train()
    for _ in range(3):
        encoder(values + 1, MASK)
    encoder.eval()
    together = encoder(values, MASK).states
    for row in range(4):
        alone = encoder(values[row : row + 1], MASK[:1]).states
        assert torch.allclose(alone, together[row : row + 1], atol=1e-5)


def test_weights_have_kaiming_initialisation():
    encoder = build_encoder(widths=(64,), blocks=(1,))
    weight = encoder.blocks[0].inner[0].weight  # 9 x 64 inputs
    assert weight.std().item() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.05)
    assert (encoder.blocks[0].inner[1].weight == 1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": (), "blocks": ()}, "`widths` must have at least one stage, but is empty."),
        (
            {"widths": (4, 6), "blocks": (1,)},
            "`blocks` must have a number for each of the 2 `widths`, but has 1.",
        ),
        ({"widths": (4, 0), "blocks": (1, 1)}, r"`widths\[1\]` must be at least 1, but is 0"),
        ({"widths": (4,), "blocks": (0,)}, r"`blocks\[0\]` must be at least 1, but is 0"),
    ],
    ids=["no-stage", "other-number", "no-width", "no-block"],
)
def test_stages_must_have_widths_and_blocks(settings, message):
    with pytest.raises(ConfigError, match=message):
        ResnetEncoderConfig(**settings)
