"""MaskedText in a line of text: where they are, and what could fill them."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.core.errors import ConfigError, DataError
from regard.data.text.field import TextField
from regard.data.text.tokenizers import Tokenizer
from regard.tasks.prediction import Prediction

MASK = re.compile(r"<mask>|\[MASK\]|_{3,}")
"""How a person writes that a word is missing."""

_LIKE_A_MASK = re.compile(
    r"[<\[({]+\s*(mask|gap|blank)\w*\s*[>\])}]+|\b_{1,2}(?!\w)", re.IGNORECASE
)
"""What was probably meant as a gap."""

_PLACEHOLDER = "x"
"""Stands where a gap is while the line is cut into pieces, so that all others are cut as ever."""


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A line with gaps, ready to be read."""

    line: str
    """The line as it was given."""
    values: list[int]
    """Its token ids, ends included, with the mask in each gap."""
    positions: list[int]
    """Where the gaps are among them."""


def has_mask(line: str) -> bool:
    """Tell whether something is missing in a line."""
    return MASK.search(line) is not None


def check_masks(lines: Sequence[str]) -> None:
    """Raise if a line has nothing to fill; empty lines may."""
    for number, line in enumerate(lines, start=1):
        if line.strip() and not has_mask(line):
            near = _LIKE_A_MASK.search(line)
            hint = f" Did you mean '<mask>' by '{near.group()}'?" if near else ""
            raise DataError(
                f"Line {number:,} must have a gap to fill, spelled '<mask>', '[MASK]' or '___', "
                f"but is '{shorten(line)}'.{hint}"
            )


def encode_masked(line: str, tokenizer: Tokenizer, marks: Iterable[int]) -> MaskedText:
    """Cut a line into tokens, with a mark in each gap.

    Args:
        line: A line with gaps, or without any.
        tokenizer: Cuts it into tokens.
        marks: The tokens that stand in the gaps, one after the other.
    """
    parts = MASK.split(unicodedata.normalize("NFC", line))
    text, stand_ins = parts[0], []
    for before, after in itertools.pairwise(parts):
        # A gap is a word of its own, even where it touches another.
        text += " " if before[-1:].isalnum() else ""
        stand_ins.append(len(text))
        text += _PLACEHOLDER + (" " if after[:1].isalnum() else "") + after
    found: list[int] = [tokenizer.sos]
    positions: list[int] = []
    left = iter(marks)
    for token, span in zip(tokenizer.encode(text), tokenizer.spans(text), strict=True):
        held = [position for position in stand_ins if span[0] <= position < span[1]]
        if not held:
            found.append(token)
        elif stand_ins.index(held[0]) == len(positions):
            positions.append(len(found))
            found.append(next(left))
    return MaskedText(line, [*found, tokenizer.eos], positions)


class MaskedTextField(TextField):
    """A source whose gaps read as sentinels: `the ___ ran` is `the <x0> ran <eos>`."""

    def __init__(self, tokenizer: Tokenizer, sentinels: Sequence[int]) -> None:
        super().__init__(tokenizer, has_start=False)
        self._sentinels = sentinels

    def read(self, raw: Any) -> list[int]:
        """Turn one line with gaps into token ids, the end included."""
        num_gaps = len(MASK.findall(raw))
        if num_gaps > len(self._sentinels):
            raise DataError(
                f"A line must have at most {len(self._sentinels)} gaps "
                f"(`data.corruption.num_sentinels`), but has {num_gaps}."
            )
        return encode_masked(raw, self.tokenizer, self._sentinels).values[1:]

    def read_all(self, texts: Sequence[Any]) -> list[list[int]]:
        """Turn many lines with gaps into token ids."""
        return [self.read(text) for text in texts]


class SpanField(TextField):
    """A target of spans, each after its sentinel: `<x0> cat <x1> away`."""

    def __init__(self, tokenizer: Tokenizer, spellings: Sequence[str]) -> None:
        super().__init__(tokenizer, has_start=True)
        self._sentinel = re.compile(f"({'|'.join(map(re.escape, spellings))})")

    def read(self, raw: Any) -> list[int]:
        """Turn sentinels and spans into token ids, ends included."""
        parts = self._sentinel.split(raw)
        ids = self.tokenizer.encode(parts[0])
        for sentinel, span in zip(parts[1::2], parts[2::2], strict=True):
            ids += [self.tokenizer.find(sentinel), *self.tokenizer.encode(span)]
        return [self.tokenizer.sos, *ids, self.tokenizer.eos]

    def read_all(self, texts: Sequence[Any]) -> list[list[int]]:
        """Turn many such targets into token ids."""
        return [self.read(text) for text in texts]

    def spans(self, text: str) -> list[str]:
        """Return the spans that a target names, without their sentinels."""
        return [span.strip() for span in self._sentinel.split(text)[2::2]]


def rank_fillings(
    gaps: MaskedText, log_probs: Tensor, tokenizer: Tokenizer, *, num_best: int
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
            text=fill_masks(gaps.line, [tokenizer.decode([token]) for token in chosen]),
            log_prob=total,
            tokens=tokenizer.tokens(chosen),
            token_log_probs=tuple(shares),
        )
        for total, chosen, shares in best
    ]


def fill_masks(line: str, words: Sequence[str]) -> str:
    """Put words into the gaps of a line, one after the other; gaps beyond the last stay empty."""
    missing = iter(words)
    return MASK.sub(lambda _: next(missing, ""), line)


def fill_all_masks(
    lines: Sequence[str], predict: Callable[[list[str]], list[list[Prediction]]]
) -> list[str]:
    """Fill the gaps of every line as is likeliest; a line without any is its own answer."""
    filled = iter(predict([line for line in lines if has_mask(line)]))
    return [next(filled)[0].text if has_mask(line) else line for line in lines]


def check_no_target(target: str | None) -> None:
    """Raise a `ConfigError` if a target is given to a task whose target is the line itself."""
    if target is not None:
        raise ConfigError(
            "`--target` is for models that answer a source, but this one fills gaps. "
            f"Write '{target}' where the gap is."
        )


def shorten(line: str) -> str:
    """Return a line as a message can hold it."""
    line = line.strip()
    return line if len(line) <= 60 else f"{line[:60]}…"
