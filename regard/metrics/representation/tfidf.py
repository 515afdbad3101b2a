"""Bags of words: a text as the counts of its words, rare words counting more (tf-idf)."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class BagOfWords:
    """Turns texts into vectors by their words alone (Spärck Jones 1972).

    Case and punctuation do not count. A word's weight is how often it stands in the text, times
    the logarithm of how rare it is among the texts that were learned from.

    Args:
        texts: What word frequencies are learned from.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter(word for text in texts for word in set(words_of(text)))
        self._num_texts = len(texts)
        self._counts = counts

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one vector a text, (N, V), over the words that these texts have."""
        bags = [Counter(words_of(text)) for text in texts]
        columns = {word: column for column, word in enumerate(sorted(set().union(*bags)))}
        vectors = np.zeros((len(bags), len(columns)))
        for row, bag in enumerate(bags):
            for word, count in bag.items():
                vectors[row, columns[word]] = count * self._weight(word)
        return vectors

    def _weight(self, word: str) -> float:
        return math.log((1 + self._num_texts) / (1 + self._counts[word])) + 1


def shared_words(left: str, right: str) -> float:
    """Return the share of the words of two texts that both have (Jaccard 1901)."""
    own, other = set(words_of(left)), set(words_of(right))
    return len(own & other) / max(len(own | other), 1)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.casefold())
