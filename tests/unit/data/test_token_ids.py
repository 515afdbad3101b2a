import numpy as np
import pytest

from regard.data.batching import BatchConfig, limit_lengths
from regard.data.token_ids import TokenIds, lengths_of

ROWS = [[4, 5, 3], [3], [4, 4, 4, 4, 3], [7, 3]]


@pytest.fixture
def ids():
    lengths = np.array([len(row) for row in ROWS])
    flat = np.array([token for row in ROWS for token in row], np.uint16)
    return TokenIds(flat, np.cumsum(lengths) - lengths, lengths)


def test_rows_are_lists_of_python_integers(ids):
    assert list(ids) == ROWS
    assert ids[1:3] == ROWS[1:3]
    assert type(ids[0][0]) is int


def test_lengths_are_those_of_the_rows(ids):
    assert lengths_of(ids).tolist() == lengths_of(ROWS).tolist() == [3, 1, 5, 2]


def test_selected_rows_keep_their_order(ids):
    selected = ids.select(np.array([3, 0]))
    assert (list(selected), selected.lengths.tolist()) == ([ROWS[3], ROWS[0]], [2, 3])


@pytest.mark.parametrize("too_long", ["drop", "truncate"])
@pytest.mark.parametrize("max_length", [3, 4, 5])
def test_limits_are_those_of_lists(ids, too_long, max_length):
    config = BatchConfig(max_length=max_length, too_long=too_long)
    targets = [[2, 3], [2, 9, 9, 3], [2, 3], [2, 3]]
    ours, our_targets, our_rows = limit_lengths(ids, targets, config)
    theirs, their_targets, their_rows = limit_lengths(ROWS, targets, config)
    assert (list(ours), our_targets, list(our_rows)) == (theirs, their_targets, list(their_rows))
    assert lengths_of(ours).tolist() == lengths_of(theirs).tolist()
