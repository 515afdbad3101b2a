"""Automatic choice of tokens from the training data, with reasons."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.core.logging import logger
from regard.data.corpus import sample
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.field import texts_of
from regard.data.text.tokenizers import TokenizerConfig, TokenKind
from regard.data.text.vocabulary import train_tokenizer
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.unknown import MAX_UNKNOWN_TARGETS

WORD_LIMIT = 2_000
"""Largest number of distinct words for which tokens are words."""

SYMBOL_LENGTH = 2
"""Largest mean length of symbols separated by spaces, such as phonemes or digits."""

WORD_LENGTH = 20
"""Mean length of lines without spaces above which they are text, not single words."""

SUBWORDS = ("bpe", "unigram", "wordpiece")
"""Kinds of tokens that are learned subwords, which encode every word of a language."""

SUBWORD_SIZES = {10_000: 4_000, 1_000_000: 8_000}
"""Vocabulary sizes of subwords by the number of texts below which they are used."""

MAX_SUBWORDS = 32_000
"""Vocabulary size of subwords for more texts; about that of Vaswani et al. 2017."""

MAX_INSPECTED = 200_000
"""Maximum number of examples of a corpus by which tokens are chosen."""

MAX_HELD_OUT = 2_000
"""Largest number of validation texts to count unknown tokens in."""


@dataclass(frozen=True)
class TokenChoice:
    """Kind of tokens of the source or the target, and metrics of targets made of them."""

    kind: TokenKind
    vocab_size: int
    metrics: tuple[str, ...]
    reason: str


def choose_tokens(texts: Sequence[str], *, num_per_text: int = 1) -> TokenChoice:
    """Choose the kind and number of tokens by the words of the training data.

    Args:
        texts: The texts, or a sample of them.
        num_per_text: Number of texts of the training data that each of these stands for.
    """
    words = [text.split() for text in texts]
    distinct = Counter(word for line in words for word in line)
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
    # The share of words that occur once estimates the share of unseen words (Good 1953).
    num_once = sum(count == 1 for count in distinct.values())
    is_closed = num_once <= MAX_UNKNOWN_TARGETS * distinct.total()
    if len(distinct) <= WORD_LIMIT and is_closed:
        reason = f"only {len(distinct):,} distinct words"
        return TokenChoice("word", 4 * WORD_LIMIT, metrics, reason)
    reason = f"{len(distinct):,} distinct words, {num_once:,} of them once"
    return TokenChoice("bpe", subword_size(num_per_text * len(texts)), metrics, reason)


def fit_tokens(recipe: Recipe, splits: Splits, overrides: Sequence[str]) -> Recipe:
    """Return a recipe with tokens that fit the data, and log the changes.

    Tokens that lose at most `MAX_UNKNOWN_TARGETS` of the validation data are kept, but with no more
    subwords than the data can train. Kinds and sizes that overrides set are kept.

    Args:
        recipe: A recipe that was made for other data.
        splits: The data.
        overrides: Overrides of the user.
    """
    given = {item.partition("=")[0] for item in overrides}
    data = recipe.data
    for side in ("source",) if data.is_joint else ("source", "target"):
        config = getattr(data, side)
        if not isinstance(config, TokenizerConfig) or f"data.{side}.kind" in given:
            continue
        sides = ("source", "target") if data.is_joint else (side,)
        fitted, reason = _fit(config, splits, sides)
        if f"data.{side}.vocab_size" in given:
            fitted = replace(fitted, vocab_size=config.vocab_size)
        if fitted != config:
            change: dict[str, Any] = {side: fitted}
            data = replace(data, **change)
            title = " and ".join(sides).capitalize()
            logger.info("%s tokens: %s (%s).", title, _name(fitted), reason)
    return replace(recipe, data=data)


def _fit(
    config: TokenizerConfig, splits: Splits, sides: Sequence[str]
) -> tuple[TokenizerConfig, str]:
    """Return the settings of tokens that fit the sides of the data, and the reason for a change."""
    sampled = sample(splits.train, MAX_INSPECTED)
    train = {side: _texts(sampled, side) for side in sides}
    texts = [text for side in sides for text in train[side]]
    held_out = [text for side in sides for text in _texts(splits.valid, side)[:MAX_HELD_OUT]]
    num_subwords = subword_size(len(splits.train))
    num_per_text = len(splits.train) // len(sampled)
    choices = [choose_tokens(train[side], num_per_text=num_per_text) for side in sides]
    chosen, why = choices[0], choices[0].reason.removeprefix("only ")
    if config.kind in SUBWORDS:
        if any(choice.kind in ("bpe", "word") for choice in choices):
            reason = f"{len(splits.train):,} pairs; the recipe has {config.vocab_size:,}"
            return replace(config, vocab_size=min(config.vocab_size, num_subwords)), reason
        reason = f"{why}; the recipe has {_name(config)}"
    elif (lost := unknown_share(config, texts, held_out)) > MAX_UNKNOWN_TARGETS:
        reason = f"{why}; {_name(config)} of the recipe would lose {100 * lost:.1f} %"
    else:
        return config, ""
    fitted = replace(config, kind=chosen.kind, vocab_size=chosen.vocab_size, min_frequency=1)
    if chosen.kind == "word" and unknown_share(fitted, texts, held_out) > MAX_UNKNOWN_TARGETS:
        fitted = replace(fitted, kind="bpe", vocab_size=num_subwords)
    return fitted, reason


def unknown_share(config: TokenizerConfig, texts: Sequence[str], held_out: Sequence[str]) -> float:
    """Return the share of unknown tokens of held-out texts, with a vocabulary of other texts."""
    if config.kind in SUBWORDS:
        return 0.0
    tokenizer = train_tokenizer(config, texts)
    ids = [index for row in tokenizer.encode_batch(held_out) for index in row]
    return ids.count(tokenizer.unk) / max(len(ids), 1)


def _texts(examples: Sequence[Example], side: str) -> list[str]:
    if side == "target":
        return [example.target for example in examples]
    return [text for example in examples for text in texts_of(example.source)]


def _name(config: TokenizerConfig) -> str:
    return f"{config.kind}, {config.vocab_size:,}"


def subword_size(num_texts: int) -> int:
    """Return the vocabulary size of subwords for a number of texts."""
    return next((size for limit, size in SUBWORD_SIZES.items() if num_texts < limit), MAX_SUBWORDS)


def _mean_length(texts: Collection[str]) -> float:
    return sum(map(len, texts)) / len(texts)
