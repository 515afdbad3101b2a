import pytest

from regard.data.example import Example
from regard.metrics.text.bleu import chrf
from regard.studies.compare.disagreement import find_disagreements

EXAMPLES = [
    Example("1", "the cat sat"),
    Example("2", "the dog ran"),
    Example("3", "a house stands", references=("the house stands",)),
]


def test_greatest_distance_comes_first():
    first = ["the cat sat", "the dog ran", "a house stands"]
    second = ["the cat sits", "zzz", "a house is"]
    found = find_disagreements(EXAMPLES, [first, second])
    assert [one.source for one in found] == ["2", "3", "1"]
    assert found[0].spread == pytest.approx(100)


def test_equal_answers_are_never_shown():
    same = ["wrong", "the dog ran", "a"]
    assert find_disagreements(EXAMPLES, [same, same]) == []


def test_values_are_chrf_against_every_reference():
    answers = ["x", "y", "the house stands"]
    found = find_disagreements(EXAMPLES, [["x", "y", "a house"], answers])
    wanted = chrf(["a house"], [["a house stands", "the house stands"]]).value
    assert [one.values for one in found] == [pytest.approx((wanted, 100))]


def test_at_most_as_many_as_asked_for():
    assert len(find_disagreements(EXAMPLES, [["x"] * 3, ["y"] * 3], num=2)) == 2
