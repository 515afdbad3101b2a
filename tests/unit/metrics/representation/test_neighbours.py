from collections import Counter

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.metrics.representation.vectors import neighbour_accuracy


def vote_by_hand(vectors, labels, num):
    right = 0
    for row, vector in enumerate(vectors):
        others = [other for other in range(len(vectors)) if other != row]
        others.sort(key=lambda other: sum((vectors[other] - vector) ** 2))
        counts = Counter(labels[other] for other in others[:num])
        most = max(counts.values())
        # Ties are broken by the nearest neighbour.
        nearest = next(labels[o] for o in others if counts[labels[o]] == most)
        right += nearest == labels[row]
    return 100 * right / len(vectors)


@pytest.mark.parametrize("seed", range(3))
def test_accuracy_equals_a_vote_by_hand(seed):
    generator = np.random.default_rng(seed)
    labels = generator.choice(["a", "b", "c"], 60).tolist()
    vectors = generator.normal(size=(60, 2)) + [["abc".index(label)] * 2 for label in labels]
    found = neighbour_accuracy(vectors, labels, num_neighbours=5)
    assert found.value == pytest.approx(vote_by_hand(vectors, labels, 5))
    assert found.signature.startswith("neighbours:5")


def test_separated_groups_have_full_accuracy():
    vectors = np.arange(40)[:, None] + 1000 * (np.arange(40) % 2)[:, None]
    labels = [f"group {number % 2}" for number in range(40)]
    assert neighbour_accuracy(vectors, labels, num_bootstrap=20).value == 100


def test_invalid_vectors_and_labels_are_refused():
    with pytest.raises(DataError, match="more than 15 items.*but there are 3"):
        neighbour_accuracy(np.zeros((3, 2)), ["a", "b", "a"])
    with pytest.raises(DataError, match="Each of 2 labels must have a vector"):
        neighbour_accuracy(np.zeros((3, 2)), ["a", "b"])
