import random

import pytest

from regard.core.errors import DataError
from regard.metrics.classification import (
    confusion,
    label_accuracy,
    macro_f1,
    top_accuracy,
    wilson,
)

RIGHT = ["a", "a", "a", "b", "b", "c"]
GUESS = ["a", "a", "b", "b", "c", "c"]


def test_confusion_counts_which_label_is_taken_for_which():
    assert confusion(GUESS, RIGHT) == {
        "a": {"a": 2, "b": 1, "c": 0},
        "b": {"a": 0, "b": 1, "c": 1},
        "c": {"a": 0, "b": 0, "c": 1},
    }


def test_accuracy_is_the_share_of_right_labels():
    found = label_accuracy(GUESS, RIGHT)
    assert found.value == pytest.approx(100 * 4 / 6)
    assert found.signature == "unit:label|interval:wilson"
    assert found.interval[0] < found.value < found.interval[1]


def test_top_accuracy_is_the_share_of_labels_among_their_candidates():
    found = top_accuracy([["a", "b"], ["b", "a"], ["b", "c"], ["b"]], ["a", "a", "a", "b"])
    assert (found.name, found.value) == ("accuracy@2", 75)
    assert found.interval == tuple(100 * end for end in wilson(3, 4))


def test_top_accuracy_of_one_candidate_is_the_accuracy():
    found, wanted = top_accuracy([[guess] for guess in GUESS], RIGHT), label_accuracy(GUESS, RIGHT)
    assert (found.value, found.interval) == (wanted.value, wanted.interval)


def test_top_accuracy_of_misfit_lists_is_refused():
    with pytest.raises(DataError, match="as many predicted labels as true labels.*2 and 1"):
        top_accuracy([["a"], ["b"]], ["a"])


def test_wilson_interval_equals_published_values():
    # Newcombe 1998, table I: 81 of 263, and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_f1_by_hand():
    found = macro_f1(GUESS, RIGHT)
    # a: precision 2/2, recall 2/3; b: 1/2, 1/2; c: 1/2, 1/1.
    assert found.value == pytest.approx(100 * (0.8 + 0.5 + 2 / 3) / 3)
    assert found.detail["precision a"] == 100
    assert found.detail["recall a"] == pytest.approx(100 * 2 / 3)
    assert found.detail["f1 c"] == pytest.approx(100 * 2 / 3)


def test_label_never_predicted_has_an_f1_of_zero():
    assert macro_f1(["a", "a"], ["a", "b"]).detail["f1 b"] == 0


def test_interval_of_f1_holds_the_value_and_shrinks_with_more_examples():
    few = macro_f1(GUESS * 5, RIGHT * 5, num_bootstrap=300)
    many = macro_f1(GUESS * 500, RIGHT * 500, num_bootstrap=300)
    assert few.interval[0] < few.value < few.interval[1]
    widths = [high - low for low, high in (few.interval, many.interval)]
    assert widths[0] > 5 * widths[1]


def test_numbers_equal_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    generator = random.Random(0)
    for _ in range(20):
        right = generator.choices("abcd", k=40)
        guess = generator.choices("abc", k=40)
        names = sorted({*right, *guess})
        table = [list(row.values()) for row in confusion(guess, right).values()]
        assert table == metrics.confusion_matrix(right, guess, labels=names).tolist()
        expected = metrics.f1_score(right, guess, average="macro", zero_division=0)
        assert macro_f1(guess, right).value == pytest.approx(100 * expected)
        expected = metrics.accuracy_score(right, guess)
        assert label_accuracy(guess, right).value == pytest.approx(100 * expected)


@pytest.mark.parametrize(("guess", "right"), [([], []), (["a"], ["a", "b"])])
def test_as_many_labels_as_answers_are_needed(guess, right):
    with pytest.raises(
        DataError, match="as many predicted labels as true labels, and at least one"
    ):
        label_accuracy(guess, right)
