"""Automatic choice of tokens from the training data, with reasons."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

WORD_LIMIT = 2_000
"""Largest number of distinct words for which tokens are words."""

SYMBOL_LENGTH = 2
"""Largest mean length of symbols separated by spaces, such as phonemes or digits."""

WORD_LENGTH = 20
"""Mean length of lines without spaces above which they are text, not single words."""


@dataclass(frozen=True)
class TokenChoice:
    """Kind of tokens of the source or the target, and metrics of targets made of them."""

    kind: str
    vocab_size: int
    metrics: tuple[str, ...]
    reason: str


def choose_tokens(texts: Sequence[str]) -> TokenChoice:
    """Choose the kind and number of tokens by the words of the training data."""
    words = [text.split() for text in texts]
    distinct = {word for line in words for word in line}
    mean_words = sum(map(len, words)) / len(words)
    if mean_words < 1.5 and _mean_length(texts) > WORD_LENGTH:
        reason = f"text without spaces, {_mean_length(texts):.0f} characters per line"
        return TokenChoice("char", 8_000, ("chrf", "bleu_char", "cer", "accuracy"), reason)
    if mean_words < 1.5:
        return TokenChoice("char", 1_000, ("cer", "accuracy"), "most lines are a single word")
    if len(distinct) <= WORD_LIMIT and _mean_length(distinct) <= SYMBOL_LENGTH:
        reason = f"{len(distinct):,} distinct symbols separated by spaces"
        return TokenChoice("whitespace", 4 * WORD_LIMIT, ("per", "word_errors"), reason)
    metrics = ("bleu", "chrf", "accuracy", "lecture_bleu")
    if len(distinct) <= WORD_LIMIT:
        reason = f"only {len(distinct):,} distinct words"
        return TokenChoice("word", 4 * WORD_LIMIT, metrics, reason)
    size = 4_000 if len(texts) < 10_000 else 8_000
    return TokenChoice("bpe", size, metrics, f"{len(distinct):,} distinct words")


def _mean_length(texts: Collection[str]) -> float:
    return sum(map(len, texts)) / len(texts)
