import pytest
import torch

from regard.studies.reproduce.attention.queries_keys_values import (
    KEYS,
    MEANINGS,
    one_hot,
    select,
    sentence_deviation,
    shuffle_differences,
)


def test_location_selects_beach():
    contexts, weights = select(KEYS)
    assert MEANINGS[contexts[-1].argmax()] == "beach"
    assert weights.argmax(1).tolist()[:2] == [0, 1] and weights[-1].argmax() == 4
    assert weights[2, 2:4].tolist() == pytest.approx([0.5, 0.5], abs=1e-3)


def test_values_of_fillers_are_zeros():
    assert one_hot(("she", "–"), MEANINGS).tolist() == [[1, 0, 0], [0, 0, 0]]


def test_order_of_the_sentence_does_not_matter():
    assert sentence_deviation() < 1e-6


def test_only_positions_depend_on_the_order_of_the_memory():
    before = torch.get_rng_state()
    differences = shuffle_differences(3)
    assert torch.equal(torch.get_rng_state(), before)
    changed = {name for name, difference in differences.items() if difference > 1e-3}
    assert changed == {"location score", "multi-head, with positions"}
