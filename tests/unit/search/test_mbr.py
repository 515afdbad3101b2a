import random
from collections import Counter

import pytest

from regard.search.mbr import ngram_matches


@pytest.mark.parametrize("order", [1, 2, 3])
def test_matches_count_with_multiplicity(order):
    generator = random.Random(order)
    sequences = [generator.choices("ab", k=generator.randrange(8)) for _ in range(12)]
    matches, sizes = ngram_matches(sequences, order)
    counts = [
        Counter(tuple(one[at : at + order]) for at in range(len(one) - order + 1))
        for one in sequences
    ]
    assert sizes.tolist() == [count.total() for count in counts]
    for row, one in enumerate(counts):
        assert matches[row].tolist() == [(one & other).total() for other in counts]


def test_empty_sequences_share_nothing():
    matches, sizes = ngram_matches(["", "a"], 2)
    assert matches.tolist() == [[0, 0], [0, 0]] and sizes.tolist() == [0, 0]
