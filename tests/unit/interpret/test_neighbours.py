import numpy as np
import pytest

from regard.core.errors import DataError
from regard.interpret import neighbours
from regard.interpret.embed import embed
from regard.interpret.neighbours import find_neighbours

LINES = ["a b c", "e d", "", "b a c d", "a b c", "c"]


def test_nearest_comes_first_and_similarity_is_the_cosine(tiny_run):
    ((query, near),) = find_neighbours(tiny_run.predictor, LINES, ["a b d"], num=3)
    assert query == "a b d"
    own, *others = embed(tiny_run.predictor, ["a b d", *(one.source for one in near)])
    for one, vector in zip(near, others, strict=True):
        expected = own @ vector / np.linalg.norm(own) / np.linalg.norm(vector)
        assert one.similarity == pytest.approx(expected, abs=1e-5)
    assert sorted(near, key=lambda one: -one.similarity) == near


def test_line_is_not_its_own_neighbour_and_equal_lines_count_once(tiny_run):
    found = find_neighbours(tiny_run.predictor, LINES, num=9)
    assert [query for query, _ in found] == ["a b c", "e d", "b a c d", "c"]
    for query, near in found:
        assert {one.source for one in near} == {"a b c", "e d", "b a c d", "c"} - {query}


@pytest.mark.parametrize("queries", [None, LINES[::-1]])
def test_queries_in_chunks_have_the_same_neighbours(tiny_run, monkeypatch, queries):
    at_once = find_neighbours(tiny_run.predictor, LINES, queries)
    monkeypatch.setattr(neighbours, "CHUNK", 2)
    in_chunks = find_neighbours(tiny_run.predictor, LINES, queries)
    assert [query for query, _ in in_chunks] == [query for query, _ in at_once]
    for (_, near), (_, expected) in zip(in_chunks, at_once, strict=True):
        assert [one.source for one in near] == [one.source for one in expected]
        assert [one.similarity for one in near] == pytest.approx(
            [one.similarity for one in expected]
        )


def test_equal_line_is_the_nearest(tiny_run):
    ((_, near),) = find_neighbours(tiny_run.predictor, LINES, ["e d"], num=1)
    assert near[0].source == "e d" and near[0].similarity == pytest.approx(1)


@pytest.mark.parametrize(("lines", "queries"), [(["a"], None), (["a", " "], [""]), ([], ["a"])])
def test_too_few_lines_or_queries_are_refused(tiny_run, lines, queries):
    with pytest.raises(DataError, match="at least one query and one other line"):
        find_neighbours(tiny_run.predictor, lines, queries)
