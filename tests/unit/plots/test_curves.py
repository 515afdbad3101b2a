import numpy as np
import pytest
from matplotlib.text import Text

from regard.core.errors import DataError
from regard.plots.curves import bars, detection, lines, loss_curve, scaling
from regard.plots.figure import to_svg

LOG = [
    {"kind": "train", "step": 1, "loss": 3.0, "tokens_per_second": 9.0},
    {"kind": "train", "step": 2, "loss": 2.0},
    {"kind": "valid", "step": 2, "loss": 2.5, "bleu": 11.0},
    {"kind": "end", "step": 2},
]


def legend(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_loss_curve_has_three_named_lines():
    assert legend(loss_curve(LOG)) == ["training loss", "validation loss", "validation bleu"]


def test_loss_curve_plots_the_rows():
    assert loss_curve(LOG).axes[0].lines[0].get_xydata().tolist() == [[1, 3], [2, 2]]


def test_score_has_its_own_axis():
    assert loss_curve(LOG).axes[1].lines[0].get_xydata().tolist() == [[2, 11]]


def test_without_scores_there_is_one_axis():
    assert len(loss_curve(LOG[:2]).axes) == 1


def test_another_score_can_be_named():
    rows = [*LOG, {"kind": "valid", "step": 3, "loss": 2.0, "chrf": 30.0}]
    assert legend(loss_curve(rows, score="chrf"))[-1] == "validation chrf"


def test_score_can_have_another_name_in_the_plot():
    figure = loss_curve(LOG, label="BLEU")
    assert legend(figure)[-1] == "validation BLEU"
    assert figure.axes[1].get_ylabel() == "BLEU"


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [((100.0,), 0, 100), ((0.0,), 0, 100), ((0.5,), 0, 1), ((60.0, 100.0), 50, 100)],
)
def test_axis_of_scores_has_possible_values(values, low, high):
    rows = [{"kind": "valid", "step": n, "loss": 1.0, "bleu": x} for n, x in enumerate(values)]
    bottom, top = loss_curve(rows).axes[1].get_ylim()
    assert low - 0.05 * high < bottom < low + 0.1 * high
    assert high <= top < 1.05 * high


def test_non_finite_points_are_omitted():
    figure = lines({"a": [(0, 1), (1, float("nan")), (2, 3)]}, x_label="x", y_label="y")
    assert len(figure.axes[0].lines[0].get_xydata()) == 2


def test_single_line_has_no_legend():
    figure = lines({"a": [(0, 1)]}, x_label="x", y_label="y", title="t")
    assert figure.axes[0].get_legend() is None


def test_title_is_above_the_legend():
    series = {name: [(0, 1), (1, 2)] for name in "abcdef"}
    figure = lines(series, x_label="x", y_label="y", title="Title")
    figure.draw_without_rendering()
    (title,) = figure.findobj(lambda part: isinstance(part, Text) and part.get_text() == "Title")
    # The legend has a margin, so an overlap of a few pixels is allowed.
    legend_top = figure.axes[0].get_legend().get_window_extent().y1
    assert title.get_window_extent().y0 >= legend_top - 5


def test_empty_training_log_is_refused():
    with pytest.raises(DataError, match="`series` must hold at least one finite point"):
        loss_curve([])


def test_bars_are_in_the_given_order():
    axes = bars({"b": 2.0, "a": 1.0}, x_label="BLEU", title="t").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "a"]


def test_bars_show_their_values():
    assert ">41.2</text>" in to_svg(bars({"negation": 41.23}))


def test_dollar_signs_are_not_math():
    assert "costs $5 or $6" in to_svg(bars({"costs $5 or $6": 1.0}))


def test_bars_without_values_are_refused():
    with pytest.raises(DataError, match="`values` must hold at least one bar"):
        bars({})


def test_dots_are_in_the_legend_after_the_lines():
    dots = {"seen": [(0, 1), (1, 2)]}
    figure = lines({"fit": [(0, 1)]}, x_label="x", y_label="y", dots=dots)
    assert legend(figure) == ["fit", "seen"]


def test_dots_are_at_their_coordinates():
    dots = {"seen": [(0, 1), (1, float("inf")), (2, 3)]}
    figure = lines({"fit": [(0, 1)]}, x_label="x", y_label="y", dots=dots)
    assert figure.axes[0].collections[0].get_offsets().tolist() == [[0, 1], [2, 3]]


def test_many_lines_have_distinct_styles():
    names = [f"run {number}" for number in range(12)]
    figure = lines({name: [(0, 1), (1, 2)] for name in names}, x_label="x", y_label="y")
    styles = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].get_lines()}
    assert len(styles) == len(names)


def test_shaded_range_is_at_its_coordinates():
    figure = lines({"a": [(0, 1), (9, 2)]}, x_label="x", y_label="y", shaded=("trained", 3, 5))
    (stretch,) = figure.axes[0].patches
    assert (stretch.get_x(), stretch.get_x() + stretch.get_width()) == (3, 5)


def test_shaded_range_is_last_in_the_legend():
    dots = {"seen": [(0, 1)]}
    figure = lines({"fit": [(0, 1)]}, x_label="x", y_label="y", dots=dots, shaded=("known", 3, 5))
    assert legend(figure) == ["fit", "seen", "known"]


def test_no_range_is_shaded_by_default():
    assert not lines({"a": [(0, 1)]}, x_label="x", y_label="y").axes[0].patches


def ticks(figure):
    figure.draw_without_rendering()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    positions = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [label.get_text() for position, label in positions if low <= position <= high]


def test_scaling_has_a_logarithmic_axis():
    figure = scaling({"a": [(10, 1), (100, 2), (1000, 3)]}, x_label="x", y_label="y")
    figure.draw_without_rendering()
    positions = [figure.axes[0].transData.transform((x, 1))[0] for x in (10, 100, 1000)]
    assert positions[1] - positions[0] == pytest.approx(positions[2] - positions[1])


def test_scaling_has_dense_ticks_for_a_small_range():
    figure = scaling({"a": [(900, 1), (60_000, 3)]}, x_label="images", y_label="accuracy")
    assert ticks(figure) == [
        "1\u200ak",
        "2\u200ak",
        "5\u200ak",
        "10\u200ak",
        "20\u200ak",
        "50\u200ak",
    ]


def test_scaling_has_sparse_ticks_for_a_large_range():
    figure = scaling({"a": [(1e6, 1), (1e12, 3)]}, x_label="FLOPs", y_label="accuracy")
    assert ticks(figure) == ["1\u200aM", "10\u200aM", "100\u200aM"] + [
        "1\u200aG",
        "10\u200aG",
        "100\u200aG",
        "1\u200aT",
    ]


def test_scaling_refuses_zero():
    with pytest.raises(DataError, match="x must be above 0, but one is 0"):
        scaling({"a": [(0, 1), (1, 2)]}, x_label="x", y_label="y")


def test_scaling_without_points_is_refused():
    with pytest.raises(DataError, match="`series` must hold at least one finite point"):
        scaling({}, x_label="x", y_label="y")


CURVES = {"errors": [(0.0, 0.0), (0.2, 0.9), (1.0, 1.0)]}


def test_histogram_of_each_group_sums_to_one():
    numbers = {"normal": [1.0, 1.5, 2.0, 90.0], "odd": [2.0, 3.0]}
    left, _ = detection(numbers, CURVES, x_label="error", threshold=2.5).axes
    heights = [patch.get_data().values.sum() for patch in left.patches]
    assert heights == pytest.approx([1, 1])
    assert left.lines[0].get_xdata()[0] == 2.5


def test_legend_is_above_the_histogram():
    figure = detection({"a": [1.0, 2.0], "b": [2.0]}, CURVES, x_label="error", threshold=1.5)
    figure.draw_without_rendering()
    left = figure.axes[0]
    assert left.get_legend().get_window_extent().y0 >= left.get_window_extent().y1


def test_roc_curves_are_plotted_with_chance():
    _, right = detection({"a": [1.0], "b": [2.0]}, CURVES, x_label="error").axes
    assert np.array(right.lines[0].get_xydata()) == pytest.approx(np.array(CURVES["errors"]))
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["errors", "chance"]


def test_equal_scores_can_be_plotted():
    left, _ = detection({"a": [1.0, 1.0]}, CURVES, x_label="error").axes
    assert left.patches[0].get_data().values.sum() == 1


def test_empty_group_is_refused():
    with pytest.raises(DataError, match="every group must hold at least one score"):
        detection({"a": [1.0], "b": []}, CURVES, x_label="error")
