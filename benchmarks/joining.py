"""Longer examples from short ones: neighbouring pairs set side by side."""

import random
from collections.abc import Sequence

from regard.core.errors import DataError
from regard.data.example import Example


def join_neighbours(
    examples: Sequence[Example], *, most_words: int, seed: int = 0, most_joined: int = 5
) -> list[Example]:
    """Cut a corpus into runs of 1 to `most_joined` neighbours and make each run one example.

    Corpora of captions and phrases hold few long sentences, and what a fixed context costs shows
    on long ones. Every example is used once; one that is too long by itself is left out.
    Alignments, tags and further references are not carried over.

    Args:
        examples: In the order in which they are neighbours.
        most_words: Most blank-separated words on either side of a joined example.
        seed: What the lengths of the runs are drawn from.
        most_joined: Most neighbours in a run.
    """
    if most_words < 1 or most_joined < 1:
        raise DataError(
            f"`most_words` and `most_joined` must be at least 1, "
            f"but are {most_words} and {most_joined}."
        )
    draw = random.Random(seed)
    joined: list[Example] = []
    place = 0
    while place < len(examples):
        run = examples[place : place + draw.randint(1, most_joined)]
        while len(run) > 1 and _longest(run) > most_words:
            run = run[:-1]
        if _longest(run) <= most_words:
            joined.append(
                Example(
                    source=" ".join(example.source for example in run),
                    target=" ".join(example.target for example in run),
                )
            )
        place += len(run)
    return joined


def _longest(run: Sequence[Example]) -> int:
    sources = sum(len(example.source.split()) for example in run)
    targets = sum(len(example.target.split()) for example in run)
    return max(sources, targets)
