"""Numbers of n-grams that sequences share."""

from collections import Counter
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor


def ngram_matches(sequences: Sequence[Sequence[Hashable]], order: int) -> tuple[Tensor, Tensor]:
    """Return the number of n-grams that each pair of sequences shares, and that each has.

    Repeated occurrences of an n-gram count as often as both sequences have them.

    Args:
        sequences: W sequences.
        order: Number of items of an n-gram.

    Returns:
        (W, W) and (W,), in double precision.
    """
    # Each occurrence has a column of its own: the matrix product counts shared occurrences.
    columns: dict[tuple[tuple[Hashable, ...], int], int] = {}
    entries = []
    for row, items in enumerate(sequences):
        counts: Counter[tuple[Hashable, ...]] = Counter()
        for first in range(len(items) - order + 1):
            ngram = tuple(items[first : first + order])
            counts[ngram] += 1
            entries.append((row, columns.setdefault((ngram, counts[ngram]), len(columns))))
    indicators = torch.zeros(len(sequences), len(columns), dtype=torch.float64)
    if entries:
        rows, indices = torch.tensor(entries).T
        indicators[rows, indices] = 1.0
    return indicators @ indicators.T, indicators.sum(1)
