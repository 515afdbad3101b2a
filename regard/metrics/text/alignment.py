"""Word alignments: from attention weights, in Pharaoh files, and their error rate."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.core.files import write_text
from regard.metrics.result import Result

Link = tuple[int, int]
"""A source word and a target word that translate each other, both counted from 0."""


def parse_links(line: str, *, offset: int = 0) -> tuple[set[Link], set[Link]]:
    """Read the links of one sentence pair: `0-0 1p2`, `-` for sure ones and `p` for possible ones.

    Args:
        line: Links separated by whitespace, source before target.
        offset: The number of the first word in this file: 0 in Pharaoh's, 1 in NAACL's.

    Returns:
        The sure links, and the possible links, which include the sure ones.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-p])(\d+)", word)
        if match is None:
            raise DataError(f"A link must look like '3-4', or '3p4' if unsure, but is '{word}'.")
        link = (int(match[1]) - offset, int(match[3]) - offset)
        if min(link) < 0:
            raise DataError(f"The link '{word}' is below the first word, which is {offset}.")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return sure, possible


def format_links(links: Iterable[Link]) -> str:
    """Write the links of one sentence pair in Pharaoh format, in order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_pharaoh(path: Path, *, offset: int = 0) -> tuple[list[set[Link]], list[set[Link]]]:
    """Read a file of links, one sentence pair a line.

    Args:
        path: A text file.
        offset: The number of the first word in this file: 0 in Pharaoh's, 1 in NAACL's.

    Returns:
        For each pair the sure links, and for each pair the possible links.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error}.") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        try:
            pairs.append(parse_links(line, offset=offset))
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
    return [sure for sure, _ in pairs], [possible for _, possible in pairs]


def write_pharaoh(path: Path, links: Iterable[Iterable[Link]]) -> None:
    """Write a file of links, one sentence pair a line, counted from 0."""
    write_text(path, "".join(f"{format_links(pair)}\n" for pair in links))


def merge_to_words(
    weights: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> NDArray[Any]:
    """Turn weights between pieces into weights between words.

    A word is attended to as much as all its pieces together, and attends as its pieces do on
    average. What falls on pieces of no word, such as the end token, is left out.

    Args:
        weights: (T, S), attention of target pieces to source pieces.
        target_words: For each target piece the number of its word, or -1 for none.
        source_words: For each source piece the number of its word, or -1 for none.

    Returns:
        One row per target word, one column per source word.
    """
    pieces = np.asarray(weights, dtype=float)  # (T, S)
    if pieces.shape != (len(target_words), len(source_words)):
        raise DataError(
            "`weights` must have one row per target piece and one column per source piece, "
            f"{(len(target_words), len(source_words))}, but has the shape {pieces.shape}."
        )
    targets, sources = _membership(target_words), _membership(source_words)
    num_pieces = np.maximum(targets.sum(axis=1, keepdims=True), 1)
    merged: NDArray[Any] = (targets / num_pieces) @ pieces @ sources.T
    return merged


def links_from_weights(word_weights: ArrayLike, *, threshold: float = 0.0) -> set[Link]:
    """Link each target word to the source word it attends to most.

    Args:
        word_weights: One row per target word, one column per source word.
        threshold: A word whose greatest weight is not above this stays without a link.
    """
    weights = np.asarray(word_weights, dtype=float)
    if weights.size == 0:
        return set()
    best = weights.argmax(axis=1)
    return {
        (int(source), target)
        for target, source in enumerate(best)
        if weights[target, source] > threshold
    }


def alignment_error_rate(
    predicted: Sequence[set[Link]],
    sure: Sequence[set[Link]],
    possible: Sequence[set[Link]] | None = None,
) -> Result:
    """Measure AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|) over a corpus, 0 to 1; smaller is better.

    Och and Ney 2003.

    Args:
        predicted: A, the links to be judged, for each sentence pair.
        sure: S, the links that must be there.
        possible: P, the links that may be there; sure links always may. None means sure ones only.
    """
    possible = sure if possible is None else possible
    if not len(predicted) == len(sure) == len(possible):
        raise DataError(
            "`predicted`, `sure` and `possible` must have equal length, "
            f"but there are {len(predicted):,}, {len(sure):,} and {len(possible):,}."
        )
    num_predicted = sum(map(len, predicted))
    num_sure = sum(map(len, sure))
    if not num_sure:
        raise DataError("`sure` must hold at least one link, or there is nothing to find.")
    found = sum(len(a & s) for a, s in zip(predicted, sure, strict=True))
    allowed = sum(len(a & (s | p)) for a, s, p in zip(predicted, sure, possible, strict=True))
    return Result(
        name="AER",
        value=1 - (found + allowed) / (num_predicted + num_sure),
        signature="average:corpus|links:sure+possible",
        detail={
            "precision": allowed / num_predicted if num_predicted else 0.0,
            "recall": found / num_sure,
        },
    )


def _membership(words: Sequence[int]) -> NDArray[Any]:
    """Return a matrix (words, pieces) with a 1 where a piece belongs to a word."""
    numbers = np.arange(max(words, default=-1) + 1)
    membership: NDArray[Any] = numbers[:, None] == np.asarray(words, dtype=int)
    return membership.astype(float)
