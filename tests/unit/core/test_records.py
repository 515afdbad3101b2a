from typing import NotRequired, TypedDict

import pytest

from regard.core.errors import CheckpointError
from regard.core.records import check_record


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
