from itertools import combinations

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.figure import to_svg
from regard.plots.scatter import MAX_POINTS, projections

LABELS = ["left", "right"] * 10


def positions(scale=1.0):
    found = np.random.default_rng(0).normal(size=(20, 2))
    found[:, 0] += np.where(np.arange(20) % 2, 3, -3)
    return scale * found


def test_panels_have_the_same_axes():
    first, second = projections(
        {"a": positions(), "b": positions(100)}, LABELS, notes={"a": "one"}
    ).axes
    assert first.get_xlim() == second.get_xlim()
    dots = [axes.collections[0].get_offsets() for axes in (first, second)]
    assert np.allclose(*dots)


def test_every_label_has_its_points_and_its_name():
    (axes,) = projections({"a": positions()}, LABELS, notes={"a": "values"}).axes
    assert [len(dots.get_offsets()) for dots in axes.collections] == [10, 10]
    assert {text.get_text() for text in axes.texts} >= {"left", "right", "values"}


def test_names_do_not_overlap():
    labels = [name for name in ("circle", "cross", "square", "star") for _ in range(5)]
    points = np.repeat([[0.0, 0.0], [0.1, 0.1], [0.0, 0.05], [8.0, 0.0]], 5, axis=0)
    figure = projections({"a": points, "b": points[::-1]}, labels, notes={})
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text() in labels]
        assert len(boxes) == 4
        assert not any(one.overlaps(two) for one, two in combinations(boxes, 2))
    alone = next(text for text in figure.axes[0].texts if text.get_text() == "star")
    assert alone.get_position() == pytest.approx(figure.axes[0].collections[-1].get_offsets()[0])


def test_number_of_points_is_limited():
    many = np.random.default_rng(0).normal(size=(3 * MAX_POINTS, 2))
    (axes,) = projections({"a": many}, ["x"] * len(many), notes={}).axes
    assert len(axes.collections[0].get_offsets()) == MAX_POINTS


def test_labels_are_escaped():
    assert "<b>" not in to_svg(projections({"a": positions()}, ["<b>", "c"] * 10, notes={}))


def test_positions_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"Each of 20 items must have two coordinates in panel 'a'"):
        projections({"a": positions()[:, :1]}, LABELS, notes={})
