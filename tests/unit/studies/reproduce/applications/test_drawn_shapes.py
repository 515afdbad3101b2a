import numpy as np
import pytest

from regard.studies.reproduce.applications.drawn_shapes import ANOMALOUS, NORMAL, draw


@pytest.mark.parametrize("kind", NORMAL)
def test_shape_is_white_at_its_centre_and_black_outside(kind):
    image = draw(kind, 8, 6, radius=3)
    assert image.shape == (16, 16)
    assert image[6, 8] == 255 and image[15, 0] == 0


def test_area_of_a_circle():
    assert draw("circle", 8, 8, radius=4).sum() / 255 == pytest.approx(np.pi * 16, rel=0.05)


def test_all_shapes_differ():
    images = [draw(kind, 8, 8, radius=4).tobytes() for kind in (*NORMAL, *ANOMALOUS)]
    assert len(set(images)) == 5


def test_shift_of_the_centre_shifts_the_image():
    image, moved = (draw("square", x, 8, radius=3) for x in (7, 9))
    assert (np.roll(image, 2, axis=1) == moved).all()
