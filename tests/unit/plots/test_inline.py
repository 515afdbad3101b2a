"""Figures below the cells of a notebook."""

import io

from PIL import Image

from regard.plots.curves import lines
from regard.plots.inline import DPI, show

FIGURE = lines({"loss": [(0.0, 1.0), (1.0, 0.5)]}, x_label="step", y_label="loss")


def test_a_figure_is_a_png_image_of_about_its_size():
    shown = show(FIGURE)
    with Image.open(io.BytesIO(shown._repr_png_())) as image:
        assert image.format == "PNG"
        width, _ = FIGURE.get_size_inches()
        assert 0.7 * width < image.width / DPI < 1.3 * width
        assert "Software" not in image.info


def test_equal_figures_are_equal_images():
    assert show(FIGURE)._repr_png_() == show(FIGURE)._repr_png_()


def test_the_text_names_the_size():
    assert repr(show(FIGURE)) == "InlineFigure(7.2 × 3.6 inches)"
