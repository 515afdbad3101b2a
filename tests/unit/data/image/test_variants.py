"""Conversion of images, compared with Pillow, and its description."""

import numpy as np
import pytest
import torch
from PIL import Image

from regard.core.specs import ImageSpec, VideoSpec
from regard.data.image.variants import convert_images, describe_conversion


@pytest.mark.parametrize("size", [7, 12, 24])
def test_resizing_equals_that_of_pillow(size):
    # Far from black and white, which Pillow does not leave between rows and columns.
    pixels = np.random.default_rng(1).integers(90, 170, (12, 12), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC)
    found = 255 * convert_images(torch.from_numpy(pixels)[None, None] / 255, (1, size, size))
    # Pillow rounds after the rows and again after the columns.
    assert np.abs(found[0, 0].numpy() - np.asarray(image)).max() <= 1.01


def test_grey_is_repeated():
    grey = torch.rand(2, 1, 4, 4)
    found = convert_images(grey, (3, 4, 4))
    assert all(torch.equal(found[:, channel], grey[:, 0]) for channel in range(3))


def test_conversion_to_grey_equals_that_of_pillow():
    pixels = np.random.default_rng(1).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    found = convert_images(torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255, (1, 5, 5))
    expected = np.asarray(Image.fromarray(pixels).convert("L"))
    assert np.abs(255 * found[0, 0].numpy() - expected).max() <= 1


def test_video_is_converted_to_its_last_frame():
    video = torch.rand(2, 3, 1, 4, 4)
    assert torch.equal(convert_images(video, (1, 4, 4)), video[:, -1])


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        (ImageSpec(3, 8, 8), (3, 8, 8), ""),
        (ImageSpec(3, 4, 4), (3, 8, 8), "bicubic"),
        (ImageSpec(1, 8, 8), (3, 8, 8), "grey"),
        (VideoSpec(5, ImageSpec(3, 8, 8)), (3, 8, 8), "last frame"),
        (ImageSpec(1, 4, 4), (3, 8, 8), "bicubic+grey"),
    ],
)
def test_conversions_are_described(source, target, name):
    assert describe_conversion(source, ImageSpec(*target)) == name
