"""Perplexity and bits per character of language models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result


@dataclass(frozen=True, kw_only=True)
class TextSize:
    """Length of a text in tokens, words and characters."""

    num_tokens: int
    """Tokens of the model's tokeniser."""
    num_words: int
    """Words separated by whitespace, and line ends."""
    num_characters: int
    """Characters, including line ends."""
    num_unknown: int = 0
    """Unknown tokens."""

    @classmethod
    def of(cls, lines: Sequence[str], *, num_tokens: int, num_unknown: int = 0) -> "TextSize":
        """Count the words and characters of the lines of a text."""
        return cls(
            num_tokens=num_tokens,
            num_words=sum(len(line.split()) + line.endswith("\n") for line in lines),
            num_characters=sum(map(len, lines)),
            num_unknown=num_unknown,
        )


def perplexities(nll: float, size: TextSize, *, context: str) -> dict[str, Result]:
    """Compute perplexity per token and per word, and bits and nats per character.

    Models with different tokenisers are comparable per word or per character only, and only
    without unknown tokens, whose loss is too small.

    Args:
        nll: Negative log-likelihood of the whole text, in nats.
        size: Length of the text.
        context: Context of each prediction, as `key:value` pairs joined by `|`.
    """
    if not size.num_tokens:
        raise DataError("A text must have at least one token, but is empty.")
    units = {
        "token": size.num_tokens,
        "word": max(size.num_words, 1),
        "character": max(size.num_characters, 1),
    }
    unknown = f"|unknown:{size.num_unknown}" if size.num_unknown else ""

    def result(name: str, value: float, *, unit: str) -> Result:
        signature = f"unit:{unit}|units:{units[unit]}|{context}{unknown}"
        return Result(name, value, signature, detail={"nll": nll, "units": float(units[unit])})

    nll_per = {unit: nll / num for unit, num in units.items()}
    nats = nll_per["character"]
    return {
        "perplexity": result("perplexity", exp_or_infinity(nll_per["token"]), unit="token"),
        "word_perplexity": result("word perplexity", exp_or_infinity(nll_per["word"]), unit="word"),
        "bits_per_character": result("bits per character", nats / math.log(2), unit="character"),
        "nats_per_character": result("nats per character", nats, unit="character"),
    }


def perplexity(
    nlls: Sequence[float], lengths: Sequence[int], *, context: str, num_bootstrap: int = 0
) -> Result:
    """Compute the perplexity per token of sentences.

    Args:
        nlls: Negative log-likelihood of each sentence, in nats.
        lengths: Tokens of each sentence.
        context: Context of each prediction, as `key:value` pairs joined by `|`.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    num_tokens = sum(lengths)
    mean = ratio(
        "perplexity",
        nlls,
        lengths,
        signature=f"unit:token|units:{num_tokens}|{context}",
        num_bootstrap=num_bootstrap,
        scale=1,
        detail={"nll": sum(nlls), "units": float(num_tokens)},
    )
    # The exponential is monotonic, so the bounds of the interval map to bounds.
    interval = mean.interval and (
        exp_or_infinity(mean.interval[0]),
        exp_or_infinity(mean.interval[1]),
    )
    return replace(mean, value=exp_or_infinity(mean.value), interval=interval)


def exp_or_infinity(value: float) -> float:
    """Return `exp(value)`, or infinity on overflow."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
