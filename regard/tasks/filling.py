"""Gaps in a line of text: where they are, and what could fill them."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.core.errors import DataError
from regard.data.tokenizers import Tokenizer
from regard.tasks.prediction import Prediction

GAP = re.compile(r"<mask>|\[MASK\]|_{3,}")
"""How a person writes that a word is missing."""

_LIKE_A_GAP = re.compile(r"[<\[({]+\s*(mask|gap|blank)\w*\s*[>\])}]+|\b_{1,2}(?!\w)", re.IGNORECASE)
"""What was probably meant as a gap."""

_STAND_IN = "x"
"""Stands where a gap is while the line is cut into pieces, so that all others are cut as ever."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """A line with gaps, ready to be read."""

    line: str
    """The line as it was given."""
    values: list[int]
    """Its token ids, ends included, with the mask in each gap."""
    places: list[int]
    """Where the gaps are among them."""


def has_gaps(line: str) -> bool:
    """Tell whether something is missing in a line."""
    return GAP.search(line) is not None


def check_gaps(lines: Sequence[str]) -> None:
    """Raise if a line has nothing to fill; empty lines may."""
    for number, line in enumerate(lines, start=1):
        if line.strip() and not has_gaps(line):
            near = _LIKE_A_GAP.search(line)
            hint = f" Did you mean '<mask>' by '{near.group()}'?" if near else ""
            raise DataError(
                f"Line {number:,} must have a gap to fill, spelled '<mask>', '[MASK]' or '___', "
                f"but is '{_shorten(line)}'.{hint}"
            )


def read_gaps(line: str, tokenizer: Tokenizer, marks: Iterable[int]) -> Gaps:
    """Cut a line into tokens, with a mark in each gap.

    Args:
        line: A line with gaps, or without any.
        tokenizer: Cuts it into tokens.
        marks: The tokens that stand in the gaps, one after the other.
    """
    parts = GAP.split(unicodedata.normalize("NFC", line))
    text, stand_ins = parts[0], []
    for before, after in itertools.pairwise(parts):
        # A gap is a word of its own, even where it touches another.
        text += " " if before[-1:].isalnum() else ""
        stand_ins.append(len(text))
        text += _STAND_IN + (" " if after[:1].isalnum() else "") + after
    found: list[int] = [tokenizer.sos]
    places: list[int] = []
    left = iter(marks)
    for token, span in zip(tokenizer.encode(text), tokenizer.spans(text), strict=True):
        held = [place for place in stand_ins if span[0] <= place < span[1]]
        if not held:
            found.append(token)
        elif stand_ins.index(held[0]) == len(places):
            places.append(len(found))
            found.append(next(left))
    return Gaps(line, [*found, tokenizer.eos], places)


def rank_fillings(
    gaps: Gaps, log_probs: Tensor, tokenizer: Tokenizer, *, num_best: int
) -> list[Prediction]:
    """Fill all gaps of a line, the likeliest fillings first.

    Args:
        gaps: The line.
        log_probs: (L, V), of every token in each gap.
        tokenizer: Knows how tokens are written.
        num_best: How many fillings.
    """
    special = [tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask]
    log_probs = log_probs.clone()
    log_probs[:, special] = float("-inf")
    best: list[tuple[float, list[int], list[float]]] = [(0.0, [], [])]
    for row in log_probs:
        values, tokens = row.topk(min(num_best, len(row) - len(special)))
        best = sorted(
            (
                (total + value, [*chosen, token], [*shares, value])
                for total, chosen, shares in best
                for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
            ),
            key=lambda one: -one[0],
        )[:num_best]
    return [
        Prediction(
            text=fill(gaps.line, [tokenizer.decode([token]) for token in chosen]),
            log_prob=total,
            tokens=tuple(tokenizer.token(token) for token in chosen),
            token_log_probs=tuple(shares),
        )
        for total, chosen, shares in best
    ]


def fill(line: str, words: Sequence[str]) -> str:
    """Put words into the gaps of a line, one after the other; gaps beyond the last stay empty."""
    missing = iter(words)
    return GAP.sub(lambda _: next(missing, ""), line)


def _shorten(line: str) -> str:
    return line if len(line) <= 60 else f"{line[:60]}…"
