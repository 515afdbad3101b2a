"""Lines of text with masks: tokenise them, rank predictions, fill the masks."""

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
"""Spellings of a mask."""

_LIKE_A_MASK = re.compile(r"[<\[({]+\s*(mask|blank)\w*\s*[>\])}]+|\b_{1,2}(?!\w)", re.IGNORECASE)
"""Probable misspellings of a mask."""

_PLACEHOLDER = "x"
"""Word in place of a mask during tokenisation, so that other words are tokenised as usual."""


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A tokenised line with masks."""

    line: str
    """The raw line."""
    values: list[int]
    """Token ids, with start, end and mask tokens."""
    positions: list[int]
    """Positions of the mask tokens."""


def has_mask(line: str) -> bool:
    """Return whether a line has a mask."""
    return MASK.search(line) is not None


def check_masks(lines: Sequence[str]) -> None:
    """Raise a `DataError` if a line that is not empty has no mask."""
    for number, line in enumerate(lines, start=1):
        if line.strip() and not has_mask(line):
            near = _LIKE_A_MASK.search(line)
            hint = f" Did you mean '<mask>' by '{near.group()}'?" if near else ""
            raise DataError(
                f"Line {number:,} must have a mask, spelled '<mask>', '[MASK]' or '___', "
                f"but is '{shorten(line)}'.{hint}"
            )


def encode_masked(line: str, tokenizer: Tokenizer, mask_ids: Iterable[int]) -> MaskedText:
    """Tokenise a line, with a token for each mask.

    Args:
        line: A line with or without masks.
        tokenizer: The tokeniser.
        mask_ids: Token ids of the masks, in order.
    """
    parts = MASK.split(unicodedata.normalize("NFC", line))
    text, offsets = parts[0], []
    for before, after in itertools.pairwise(parts):
        # A mask is a separate word, even without whitespace around it.
        text += " " if before[-1:].isalnum() else ""
        offsets.append(len(text))
        text += _PLACEHOLDER + (" " if after[:1].isalnum() else "") + after
    values: list[int] = [tokenizer.sos]
    positions: list[int] = []
    remaining = iter(mask_ids)
    for token, span in zip(tokenizer.encode(text), tokenizer.spans(text), strict=True):
        inside = [offset for offset in offsets if span[0] <= offset < span[1]]
        if not inside:
            values.append(token)
        elif offsets.index(inside[0]) == len(positions):
            positions.append(len(values))
            values.append(next(remaining))
    return MaskedText(line, [*values, tokenizer.eos], positions)


class MaskedTextField(TextField):
    """A source field that encodes masks as sentinels: `the ___ ran` is `the <x0> ran <eos>`."""

    def __init__(self, tokenizer: Tokenizer, sentinels: Sequence[int]) -> None:
        super().__init__(tokenizer, has_start=False)
        self._sentinels = sentinels

    def read(self, raw: Any) -> list[int]:
        """Return the token ids of a line with masks, the end token included."""
        num_masks = len(MASK.findall(raw))
        if num_masks > len(self._sentinels):
            raise DataError(
                f"A line must have at most {len(self._sentinels)} masks "
                f"(`data.corruption.num_sentinels`), but has {num_masks}."
            )
        return encode_masked(raw, self.tokenizer, self._sentinels).values[1:]

    def read_all(self, texts: Sequence[Any]) -> list[list[int]]:
        """Return the token ids of several lines."""
        return [self.read(text) for text in texts]


class SpanField(TextField):
    """A target field of spans, each after its sentinel: `<x0> cat <x1> away`."""

    def __init__(self, tokenizer: Tokenizer, spellings: Sequence[str]) -> None:
        super().__init__(tokenizer, has_start=True)
        self._sentinel = re.compile(f"({'|'.join(map(re.escape, spellings))})")

    def read(self, raw: Any) -> list[int]:
        """Return the token ids of sentinels and spans, with start and end token."""
        parts = self._sentinel.split(raw)
        ids = self.tokenizer.encode(parts[0])
        for sentinel, span in zip(parts[1::2], parts[2::2], strict=True):
            ids += [self.tokenizer.find(sentinel), *self.tokenizer.encode(span)]
        return [self.tokenizer.sos, *ids, self.tokenizer.eos]

    def read_all(self, texts: Sequence[Any]) -> list[list[int]]:
        """Return the token ids of several targets."""
        return [self.read(text) for text in texts]

    def spans(self, text: str) -> list[str]:
        """Return the spans of a target, without their sentinels."""
        return [span.strip() for span in self._sentinel.split(text)[2::2]]


def rank_fillings(
    masked: MaskedText, log_probs: Tensor, tokenizer: Tokenizer, *, num_best: int
) -> list[Prediction]:
    """Fill all masks of a line, the most probable combinations of tokens first.

    Args:
        masked: The line.
        log_probs: (L, V), log-probabilities of the tokens of each mask.
        tokenizer: The tokeniser.
        num_best: Number of predictions.
    """
    special = [tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask]
    log_probs = log_probs.clone()
    log_probs[:, special] = float("-inf")
    best: list[tuple[float, list[int], list[float]]] = [(0.0, [], [])]
    for row in log_probs:
        values, tokens = row.topk(min(num_best, len(row) - len(special)))
        best = sorted(
            (
                (total + value, [*chosen, token], [*chosen_values, value])
                for total, chosen, chosen_values in best
                for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
            ),
            key=lambda one: -one[0],
        )[:num_best]
    return [
        Prediction(
            text=fill_masks(masked.line, [tokenizer.decode([token]) for token in chosen]),
            log_prob=total,
            tokens=tokenizer.tokens(chosen),
            token_log_probs=tuple(chosen_values),
        )
        for total, chosen, chosen_values in best
    ]


def fill_masks(line: str, words: Sequence[str]) -> str:
    """Replace the masks of a line by words, in order; remove masks beyond the last word."""
    remaining = iter(words)
    return MASK.sub(lambda _: next(remaining, ""), line)


def fill_all_masks(
    lines: Sequence[str], predict: Callable[[list[str]], list[list[Prediction]]]
) -> list[str]:
    """Fill the masks of every line with the best prediction; return other lines unchanged."""
    filled = iter(predict([line for line in lines if has_mask(line)]))
    return [next(filled)[0].text if has_mask(line) else line for line in lines]


def check_no_target(target: str | None) -> None:
    """Raise a `ConfigError` if a target is given to a task whose target is the line itself."""
    if target is not None:
        raise ConfigError(
            "`--target` is for models with a source and a target, but this model fills masks. "
            f"Write '{target}' in place of the mask."
        )


def shorten(line: str) -> str:
    """Return a line for a message, truncated to 60 characters."""
    line = line.strip()
    return line if len(line) <= 60 else f"{line[:60]}…"
