import pytest
import torch

from regard.studies.reproduce.neurons.shifted_images import (
    ENCODERS,
    MAX_SHIFT,
    NOISE,
    SHAPES,
    SIDE,
    ImageClassifier,
    feature_maps,
    sample_shapes,
    shift_all_ways,
)


@pytest.fixture
def shapes():
    return sample_shapes(50, torch.Generator().manual_seed(1))


def test_images_have_every_shape(shapes):
    images, labels = shapes
    assert images.shape == (50, 1, SIDE, SIDE)
    assert set(labels.tolist()) == set(range(len(SHAPES)))


def test_a_shape_stays_inside_when_it_is_shifted(shapes):
    images, _ = shapes
    is_shape = images[:, 0] > 5 * NOISE
    rows = is_shape.any(2).any(0).nonzero()
    assert MAX_SHIFT <= rows.min() and rows.max() < SIDE - MAX_SHIFT


def test_shifting_back_restores_the_image(shapes):
    up, down, left, right = shift_all_ways(shapes[0], 3)
    assert torch.equal(up.roll(3, 2), shapes[0]) and torch.equal(down.roll(-3, 2), shapes[0])
    assert torch.equal(left.roll(3, 3), shapes[0]) and torch.equal(right.roll(-3, 3), shapes[0])


def test_random_shifts_move_the_shapes():
    images, _ = sample_shapes(200, torch.Generator().manual_seed(1), max_shift=MAX_SHIFT)
    assert (images[:, 0, :MAX_SHIFT] > 5 * NOISE).any()


def test_convolution_of_the_shifted_image_is_the_shifted_convolution(shapes):
    maps = feature_maps(shapes[0][:1], seed=1)
    inner = slice(MAX_SHIFT + 1, SIDE - 1)
    moved = maps["convolution"].roll(MAX_SHIFT, dims=1)
    assert torch.equal(moved[1:-1, inner], maps["convolution of it"][1:-1, inner])


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_classifies(name, shapes):
    torch.manual_seed(0)
    assert ImageClassifier(ENCODERS[name])(shapes[0]).shape == (50, len(SHAPES))
