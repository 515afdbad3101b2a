"""Word alignments: extraction from attention weights, Pharaoh files, alignment error rate."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.core.errors import DataError
from regard.core.files import check_regular, write_text
from regard.metrics.result import Result

Link = tuple[int, int]
"""Indices of an aligned source word and target word, counted from 0."""


def parse_links(line: str, *, offset: int = 0) -> tuple[set[Link], set[Link]]:
    """Parse the links of one sentence pair, such as `0-0 1p2`: `-` is sure, `p` is possible.

    Args:
        line: Links separated by whitespace, source before target.
        offset: Index of the first word: 0 in the Pharaoh format, 1 in the NAACL format.

    Returns:
        The sure links, and the possible links, which include the sure ones.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-p])(\d+)", word)
        if match is None:
            raise DataError(f"A link must have the form '3-4' or '3p4', but is '{word}'.")
        link = (int(match[1]) - offset, int(match[3]) - offset)
        if min(link) < 0:
            raise DataError(f"The link '{word}' is below the first word, which is {offset}.")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return sure, possible


def format_links(links: Iterable[Link]) -> str:
    """Format the links of one sentence pair in Pharaoh format, in order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_pharaoh(path: Path, *, offset: int = 0) -> tuple[list[set[Link]], list[set[Link]]]:
    """Read a file of links, one sentence pair per line.

    Args:
        path: A text file.
        offset: Index of the first word: 0 in the Pharaoh format, 1 in the NAACL format.

    Returns:
        The sure links of each pair, and the possible links of each pair.
    """
    check_regular(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error}.") from None
    return parse_pharaoh(lines, str(path), offset=offset)


def parse_pharaoh(
    lines: Iterable[str], name: str, *, offset: int = 0
) -> tuple[list[set[Link]], list[set[Link]]]:
    """Parse lines of links as `read_pharaoh` does; errors have the name of the file."""
    pairs = []
    for number, line in enumerate(lines, start=1):
        try:
            pairs.append(parse_links(line, offset=offset))
        except DataError as error:
            raise DataError(f"{name}, line {number:,}: {error}") from None
    return [sure for sure, _ in pairs], [possible for _, possible in pairs]


def write_pharaoh(path: Path, links: Iterable[Iterable[Link]]) -> None:
    """Write a file of links, one sentence pair per line, counted from 0."""
    write_text(path, "".join(f"{format_links(pair)}\n" for pair in links))


def merge_to_words(
    weights: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> NDArray[Any]:
    """Convert attention weights between subword tokens to weights between words.

    The weight of a source word is the sum over its tokens; the weights of a target word are the
    mean over its tokens. Tokens of no word, such as the end token, are omitted.

    Args:
        weights: (..., T, S), attention of target tokens to source tokens.
        target_words: Word index of each target token, or -1 for none.
        source_words: Word index of each source token, or -1 for none.

    Returns:
        One row per target word, one column per source word.
    """
    by_token = np.asarray(weights, dtype=float)  # (..., T, S)
    if by_token.shape[-2:] != (len(target_words), len(source_words)):
        raise DataError(
            "`weights` must have one row per target token and one column per source token, "
            f"{(len(target_words), len(source_words))}, but has the shape {by_token.shape}."
        )
    targets, sources = _membership(target_words), _membership(source_words)
    num_tokens = np.maximum(targets.sum(axis=1, keepdims=True), 1)
    merged: NDArray[Any] = (targets / num_tokens) @ by_token @ sources.T
    return merged


def links_from_weights(word_weights: ArrayLike, *, threshold: float = 0.0) -> set[Link]:
    """Align each target word with the source word of largest attention weight.

    Args:
        word_weights: One row per target word, one column per source word.
        threshold: A word gets no link if its largest weight is not above this.
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
    """Compute AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|) over a corpus, 0 to 1; smaller is better.

    Och and Ney 2003.

    Args:
        predicted: A, the predicted links of each sentence pair.
        sure: S, the sure gold links.
        possible: P, the possible gold links; sure links are added. None means sure links only.
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
        raise DataError("`sure` must hold at least one link, but is empty.")
    num_sure_hits = sum(len(a & s) for a, s in zip(predicted, sure, strict=True))
    num_hits = sum(len(a & (s | p)) for a, s, p in zip(predicted, sure, possible, strict=True))
    return Result(
        name="AER",
        value=1 - (num_sure_hits + num_hits) / (num_predicted + num_sure),
        signature="average:corpus|links:sure+possible",
        detail={
            "precision": num_hits / num_predicted if num_predicted else 0.0,
            "recall": num_sure_hits / num_sure,
        },
    )


def _membership(words: Sequence[int]) -> NDArray[Any]:
    """Return a matrix (words, tokens) with 1 for each token of a word."""
    indices = np.arange(max(words, default=-1) + 1)
    membership: NDArray[Any] = indices[:, None] == np.asarray(words, dtype=int)
    return membership.astype(float)
