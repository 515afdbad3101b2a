"""Lines of text → what a masked language model reads at once: lines, windows, or pairs of texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.core.keyed_random import uniform
from regard.data.text.tokenizers import Tokenizer

PackingKind = Literal["lines", "windows", "pairs", "swaps"]

Sequences = list[list[int]]


@dataclass(frozen=True, slots=True)
class Packed:
    """Texts ready to be read, ends included."""

    sequences: Sequences
    """Token ids of each text or pair of texts."""
    belongs: list[bool] | None = None
    """Whether the two texts of each pair follow one another; absent where there are no pairs."""


def pack_lines(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Read each line by itself; one longer than `max_length` is cut into several."""
    room = max_length - 2
    pieces = (piece for line in lines for piece in _cut(line, room))
    return Packed([[tokenizer.sos, *piece, tokenizer.eos] for piece in pieces])


def pack_windows(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Lay the lines end to end and cut them into windows, all full but the last."""
    windows = cut_windows(lines, max_length - 2)
    return pack_lines(windows, max_length, tokenizer=tokenizer, seed=seed)


def pack_pairs(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Cut windows in two; half of them get the second part of another (Devlin et al. 2019)."""
    halves = _halve(lines, max_length - 3, seed=seed)
    belongs, others = _toss(len(halves), seed=seed)
    pairs = [
        (first, second if does_belong else halves[other][1][: max_length - 3 - len(first)])
        for (first, second), does_belong, other in zip(halves, belongs, others, strict=True)
    ]
    return _pack_pairs(pairs, belongs, tokenizer)


def pack_swaps(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Cut windows in two and exchange the parts of half of them (Lan et al. 2020)."""
    halves = _halve(lines, max_length - 3, seed=seed)
    belongs, _ = _toss(len(halves), seed=seed)
    pairs = [
        (first, second) if does_belong else (second, first)
        for (first, second), does_belong in zip(halves, belongs, strict=True)
    ]
    return _pack_pairs(pairs, belongs, tokenizer)


def _pack_pairs(
    pairs: list[tuple[list[int], list[int]]], belongs: list[bool], tokenizer: Tokenizer
) -> Packed:
    sos, eos = tokenizer.sos, tokenizer.eos
    return Packed([[sos, *first, eos, *second, eos] for first, second in pairs], belongs)


def cut_windows(lines: Sequences, length: int) -> Sequences:
    """Lay lines end to end and cut them into windows, all full but the last."""
    return list(_cut([token for line in lines for token in line], length))


def _cut(tokens: Sequence[int], length: int) -> Iterator[list[int]]:
    for start in range(0, len(tokens), length):
        yield list(tokens[start : start + length])


def _halve(lines: Sequences, room: int, *, seed: int) -> list[tuple[list[int], list[int]]]:
    """Cut the text into windows and each of them in two, somewhere in its middle half."""
    # A single token has no second half.
    windows = [window for window in cut_windows(lines, room) if len(window) > 1]
    shares = 0.25 + 0.5 * uniform((seed, 0), np.arange(len(windows)), 1)[:, 0]
    places = [
        max(1, round(share * len(window)))
        for share, window in zip(shares.tolist(), windows, strict=True)
    ]
    return [(window[:place], window[place:]) for window, place in zip(windows, places, strict=True)]


def _toss(num: int, *, seed: int) -> tuple[list[bool], list[int]]:
    """Say for each window whether it stays as it is, and which other one it meets if not."""
    tosses = uniform((seed, 1), np.arange(num), 2)
    steps = 1 + (tosses[:, 1] * (num - 1)).astype(np.int64)
    return (tosses[:, 0] < 0.5).tolist(), ((np.arange(num) + steps) % max(num, 1)).tolist()


PACKINGS: dict[str, Callable[..., Packed]] = {
    "lines": pack_lines,
    "windows": pack_windows,
    "pairs": pack_pairs,
    "swaps": pack_swaps,
}
