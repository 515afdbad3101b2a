from dataclasses import replace

import pytest

from regard.core.errors import DataError
from regard.metrics.text.error_rates import accuracy, nbest_accuracy, word_errors


def test_accuracy_is_the_percentage_of_exact_matches():
    assert accuracy(["a b", "c", "d", "e"], [["a b"], ["c"], ["x"], ["e f"]]).value == 50.0


def test_any_matching_reference_counts():
    assert accuracy(["b"], [["a", "b"]]).value == 100.0


def test_extra_whitespace_is_ignored():
    assert accuracy([" a  b "], [["a b"]]).value == 100.0


def test_case_counts():
    assert accuracy(["A"], [["a"]]).value == 0.0


def test_word_errors_are_the_complement_of_accuracy():
    hypotheses, references = ["a b", "c", "d"], [["a b"], ["x", "c"], ["e"]]
    right, wrong = accuracy(hypotheses, references), word_errors(hypotheses, references)
    assert wrong.value == pytest.approx(100 - right.value) == pytest.approx(100 / 3)
    assert (wrong.name, wrong.detail) == ("WER", {"wrong": 1, "count": 3})
    assert wrong.signature.startswith("unit:answer|")


def test_any_matching_candidate_counts():
    result = nbest_accuracy([["a", "b"], ["c"], ["d", "e", "f"]], [["b"], ["x"], ["x", "f"]])
    assert result.value == pytest.approx(200 / 3)
    assert result.name == "accuracy@3"


def test_accuracy_of_one_candidate_is_accuracy():
    hypotheses, references = ["a", "b", "c "], [["a"], ["x"], ["c"]]
    single = nbest_accuracy([[text] for text in hypotheses], references, num_bootstrap=50)
    plain = accuracy(hypotheses, references, num_bootstrap=50)
    assert single == replace(plain, name="accuracy@1")


def test_example_without_candidates_is_wrong():
    assert nbest_accuracy([[], ["a"]], [["a"], ["a"]]).value == 50


def test_examples_without_any_candidate_are_refused():
    with pytest.raises(DataError, match="must hold at least one candidate, but all are empty"):
        nbest_accuracy([[], []], [["a"], ["b"]])


def test_candidates_that_are_a_string_are_refused():
    with pytest.raises(DataError, match=r"`hypotheses\[1\]` must be a list of candidates.*'b'"):
        nbest_accuracy([["a"], "b"], [["a"], ["b"]])
