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

TARGETS = ["a", "a", "a", "b", "b", "c"]
PREDICTED = ["a", "a", "b", "b", "c", "c"]


def test_confusion_counts_pairs_of_true_and_predicted_labels():
    assert confusion(PREDICTED, TARGETS) == {
        "a": {"a": 2, "b": 1, "c": 0},
        "b": {"a": 0, "b": 1, "c": 1},
        "c": {"a": 0, "b": 0, "c": 1},
    }


def test_accuracy_is_the_share_of_correct_labels():
    found = label_accuracy(PREDICTED, TARGETS)
    assert found.value == pytest.approx(100 * 4 / 6)
    assert found.signature == "unit:label|interval:wilson"
    assert found.interval[0] < found.value < found.interval[1]


def test_top_accuracy_is_the_share_of_labels_among_their_candidates():
    found = top_accuracy([["a", "b"], ["b", "a"], ["b", "c"], ["b"]], ["a", "a", "a", "b"])
    assert (found.name, found.value) == ("accuracy@2", 75)
    assert found.interval == tuple(100 * end for end in wilson(3, 4))


def test_top_accuracy_of_one_candidate_is_the_accuracy():
    found, wanted = (
        top_accuracy([[predicted] for predicted in PREDICTED], TARGETS),
        label_accuracy(PREDICTED, TARGETS),
    )
    assert (found.value, found.interval) == (wanted.value, wanted.interval)


def test_top_accuracy_of_lists_of_unequal_length_is_refused():
    with pytest.raises(DataError, match="as many predicted labels as true labels.*2 and 1"):
        top_accuracy([["a"], ["b"]], ["a"])


def test_wilson_interval_equals_published_values():
    # Newcombe 1998, table I: 81 of 263, and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_f1_equals_values_by_hand():
    found = macro_f1(PREDICTED, TARGETS)
    # a: precision 2/2, recall 2/3; b: 1/2, 1/2; c: 1/2, 1/1.
    assert found.value == pytest.approx(100 * (0.8 + 0.5 + 2 / 3) / 3)
    assert found.detail["precision a"] == 100
    assert found.detail["recall a"] == pytest.approx(100 * 2 / 3)
    assert found.detail["f1 c"] == pytest.approx(100 * 2 / 3)


def test_label_never_predicted_has_an_f1_of_zero():
    assert macro_f1(["a", "a"], ["a", "b"]).detail["f1 b"] == 0


def test_interval_of_f1_contains_the_value_and_shrinks_with_more_examples():
    few = macro_f1(PREDICTED * 5, TARGETS * 5, num_bootstrap=300)
    many = macro_f1(PREDICTED * 500, TARGETS * 500, num_bootstrap=300)
    assert few.interval[0] < few.value < few.interval[1]
    widths = [high - low for low, high in (few.interval, many.interval)]
    assert widths[0] > 5 * widths[1]


def test_metrics_equal_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    generator = random.Random(0)
    for _ in range(20):
        targets = generator.choices("abcd", k=40)
        predicted = generator.choices("abc", k=40)
        names = sorted({*targets, *predicted})
        table = [list(row.values()) for row in confusion(predicted, targets).values()]
        assert table == metrics.confusion_matrix(targets, predicted, labels=names).tolist()
        expected = metrics.f1_score(targets, predicted, average="macro", zero_division=0)
        assert macro_f1(predicted, targets).value == pytest.approx(100 * expected)
        expected = metrics.accuracy_score(targets, predicted)
        assert label_accuracy(predicted, targets).value == pytest.approx(100 * expected)


@pytest.mark.parametrize(("predicted", "targets"), [([], []), (["a"], ["a", "b"])])
def test_labels_of_unequal_length_are_refused(predicted, targets):
    with pytest.raises(
        DataError, match="as many predicted labels as true labels, and at least one"
    ):
        label_accuracy(predicted, targets)
