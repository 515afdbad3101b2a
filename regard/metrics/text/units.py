"""What a text is counted in: words, phones, characters, and runs of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

Unit = Literal["word", "character"]


def characters(sentence: str) -> list[str]:
    """Cut a sentence into characters; a run of blanks is one, and none is at the ends."""
    return list(" ".join(sentence.split()))


UNITS: dict[str, Callable[[str], list[str]]] = {"word": str.split, "character": characters}
"""How a text is cut. Phones are written as words: with blanks between them."""


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count the runs of n words.

    Args:
        words: Units in their order.
        n: Length of a run.
    """
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
