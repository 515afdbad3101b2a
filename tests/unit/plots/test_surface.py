import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.figure import to_svg
from regard.plots.surface import contours, curve_steps

CURVE = [(x, x**2) for x in np.linspace(-2, 2, 21)]


def test_each_panel_has_the_curve_and_its_steps():
    steps = {"small": {"steps": [(2, 4), (1, 1)]}, "large": {"steps": [(2, 4), (-3, 9)]}}
    figure = curve_steps(CURVE, steps, x_label="w", y_label="cost")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["small", "large"]
    curve, path, start = figure.axes[1].lines
    assert len(curve.get_xdata()) == 21
    assert path.get_xdata().tolist() == [2, -3] and start.get_xdata() == [2]
    assert figure.axes[1].get_xlim() == (-2, 2)


def test_diverged_steps_are_plotted_within_limits():
    steps = {"large": {"steps": [(2, 4), (float("inf"), float("nan")), (-1e300, 1e300)]}}
    assert "<svg" in to_svg(curve_steps(CURVE, steps, x_label="w", y_label="cost"))


def test_contours_enclose_the_minimum():
    path = {"descent": {"path": [(1.0, 1.0), (0.0, 0.0)]}}
    figure = contours(lambda x, y: x**2 + y**2, path, x_range=(-2, 2), y_range=(-1, 1))
    (axes,) = figure.axes
    assert axes.get_xlim() == (-2, 2) and axes.get_ylim() == (-1, 1)
    levels = axes.collections[0].levels
    assert 0 < levels[0] < 0.01 and levels[-1] == pytest.approx(5)


def test_panels_without_content_are_hidden():
    paths = {name: {"path": [(0.0, 0.0)]} for name in "abcd"}
    figure = contours(lambda x, y: x + y, paths, x_range=(0, 1), y_range=(0, 1), columns=3)
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2


def test_error_without_points_or_panels():
    with pytest.raises(DataError, match="`curve` must hold"):
        curve_steps([], {"a": {}}, x_label="w", y_label="cost")
    with pytest.raises(DataError, match="at least one panel"):
        curve_steps(CURVE, {}, x_label="w", y_label="cost")
