from functools import partial

import numpy as np
import pytest
from PIL import Image

from regard.data.decoding import read_files
from regard.data.image.resize import FITS, Frame, read_image, resize, to_pixels


@pytest.fixture
def photo():
    """A smooth image of 40 × 20 pixels: left dark, right bright, its red end cut off by a crop."""
    rows, columns = np.mgrid[0:20, 0:40]
    red = np.where(columns < 10, 200, 20)
    return Image.fromarray(np.dstack([red, 6 * columns, 12 * rows]).astype(np.uint8))


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("shape", [(40, 20), (20, 40), (7, 7), (1, 300), (8, 8)])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_image_gets_the_size_of_the_frame(fit, shape, channels):
    found = to_pixels(Image.new("RGB", shape, (90, 90, 90)), Frame(8, channels, fit))
    assert found.shape == (channels, 8, 8) and found.dtype == np.uint8
    assert 90 in found and found.flags.c_contiguous


def test_crop_is_the_middle_of_the_resized_image(photo):
    found = np.asarray(resize(photo, Frame(10, fit="crop")), float)
    whole = np.asarray(photo.resize((20, 10), Image.Resampling.BICUBIC), float)[:, 5:15]
    # At the edges, the second method mixes in pixels that the first has cropped.
    assert np.abs(found - whole)[:, 1:-1].max() <= 1


def test_pad_centres_the_image_on_grey(photo):
    found = np.asarray(resize(photo, Frame(20, fit="pad")))
    assert (found[:5] == 128).all() and (found[15:] == 128).all()
    small = np.asarray(photo.resize((20, 10), Image.Resampling.BICUBIC))
    assert (found[5:15] == small).all()


def test_squash_keeps_all_of_the_image(photo):
    found = np.asarray(resize(photo, Frame(10, fit="squash")))
    assert found[5, 0, 0] > 150 and found[5, -1, 1] > 200


def test_resizing_is_antialiased():
    """Without antialiasing, a fine pattern would become white, black or stripes."""
    fine = np.indices((64, 64)).sum(0) % 2 * 255
    found = to_pixels(Image.fromarray(fine.astype(np.uint8)), Frame(8, 1))
    assert np.abs(found.astype(int) - 128).max() <= 8


@pytest.mark.parametrize("fit", FITS)
def test_image_of_the_right_size_is_unchanged(fit):
    values = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert (to_pixels(Image.fromarray(values), Frame(8, 3, fit)) == values.transpose(2, 0, 1)).all()


def test_grey_image_has_three_equal_channels_in_colour():
    values = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    assert (to_pixels(Image.fromarray(values), Frame(8, 3)) == values).all()


def test_unreadable_image_gives_an_error_message(tmp_path):
    Image.new("L", (4, 4), 100).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"bad")
    bad, good = read_files(
        [str(tmp_path / "bad.png"), str(tmp_path / "good.png")],
        partial(read_image, frame=Frame(4, 1)),
    )
    assert "bad.png is not an image" in bad
    assert (good == 100).all()
