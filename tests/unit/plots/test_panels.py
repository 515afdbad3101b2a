import pytest

from regard.core.errors import DataError
from regard.plots.panels import panels

LINES = {"left": {"a": [(0, 1), (1, 2)]}, "right": {"a": [(0, 2)], "b": [(1, 3), (2, 4)]}}


def test_one_panel_per_title_and_one_line_per_series():
    figure = panels(LINES, x_label="step", y_label="loss")
    assert [axes.get_title("left") for axes in figure.axes] == ["left", "right"]
    assert [len(axes.lines) for axes in figure.axes] == [1, 2]


def test_series_of_one_name_have_one_colour():
    left, right = panels(LINES, x_label="step", y_label="loss").axes
    assert left.lines[0].get_color() == right.lines[0].get_color() != right.lines[1].get_color()


def test_panels_beyond_the_last_are_hidden():
    figure = panels({**LINES, "third": {}}, x_label="x", y_label="y", columns=2)
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]


def test_lowest_panel_of_each_column_has_labels_of_x():
    figure = panels({**LINES, "third": {}}, x_label="x", y_label="y", columns=2)
    shown = [axes.xaxis.get_tick_params()["labelbottom"] for axes in figure.axes[:3]]
    assert shown == [False, True, True]


def test_mark_is_a_vertical_line():
    figure = panels(LINES, x_label="x", y_label="y", marks={"left": ("stop", 0.5)})
    assert list(figure.axes[0].lines[-1].get_xdata()) == [0.5, 0.5]


def test_log_scale():
    figure = panels(LINES, x_label="x", y_label="y", y_scale="log")
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    assert axes.yaxis.get_major_formatter()(0.001) == "0.001"


def test_no_panel_is_an_error():
    with pytest.raises(DataError, match="at least one panel"):
        panels({}, x_label="x", y_label="y")


def test_unknown_scale_is_an_error():
    with pytest.raises(DataError, match="`y_scale`"):
        panels(LINES, x_label="x", y_label="y", y_scale="cubic")
