import pytest

from regard.core.errors import DataError
from regard.plots.figure import to_svg
from regard.plots.heatmap import matrices

WEIGHTS = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]


def plot(**panels):
    return matrices(panels, x_label="keys", y_label="queries")


def images(figure):
    return [axes.images[0] for axes in figure.axes if axes.images]


def test_every_matrix_has_a_panel():
    assert len(images(plot(a=WEIGHTS, b=WEIGHTS))) == 2


def test_matrices_beyond_the_columns_are_in_further_rows():
    figure = plot(**dict.fromkeys("abcd", WEIGHTS))
    rows = [axes.get_subplotspec().rowspan.start for axes in figure.axes if axes.images]
    assert rows == [0, 0, 0, 1]
    assert figure.get_figwidth() == plot(a=WEIGHTS, b=WEIGHTS, c=WEIGHTS).get_figwidth()


def test_panel_shows_the_values():
    assert images(plot(a=WEIGHTS))[0].get_array().tolist() == WEIGHTS


def test_scale_of_non_negative_values_starts_at_zero():
    assert images(plot(a=WEIGHTS))[0].get_clim() == (0, 0.9)


def test_scale_of_signed_values_is_symmetric():
    assert images(plot(a=[[-0.5, 2.0]]))[0].get_clim() == (-2, 2)


def test_matrix_of_zeros_can_be_plotted():
    assert "<svg" in to_svg(plot(a=[[0.0, 0.0]]))


def test_plot_of_matrices_is_deterministic():
    assert to_svg(plot(a=WEIGHTS)) == to_svg(plot(a=WEIGHTS))


def test_panels_without_a_matrix_are_refused():
    with pytest.raises(DataError, match="`panels` must hold at least one table"):
        plot()


@pytest.mark.parametrize("table", [[1.0, 2.0], [[]], 3.0])
def test_arrays_that_are_not_matrices_are_refused(table):
    with pytest.raises(DataError, match="must have rows and columns, but has the shape"):
        plot(a=table)


def test_infinite_values_are_refused():
    with pytest.raises(DataError, match="must hold finite numbers"):
        plot(a=[[float("inf")]])
