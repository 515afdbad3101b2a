import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.pixels import KEPT, check_image, fit


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1), (4, 6, 3)])
def test_grey_and_coloured_images_have_three_channels(shape):
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    found = check_image(image)
    assert found.shape == (4, 6, 3)
    assert (found.reshape(4, 6, 3)[..., 0] == image.reshape(4, 6, -1)[..., 0]).all()


@pytest.mark.parametrize("image", [np.zeros((4, 6)), np.zeros((0, 6), np.uint8), [[0.5]]])
def test_anything_but_bytes_is_refused(image):
    with pytest.raises(DataError, match="`image` must hold bytes of 0 to 255, but has the shape"):
        check_image(image)


@pytest.mark.parametrize("shape", [(4,), (4, 6, 4), (3, 4, 6), (1, 4, 6, 3)])
def test_misfit_axes_are_refused(shape):
    with pytest.raises(DataError, match="must have rows, columns and 1 or 3 channels, but has"):
        check_image(np.ones(shape, np.uint8))


def test_every_pixel_of_a_tiny_image_becomes_a_square():
    image = np.random.default_rng(0).integers(0, 256, (28, 20, 3), dtype=np.uint8)
    times = KEPT // 28
    assert (fit(image) == np.kron(image, np.ones((times, times, 1), np.uint8))).all()


@pytest.mark.parametrize("shape", [(96, 96, 3), (500, 333, 3), (100, 1000, 3), (1, 900, 3)])
def test_longest_side_of_others_is_that_of_a_drawing(shape):
    found = fit(np.full(shape, 77, np.uint8))
    assert max(found.shape) == KEPT
    assert found.shape[0] / found.shape[1] == pytest.approx(shape[0] / shape[1], abs=0.01)
    assert (found == 77).all()
