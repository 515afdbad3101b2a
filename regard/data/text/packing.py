"""Packing of lines into sequences of a masked language model: lines, windows, or pairs of texts."""

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
    """Packed sequences with start and end tokens."""

    sequences: Sequences
    """Token ids of each text or pair of texts."""
    is_next: list[bool] | None = None
    """Whether the second text of each pair follows the first; None without pairs."""


def pack_lines(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Make one sequence of each line; split lines longer than `max_length`."""
    parts = (part for line in lines for part in _split(line, max_length - 2))
    return Packed([[tokenizer.sos, *part, tokenizer.eos] for part in parts])


def pack_windows(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Concatenate the lines and split them into windows; only the last may be shorter."""
    windows = cut_windows(lines, max_length - 2)
    return pack_lines(windows, max_length, tokenizer=tokenizer, seed=seed)


def pack_pairs(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Split windows in two; half of them get another's second part (Devlin et al. 2019)."""
    halves = _halve(lines, max_length - 3, seed=seed)
    is_next, others = _sample_pairs(len(halves), seed=seed)
    pairs = [
        (first, second if keeps else halves[other][1][: max_length - 3 - len(first)])
        for (first, second), keeps, other in zip(halves, is_next, others, strict=True)
    ]
    return _join_pairs(pairs, is_next, tokenizer)


def pack_swaps(lines: Sequences, max_length: int, *, tokenizer: Tokenizer, seed: int) -> Packed:
    """Split windows in two and swap the parts of half of them (Lan et al. 2020)."""
    halves = _halve(lines, max_length - 3, seed=seed)
    is_next, _ = _sample_pairs(len(halves), seed=seed)
    pairs = [
        (first, second) if keeps else (second, first)
        for (first, second), keeps in zip(halves, is_next, strict=True)
    ]
    return _join_pairs(pairs, is_next, tokenizer)


def _join_pairs(
    pairs: list[tuple[list[int], list[int]]], is_next: list[bool], tokenizer: Tokenizer
) -> Packed:
    sos, eos = tokenizer.sos, tokenizer.eos
    return Packed([[sos, *first, eos, *second, eos] for first, second in pairs], is_next)


def cut_windows(lines: Sequences, length: int) -> Sequences:
    """Concatenate lines and split them into windows; only the last may be shorter."""
    return list(_split([token for line in lines for token in line], length))


def _split(tokens: Sequence[int], length: int) -> Iterator[list[int]]:
    for start in range(0, len(tokens), length):
        yield list(tokens[start : start + length])


def _halve(lines: Sequences, length: int, *, seed: int) -> list[tuple[list[int], list[int]]]:
    """Split the text into windows, and each window at a random position in its middle half."""
    # A single token has no second half.
    windows = [window for window in cut_windows(lines, length) if len(window) > 1]
    shares = 0.25 + 0.5 * uniform((seed, 0), np.arange(len(windows)), 1)[:, 0]
    cuts = [
        max(1, round(share * len(window)))
        for share, window in zip(shares.tolist(), windows, strict=True)
    ]
    return [(window[:cut], window[cut:]) for window, cut in zip(windows, cuts, strict=True)]


def _sample_pairs(num: int, *, seed: int) -> tuple[list[bool], list[int]]:
    """Sample whether each window keeps its second part, and another window to take one from."""
    uniforms = uniform((seed, 1), np.arange(num), 2)
    steps = 1 + (uniforms[:, 1] * (num - 1)).astype(np.int64)
    return (uniforms[:, 0] < 0.5).tolist(), ((np.arange(num) + steps) % max(num, 1)).tolist()


PACKINGS: dict[str, Callable[..., Packed]] = {
    "lines": pack_lines,
    "windows": pack_windows,
    "pairs": pack_pairs,
    "swaps": pack_swaps,
}
