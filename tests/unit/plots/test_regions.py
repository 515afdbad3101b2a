import numpy as np
import pytest

from regard.core.errors import DataError
from regard.plots.figure import to_svg
from regard.plots.regions import Classified, decision_regions

CORNERS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def above(grid):
    """Return the sum of both coordinates as the probability: the boundary is x + y = 0.5."""
    return grid.sum(1)


def test_every_panel_has_its_title_and_all_points():
    panels = {name: Classified(CORNERS, [0, 1, 1, 1], above) for name in ("one", "two", "three")}
    figure = decision_regions(panels, columns=2)
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title(loc="left") for axes in shown] == ["one", "two", "three"]
    for axes in shown:
        points = [item.get_offsets() for item in axes.collections[-2:]]
        assert points[0].tolist() == [[0, 0]]
        assert sorted(points[1].tolist()) == [[0, 1], [1, 0], [1, 1]]


def test_boundary_is_where_the_probability_is_one_half():
    figure = decision_regions({"one": Classified(CORNERS, [0, 1, 1, 1], above)})
    boundary = figure.axes[0].collections[0].get_paths()[0].vertices
    assert np.allclose(boundary.sum(1), 0.5, atol=1e-6)


def test_a_classifier_that_predicts_one_class_has_no_boundary():
    panel = Classified(CORNERS, [0, 1, 1, 1], lambda grid: np.zeros(len(grid)))
    assert len(decision_regions({"one": panel}).axes[0].collections) == 2


def test_titles_are_escaped():
    svg = to_svg(decision_regions({"<b>": Classified(CORNERS, [0, 1, 1, 1], above)}))
    assert "<b>" not in svg and "&lt;b&gt;" in svg


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        ({}, "at least one classifier"),
        ({"one": Classified([(0, 0)], [0, 1], above)}, r"2 labels.*'one'.*\(1, 2\)"),
        ({"one": Classified(np.zeros((0, 2)), [], above)}, r"0 labels.*\(0, 2\)"),
    ],
)
def test_invalid_panels_are_refused(panels, message):
    with pytest.raises(DataError, match=message):
        decision_regions(panels)
