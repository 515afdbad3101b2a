"""Results of batches are in the order of the examples, and empty sources have predictions."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch

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


@pytest.mark.parametrize("num_workers", [2, 8])
def test_results_of_several_threads_are_in_the_order_of_the_examples(num_workers):
    def compute(batch):
        time.sleep(0.001 * batch.rows[0])
        threads.add((threading.get_ident(), torch.get_num_threads()))
        return [row * 10 for row in batch.rows]

    threads: set[tuple[int, int]] = set()
    before = torch.get_num_threads()
    batches = [Rows((3, 0)), Rows((2,)), Rows((4, 1)), Rows((6, 5, 7))]
    found = map_batches(compute, batches, num_workers=num_workers)
    assert found == [row * 10 for row in range(8)]
    assert 1 < len(threads) <= min(num_workers, len(batches))
    assert threading.get_ident() not in {ident for ident, _ in threads}
    assert {num for _, num in threads} == {1}
    assert torch.get_num_threads() == before


def test_later_threads_have_the_number_of_threads_of_the_caller():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        map_batches(lambda batch: batch.rows, [Rows((0,)), Rows((1,))], num_workers=2)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(before)


def test_one_batch_needs_no_thread():
    idents = map_batches(lambda batch: [threading.get_ident()], [Rows((0,))], num_workers=4)
    assert idents == [threading.get_ident()]


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
