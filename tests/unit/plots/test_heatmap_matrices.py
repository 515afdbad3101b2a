import pytest

from regard.core.errors import DataError
from regard.plots.figure import to_svg
from regard.plots.heatmap import matrices

WEIGHTS = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]


def draw(**panels):
    return matrices(panels, x_label="keys", y_label="queries")


def images(figure):
    return [axes.images[0] for axes in figure.axes if axes.images]


def test_every_table_has_a_panel():
    assert len(images(draw(a=WEIGHTS, b=WEIGHTS))) == 2


def test_panel_holds_the_numbers():
    assert images(draw(a=WEIGHTS))[0].get_array().tolist() == WEIGHTS


def test_scale_of_weights_begins_at_zero():
    assert images(draw(a=WEIGHTS))[0].get_clim() == (0, 0.9)


def test_scale_of_signed_numbers_has_zero_in_its_middle():
    assert images(draw(a=[[-0.5, 2.0]]))[0].get_clim() == (-2, 2)


def test_table_of_zeros_can_be_drawn():
    assert "<svg" in to_svg(draw(a=[[0.0, 0.0]]))


def test_same_tables_are_the_same_file():
    assert to_svg(draw(a=WEIGHTS)) == to_svg(draw(a=WEIGHTS))


def test_no_table_is_refused():
    with pytest.raises(DataError, match="`panels` must hold at least one table"):
        draw()


@pytest.mark.parametrize("table", [[1.0, 2.0], [[]], 3.0])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(DataError, match="must have rows and columns, but has the shape"):
        draw(a=table)


def test_infinite_numbers_are_refused():
    with pytest.raises(DataError, match="must hold finite numbers"):
        draw(a=[[float("inf")]])
