"""Images in the form of others: as Pillow does it, and named."""

import numpy as np
import pytest
import torch
from PIL import Image

from regard.core.specs import ImageSpec, VideoSpec
from regard.data.image.variants import bring_to, name_change


@pytest.mark.parametrize("size", [7, 12, 24])
def test_sizes_change_as_with_pillow(size):
    # Far from black and white, which Pillow does not leave between rows and columns.
    pixels = np.random.default_rng(1).integers(90, 170, (12, 12), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC)
    found = 255 * bring_to(torch.from_numpy(pixels)[None, None] / 255, (1, size, size))
    # Pillow rounds after the rows and again after the columns.
    assert np.abs(found[0, 0].numpy() - np.asarray(image)).max() <= 1.01


def test_grey_is_repeated():
    grey = torch.rand(2, 1, 4, 4)
    found = bring_to(grey, (3, 4, 4))
    assert all(torch.equal(found[:, channel], grey[:, 0]) for channel in range(3))


def test_colour_becomes_grey_as_the_reader_makes_it():
    pixels = np.random.default_rng(1).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    found = bring_to(torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255, (1, 5, 5))
    expected = np.asarray(Image.fromarray(pixels).convert("L"))
    assert np.abs(255 * found[0, 0].numpy() - expected).max() <= 1


def test_video_is_its_last_frame():
    video = torch.rand(2, 3, 1, 4, 4)
    assert torch.equal(bring_to(video, (1, 4, 4)), video[:, -1])


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
def test_what_is_done_has_a_name(source, target, name):
    assert name_change(source, ImageSpec(*target)) == name
