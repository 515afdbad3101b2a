import numpy as np
import pytest
import torch

from regard.core.errors import DataError
from regard.metrics.representation.vectors import cosines, nearest, retrieve


@pytest.fixture
def vectors():
    return np.random.default_rng(1).normal(size=(12, 5))


def test_cosines_equal_torch(vectors):
    left, right = torch.tensor(vectors[:4]), torch.tensor(vectors[4:])
    expected = torch.cosine_similarity(left[:, None], right[None], dim=-1)
    np.testing.assert_allclose(cosines(vectors[:4], vectors[4:]), expected.numpy())


def test_cosine_of_a_zero_vector_is_zero(vectors):
    vectors[0] = 0
    assert not cosines(vectors, vectors)[0].any()


def test_nearest_are_sorted_with_ties_by_column():
    similarities = np.array([[0.1, 0.9, 0.5, 0.9]])
    assert nearest(similarities, 3).tolist() == [[1, 3, 2]]


def slow_ranks(similarities, groups):
    """Return ranks by counting, one query at a time."""
    ranks = []
    for row, group in enumerate(groups):
        own = [c for c in range(len(groups)) if c != row and groups[c] == group]
        if own:
            best = max(similarities[row][c] for c in own)
            others = (c for c in range(len(groups)) if groups[c] != group)
            ranks.append(1 + sum(similarities[row][c] >= best for c in others))
    return ranks


def test_retrieval_equals_counting(vectors):
    groups = [0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 6]
    similar = np.round(cosines(vectors, vectors), 1)  # with ties
    ranks = slow_ranks(similar, groups)
    found = retrieve(similar, groups)
    assert found["accuracy"].value == pytest.approx(100 * np.mean([rank == 1 for rank in ranks]))
    assert found["mrr"].value == pytest.approx(np.mean([1 / rank for rank in ranks]))
    detail = found["accuracy"].detail
    assert (detail["queries"], detail["groups"], detail["candidates"]) == (9, 4, 11)


def test_chance_equals_the_mean_of_random_rankings():
    groups = [0, 0, 0, 1, 1, 2, 3]
    generator = np.random.default_rng(0)
    values = [retrieve(generator.random((7, 7)), groups)["accuracy"].value for _ in range(2000)]
    chance = retrieve(np.zeros((7, 7)), groups)["accuracy"].detail["chance"]
    assert np.mean(values) == pytest.approx(chance, abs=1.0)


def test_constant_similarity_scores_zero():
    assert retrieve(np.zeros((4, 4)), [0, 0, 1, 1])["accuracy"].value == 0


def test_interval_contains_the_value_and_is_in_the_signature(vectors):
    groups = [number // 2 for number in range(12)]
    found = retrieve(cosines(vectors, vectors), groups, num_bootstrap=50)["mrr"]
    low, high = found.interval
    assert low <= found.value <= high and low < high
    assert "bs:50 groups" in found.signature


def test_queries_can_be_selected(vectors):
    groups = [number // 2 for number in range(12)]
    similar = cosines(vectors, vectors)
    assert retrieve(similar, groups, queries=[3, 7])["mrr"].detail["queries"] == 2
    every = retrieve(similar, groups)["mrr"].value
    halves = [retrieve(similar, groups, queries=range(n, n + 6))["mrr"].value for n in (0, 6)]
    assert np.mean(halves) == pytest.approx(every)


def test_retrieval_without_a_group_of_two_is_refused(vectors):
    with pytest.raises(DataError, match="none of the 12 items does"):
        retrieve(cosines(vectors, vectors), range(12))
