import numpy as np
import pytest

from regard.core.errors import DataError
from regard.core.terminal import clean
from regard.plots.inputs import (
    MAX_SIDE,
    check_image,
    check_weights,
    escape,
    find_vmax,
    label,
    resize_image,
)


def test_terminal_control_codes_are_replaced():
    assert "\x1b" not in clean("\x1b[2Jgone")


def test_line_breaks_become_spaces():
    assert clean("a\nb\tc") == "a b c"


def test_lone_surrogates_can_be_saved():
    assert clean("a\ud800").encode("utf-8").startswith(b"a")


@pytest.mark.parametrize("word", ["Grüße", "青い", "البيت", "👩‍🚀", "▁the"])
def test_ordinary_words_are_unchanged(word):
    assert clean(word) == word


def test_markup_is_escaped_with_its_quotes():
    assert escape('<a href="x">&\'') == "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"


def test_numbers_are_escaped_as_text():
    assert escape(3) == "3"


def test_short_words_are_not_truncated():
    assert label("Haus", 4) == "Haus"


def test_long_words_end_in_an_ellipsis():
    assert label("Donaudampfschiff", 6) == "Donau…"


def test_wide_characters_count_twice():
    assert label("青い家です", 5) == "青い…"


def test_lists_become_an_array():
    assert check_weights([[1, 0]], ["a"], ["x", "y"]).shape == (1, 2)


def test_weights_without_labels_are_refused():
    with pytest.raises(DataError, match="at least one target word .* there are 0 and 2"):
        check_weights(np.zeros((0, 2)), [], ["x", "y"])


def test_weights_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"\(1, 2\), but has the shape \(2, 1\)"):
        check_weights([[1], [0]], ["a"], ["x", "y"])


def test_non_finite_weights_are_refused():
    with pytest.raises(DataError, match="`weights` must be finite numbers"):
        check_weights([[float("nan")]], ["a"], ["x"])


def test_scale_ends_at_the_largest_weight():
    assert find_vmax(np.array([[0.1, 0.4]])) == 0.4


def test_scale_of_zeros_ends_at_one():
    assert find_vmax(np.zeros((1, 2))) == 1.0


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1), (4, 6, 3)])
def test_grey_and_coloured_images_have_three_channels(shape):
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    found = check_image(image)
    assert found.shape == (4, 6, 3)
    assert (found.reshape(4, 6, 3)[..., 0] == image.reshape(4, 6, -1)[..., 0]).all()


@pytest.mark.parametrize("image", [np.zeros((4, 6)), np.zeros((0, 6), np.uint8), [[0.5]]])
def test_images_of_another_type_are_refused(image):
    with pytest.raises(DataError, match="`image` must hold bytes of 0 to 255, but has the shape"):
        check_image(image)


@pytest.mark.parametrize("shape", [(4,), (4, 6, 4), (3, 4, 6), (1, 4, 6, 3)])
def test_images_of_another_shape_are_refused(shape):
    with pytest.raises(DataError, match="must have rows, columns and 1 or 3 channels, but has"):
        check_image(np.ones(shape, np.uint8))


def test_pixels_of_tiny_images_are_repeated():
    image = np.random.default_rng(0).integers(0, 256, (28, 20, 3), dtype=np.uint8)
    times = MAX_SIDE // 28
    assert (resize_image(image) == np.kron(image, np.ones((times, times, 1), np.uint8))).all()


@pytest.mark.parametrize("shape", [(96, 96, 3), (500, 333, 3), (100, 1000, 3), (1, 900, 3)])
def test_other_images_are_resized_to_plot_size(shape):
    found = resize_image(np.full(shape, 77, np.uint8))
    assert max(found.shape) == MAX_SIDE
    assert found.shape[0] / found.shape[1] == pytest.approx(shape[0] / shape[1], abs=0.01)
    assert (found == 77).all()


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("\u200d", "U+200D"),
        ("\ufe0f\u200d", "U+FE0F U+200D"),
        ("\u064e", "◌\u064e"),
        ("\u0e31น", "◌\u0e31น"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("", ""),
        (" ", " "),
    ],
)
def test_labels_of_joiners_and_marks_are_visible(token, shown):
    assert label(token) == shown
