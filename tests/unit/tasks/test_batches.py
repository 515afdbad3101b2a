"""Results of batches are in the order of the examples, and empty sources have predictions."""

from dataclasses import dataclass

import pytest

from regard.tasks.batches import map_batches, predict_nonempty
from regard.tasks.prediction import Prediction


@dataclass
class Rows:
    """A batch with only the indices of its examples."""

    rows: tuple[int, ...]


def test_results_are_in_the_order_of_the_examples():
    batches = [Rows((3, 0)), Rows((2,)), Rows((4, 1))]
    assert map_batches(lambda batch: [row * 10 for row in batch.rows], batches) == [
        0,
        10,
        20,
        30,
        40,
    ]


def test_no_batches_have_no_results():
    assert map_batches(lambda batch: batch.rows, []) == []


def test_a_batch_with_too_few_results_is_an_error():
    with pytest.raises(ValueError, match="shorter"):
        map_batches(lambda _batch: ["only one"], [Rows((0, 1))])


def test_empty_sources_have_one_empty_prediction():
    def predict(sources):
        return [[Prediction(source.upper(), -1.0, (), ())] for source in sources]

    found = predict_nonempty(predict, ["a", "  ", "b", ""])
    assert [best[0].text for best in found] == ["A", "", "B", ""]
    assert found[1] == [Prediction.empty()]


def test_nothing_is_predicted_for_empty_sources_alone():
    def refuse(_sources):
        raise AssertionError("There is nothing to predict.")

    assert predict_nonempty(refuse, ["", " "]) == [[Prediction.empty()]] * 2
