import pytest

from regard.core.errors import DataError
from regard.plots.figure import COLORS, to_svg
from regard.plots.scatter import grouped, shaded

LABELS = ["He sees her.", "Her he sees.", "<b>She & him.</b>"]


def test_every_item_is_in_every_panel_and_in_the_legend():
    panels = {"one": [(0, 0), (1, 2), (3, 1)], "two": [(5, 5), (1, 1), (0, 2)]}
    figure = grouped(panels, LABELS, groups=[0, 0, 1], marks=[0, 1, 0])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    points = [item.get_offsets().tolist()[0] for item in figure.axes[1].collections]
    assert points == [[5, 5], [1, 1], [0, 2]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == LABELS
    assert [handle.get_color() for handle in legend.get_lines()] == [
        COLORS[0],
        COLORS[0],
        COLORS[1],
    ]


def test_labels_are_escaped():
    svg = to_svg(grouped({"one": [(0, 0)] * 3}, LABELS, groups=[0, 0, 1]))
    assert "<b>" not in svg and "&lt;b&gt;" in svg


def test_panel_without_a_point_for_each_label_is_refused():
    with pytest.raises(DataError, match="'one' has 2 points"):
        grouped({"one": [(0, 0), (1, 1)]}, LABELS, groups=[0, 0, 1])


def test_colour_shows_the_value():
    figure = shaded([(0, 0), (1, 1)], [3.0, 9.0], value_label="words", title="All")
    assert figure.axes[0].collections[0].get_array().tolist() == [3, 9]
    legend = figure.axes[0].get_legend()
    assert legend.get_title().get_text() == "words"
    values = [float(text.get_text()) for text in legend.get_texts()]
    assert values == sorted(values) and 3 <= values[0] < values[-1] <= 9
    assert "<image" not in to_svg(figure)


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        ([], [], "there are 0 and 0"),
        ([(0, 0)], [1.0, 2.0], "there are 1 and 2"),
        ([(0, float("nan"))], [1.0], "must be finite"),
    ],
)
def test_invalid_points_and_values_are_refused(points, values, message):
    with pytest.raises(DataError, match=message):
        shaded(points, values, value_label="words")
