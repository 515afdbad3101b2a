import math
from typing import NotRequired, TypedDict

import pytest

from regard.core.errors import CheckpointError
from regard.core.records import Finite, Texts, check_record


class Row(TypedDict):
    """Row with pairs of numbers."""

    links: NotRequired[list[tuple[int, int]] | None]


@pytest.mark.parametrize("links", [None, [], [[0, 1]], [[0, 1], [2, 3]]])
def test_lists_of_pairs_are_accepted(links):
    assert check_record({"links": links}, Row, "row") == {"links": links}


@pytest.mark.parametrize(
    ("links", "name"),
    [([[0]], r"links\[0\]"), ([[0, 1, 2]], r"links\[0\]"), ([[0, 1], [2, "a"]], r"links\[1\]")],
)
def test_pairs_of_other_lengths_or_types_are_refused_by_name(links, name):
    with pytest.raises(CheckpointError, match=name):
        check_record({"links": links}, Row, "row")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_where_they_cannot_be_used(value):
    assert check_record(value, float, "row") is value
    with pytest.raises(CheckpointError, match=f"must be a finite number, but is {value}"):
        check_record({"a": value}, dict[str, Finite], "row")


@pytest.mark.parametrize("kind", [float, Finite])
def test_integers_beyond_the_range_of_floats_are_refused_as_numbers(kind):
    assert check_record(10**308, kind, "row") == 10**308
    assert check_record(1e308, kind, "row") == 1e308
    with pytest.raises(
        CheckpointError, match="must be a number within ±1.8e308, but is a number of"
    ):
        check_record(-(10**400), kind, "row")


def test_other_types_are_refused_before_conditions():
    with pytest.raises(CheckpointError, match="it must be a number, but is 'a'"):
        check_record("a", Finite, "row")


def test_texts_are_one_or_more_strings():
    assert check_record(["a"], Texts, "row") == ["a"]
    with pytest.raises(CheckpointError, match=r"a list of one or more strings, but is \[\]"):
        check_record([], Texts, "row")
    with pytest.raises(CheckpointError, match=r"`\[1\]` must be a string, but is 3"):
        check_record(["a", 3], Texts, "row")
    assert check_record("a", str | Texts, "row") == "a"
    with pytest.raises(CheckpointError, match=r"must be a string, but is \[\]"):
        check_record([], str | Texts, "row")
