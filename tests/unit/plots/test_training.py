import math

import pytest

from regard.core.errors import DataError
from regard.plots.training import training_curves


def log(*steps, loss=2.0, **others):
    """Rows of a training log with a training row and a validation at each step."""
    rows = []
    for step in steps:
        shared = {"step": step, "seconds": step / 10}
        rows.append(
            {"kind": "train", "loss": loss + 1, "nll": loss, "learning_rate": 0.1, **shared}
        )
        rows[-1]["tokens_per_second"] = 5000.0
        rows.append({"kind": "valid", "loss": loss, **others, **shared})
    return rows


def titles(figure):
    return [axes.get_title("left") for axes in figure.axes if axes.get_visible()]


def legend(figure):
    return [text.get_text() for shown in figure.legends for text in shown.get_texts()]


def test_each_quantity_has_a_panel_with_one_line_per_run():
    figure = training_curves(
        {"a": log(1, 2, bleu=10.0), "b": log(1, 2, 3, bleu=20.0)}, scores={"bleu": "BLEU"}
    )
    assert titles(figure)[:3] == ["Loss", "BLEU", "Learning rate"]
    loss, bleu, rate, throughput = figure.axes
    assert [len(axes.lines) for axes in figure.axes] == [4, 2, 2, 2]
    assert list(bleu.lines[1].get_ydata()) == [20.0, 20.0, 20.0]
    assert list(throughput.lines[0].get_ydata()) == [5000.0, 5000.0]
    assert legend(figure) == ["a", "b"]
    assert loss.lines[0].get_color() == loss.lines[2].get_color() == rate.lines[0].get_color()
    assert rate.lines[0].get_color() != rate.lines[1].get_color()


def test_training_loss_is_the_one_without_label_smoothing():
    figure = training_curves({"a": log(1, 2, loss=2.0)})
    assert [list(line.get_ydata()) for line in figure.axes[0].lines] == [[2.0, 2.0], [2.0, 2.0]]


def test_runs_with_different_scores_have_a_panel_each():
    runs = {"a": log(1, 2, bleu=10.0), "b": log(1, 2, accuracy=0.5)}
    figure = training_curves(runs, scores={"bleu": "BLEU", "accuracy": "accuracy"})
    assert titles(figure)[1:3] == ["BLEU", "accuracy"]
    bleu, accuracy = figure.axes[1:3]
    assert [len(line.get_ydata()) for line in bleu.lines] == [2, 0]
    assert [len(line.get_ydata()) for line in accuracy.lines] == [0, 2]


def test_run_without_validation_has_no_score():
    rows = [row for row in log(1, 2) if row["kind"] == "train"]
    assert "BLEU" not in titles(training_curves({"a": rows}, scores={"bleu": "BLEU"}))


def test_single_points_have_markers():
    figure = training_curves({"a": log(5, bleu=1.0)}, scores={"bleu": "BLEU"})
    markers = [line.get_marker() for axes in figure.axes for line in axes.lines]
    assert all(marker not in (None, "", "None") for marker in markers)


def test_x_axis_may_be_seconds():
    figure = training_curves({"a": log(10, 20)}, x="seconds")
    assert figure.axes[0].get_xlabel() == "seconds"
    assert list(figure.axes[0].lines[0].get_xdata()) == [1.0, 2.0]


def test_values_that_are_not_finite_are_omitted():
    figure = training_curves({"a": [*log(1, 2), *log(3, loss=math.nan)]})
    assert list(figure.axes[0].lines[0].get_xdata()) == [1, 2]


def test_single_run_is_named_by_the_title():
    figure = training_curves({"runs/mine": log(1, 2)})
    assert (figure.get_suptitle(), legend(figure)) == ("runs/mine", [])


def test_logs_without_numbers_are_an_error():
    with pytest.raises(DataError, match="nothing to plot"):
        training_curves({"a": [{"kind": "stop", "step": 3, "reason": "steps"}]})
