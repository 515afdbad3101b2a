import pytest

from benchmarks.joining import join_neighbours
from regard.core.errors import DataError
from regard.data.example import Example

CORPUS = [Example(f"a{i} b{i}", f"x{i} y{i} z{i}") for i in range(50)]


def test_every_example_is_used_once_and_in_order():
    joined = join_neighbours(CORPUS, most_words=60)
    assert " ".join(e.source for e in joined) == " ".join(e.source for e in CORPUS)
    assert " ".join(e.target for e in joined) == " ".join(e.target for e in CORPUS)


def test_runs_have_one_to_five_members():
    lengths = {len(e.source.split()) // 2 for e in join_neighbours(CORPUS, most_words=60)}
    assert lengths == {1, 2, 3, 4, 5}


def test_no_side_is_longer_than_asked():
    joined = join_neighbours(CORPUS, most_words=7)
    assert max(len(e.target.split()) for e in joined) == 6


def test_what_is_too_long_by_itself_is_left_out():
    joined = join_neighbours([Example("a b c d", "x"), Example("a", "y")], most_words=3)
    assert joined == [Example("a", "y")]


def test_the_seed_decides():
    assert join_neighbours(CORPUS, most_words=60, seed=1) == join_neighbours(
        CORPUS, most_words=60, seed=1
    )
    assert join_neighbours(CORPUS, most_words=60, seed=1) != join_neighbours(
        CORPUS, most_words=60, seed=2
    )


def test_limits_below_one_are_refused():
    with pytest.raises(DataError, match="must be at least 1, but are 0 and 5"):
        join_neighbours(CORPUS, most_words=0)
