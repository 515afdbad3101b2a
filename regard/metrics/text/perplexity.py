"""Perplexity and its kin: how surprised a language model is by a text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result


@dataclass(frozen=True, kw_only=True)
class TextSize:
    """How long a text is, in every unit that surprise is shared by."""

    num_tokens: int
    """Tokens, as the model reads them."""
    num_words: int
    """What stands between whitespace, and every line end."""
    num_characters: int
    """Characters, line ends included."""
    num_unknown: int = 0
    """Tokens that stand for something the vocabulary does not hold."""

    @classmethod
    def of(cls, lines: Sequence[str], *, num_tokens: int, num_unknown: int = 0) -> "TextSize":
        """Measure the lines of a text."""
        return cls(
            num_tokens=num_tokens,
            num_words=sum(len(line.split()) + line.endswith("\n") for line in lines),
            num_characters=sum(map(len, lines)),
            num_unknown=num_unknown,
        )


def perplexities(nll: float, size: TextSize, *, context: str) -> dict[str, Result]:
    """Share the surprise of a text by its tokens, its words and its characters.

    Only what is shared by words or characters can be compared between models that cut texts
    differently, and only where nothing is unknown: what a vocabulary lacks costs too little.

    Args:
        nll: Negative log-likelihood of the whole text, in nats.
        size: How long the text is.
        context: What each token was foretold from, as `key:value` pairs joined by `|`.
    """
    if not size.num_tokens:
        raise DataError("A text must have at least one token to be measured, but is empty.")
    units = {
        "token": size.num_tokens,
        "word": max(size.num_words, 1),
        "character": max(size.num_characters, 1),
    }
    unknown = f"|unknown:{size.num_unknown}" if size.num_unknown else ""

    def result(name: str, value: float, *, unit: str) -> Result:
        signature = f"unit:{unit}|units:{units[unit]}|{context}{unknown}"
        return Result(name, value, signature, detail={"nll": nll, "units": float(units[unit])})

    shares = {unit: nll / num for unit, num in units.items()}
    nats = shares["character"]
    return {
        "perplexity": result("perplexity", exp_or_infinity(shares["token"]), unit="token"),
        "word_perplexity": result("word perplexity", exp_or_infinity(shares["word"]), unit="word"),
        "bits_per_character": result("bits per character", nats / math.log(2), unit="character"),
        "nats_per_character": result("nats per character", nats, unit="character"),
    }


def perplexity(
    nlls: Sequence[float], lengths: Sequence[int], *, context: str, num_bootstrap: int = 0
) -> Result:
    """Share the surprise of sentences by their tokens.

    Args:
        nlls: Negative log-likelihood of each sentence, in nats.
        lengths: Tokens of each sentence.
        context: What each token was foretold from, as `key:value` pairs joined by `|`.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
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
    # Larger means are larger perplexities, so the interval's ends stay its ends.
    interval = mean.interval and (
        exp_or_infinity(mean.interval[0]),
        exp_or_infinity(mean.interval[1]),
    )
    return replace(mean, value=exp_or_infinity(mean.value), interval=interval)


def exp_or_infinity(value: float) -> float:
    """Return e to a power, or infinity where no number is large enough."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
