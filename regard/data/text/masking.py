"""Masked language modelling: which tokens are masked, one by one or in spans."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from regard.core.config import Config, Positive, UnitInterval, Within
from regard.core.errors import ConfigError
from regard.core.keyed_random import Uniform, uniform
from regard.data.text.tokenizers import Tokenizer

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Sample = Callable[[int], Uniform]
"""Purpose → random numbers, one a token."""

_CHOICE, _REPLACEMENT, _TOKEN, _LENGTH = range(4)
"""Purposes of random numbers, which make them independent."""


@dataclass(frozen=True, kw_only=True)
class BaseMaskingConfig(Config):
    """Settings shared by all kinds of masking."""

    share: Annotated[float, Within(0.0, 0.9)] = 0.15
    """Share of a text's tokens that are masked; at least one token is."""
    masked_share: UnitInterval = 0.8
    """Share of the masked tokens that are replaced by the mask token."""
    random_share: UnitInterval = 0.1
    """Share of the masked tokens that are replaced by a random token; the rest are unchanged."""
    is_dynamic: bool = True
    """Whether every epoch masks other tokens (Liu et al. 2019)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masked_share + self.random_share > 1:
            raise ConfigError(
                f"`random_share` must be at most 1 - `masked_share` ({1 - self.masked_share:g}), "
                f"but is {self.random_share:g}."
            )


@dataclass(frozen=True, kw_only=True)
class TokenMaskingConfig(BaseMaskingConfig):
    """Masking of single tokens (Devlin et al. 2019)."""

    kind: Literal["tokens"] = "tokens"
    """Unit of masking."""


@dataclass(frozen=True, kw_only=True)
class SpanMaskingConfig(BaseMaskingConfig):
    """Masking of contiguous spans, each replaced in one way (Joshi et al. 2020)."""

    kind: Literal["spans"] = "spans"
    """Unit of masking."""
    stop: Annotated[float, Within(0.01, 1.0)] = 0.2
    """Probability that a span ends after each of its words."""
    max_words: Positive = 10
    """Maximum number of words in a span."""
    is_whole_words: bool = True
    """Whether spans start and end at word boundaries."""


MaskingConfig = TokenMaskingConfig | SpanMaskingConfig


@dataclass(frozen=True, slots=True)
class Masked:
    """Texts with masked tokens."""

    values: Ids
    """(B, S) token ids after masking."""
    is_masked: Flags
    """(B, S) True = to be predicted."""


class Masking(ABC):
    """Masking of tokens, a function of the seed, the epoch and the text's number only.

    Args:
        config: Share of masked tokens and of their replacements.
        tokenizer: Tokenizer with a mask token. Special tokens are never masked.
        seed: Random seed.
    """

    def __init__(self, config: MaskingConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._mask = tokenizer.mask
        special = [tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask]
        self._is_maskable = np.ones(tokenizer.vocab_size, dtype=np.bool_)
        self._is_maskable[special] = False
        self._ordinary = np.flatnonzero(self._is_maskable)

    def mask(self, values: Ids, rows: Ids, *, epoch: int) -> Masked:
        """Mask tokens.

        Args:
            values: (B, S) token ids, padded at the end.
            rows: (B,) numbers of the texts.
            epoch: Ignored by static masking.
        """
        number = epoch if self._config.is_dynamic else 0
        is_maskable = self._is_maskable[values]

        def sample(purpose: int) -> Uniform:
            return uniform((self._seed, number, purpose), rows, values.shape[1])

        num_real = is_maskable.sum(1)
        num = np.minimum(np.maximum(np.rint(self._config.share * num_real), 1), num_real)
        is_masked, uniforms = self._choose(values, num.astype(np.int64), sample)
        is_replaced = is_masked & (uniforms < self._config.masked_share)
        is_random = is_masked & ~is_replaced
        is_random &= uniforms < self._config.masked_share + self._config.random_share
        replaced = np.where(is_replaced, self._mask, values)
        random = self._ordinary[(sample(_TOKEN) * len(self._ordinary)).astype(np.int64)]
        return Masked(np.where(is_random, random, replaced), is_masked)

    @abstractmethod
    def _choose(self, values: Ids, num: Ids, sample: Sample) -> tuple[Flags, Uniform]:
        """Choose `num` (B,) tokens of every text (B, S), and a random number for each."""


class TokenMasking(Masking):
    """Masking of tokens chosen uniformly, each replaced independently."""

    def _choose(self, values: Ids, num: Ids, sample: Sample) -> tuple[Flags, Uniform]:
        is_maskable = self._is_maskable[values]
        uniforms = np.where(is_maskable, sample(_CHOICE), 2.0)
        threshold = np.take_along_axis(np.sort(uniforms, axis=1), num[:, None] - 1, axis=1)
        return is_maskable & (uniforms <= threshold), sample(_REPLACEMENT)


class SpanMasking(Masking):
    """Spans of geometric length, truncated so that the share is kept exactly."""

    _config: SpanMaskingConfig

    def __init__(self, config: SpanMaskingConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        super().__init__(config, tokenizer, seed=seed)
        self._is_start = np.ones(tokenizer.vocab_size, dtype=np.bool_)
        if config.is_whole_words:
            self._is_start = np.array(tokenizer.word_starts())
        lengths = np.arange(config.max_words)
        probabilities = config.stop * (1 - config.stop) ** lengths
        self._cumulative = (probabilities / probabilities.sum()).cumsum()

    def _choose(self, values: Ids, num: Ids, sample: Sample) -> tuple[Flags, Uniform]:
        is_maskable = self._is_maskable[values]
        is_start = self._is_start[values].tolist()
        order = np.where(is_maskable, sample(_CHOICE), 2.0).argsort(axis=1).tolist()
        words = (np.searchsorted(self._cumulative, sample(_LENGTH)) + 1).tolist()
        is_masked = np.zeros(values.shape, dtype=np.bool_)
        spans = np.zeros(values.shape, dtype=np.int64)
        for row, budget in enumerate(num.tolist()):
            taken = _take_spans(
                order[row], words[row], is_start[row], free=is_maskable[row].tolist(), budget=budget
            )
            is_masked[row, list(taken)] = True
            spans[row, list(taken)] = list(taken.values())
        return is_masked, np.take_along_axis(sample(_REPLACEMENT), spans, axis=1)


def _take_spans(
    anchors: list[int], words: list[int], is_start: list[bool], *, free: list[bool], budget: int
) -> dict[int, int]:
    """Put spans at anchors, in order, until the budget is used up.

    Args:
        anchors: Positions in random order.
        words: Length of the span at each position, in words.
        is_start: Whether a word begins at each position.
        free: Whether each position may be masked.
        budget: Number of positions to take.

    Returns:
        The positions taken, each with the first position of its span.
    """
    taken: dict[int, int] = {}
    for anchor in anchors:
        if len(taken) >= budget:
            break
        if anchor in taken:
            continue
        first = anchor
        while not is_start[first] and free[first - 1] and first - 1 not in taken:
            first -= 1
        position, left = first, words[anchor]
        while (
            len(taken) < budget
            and position < len(free)
            and free[position]
            and position not in taken
        ):
            left -= is_start[position] or position == first
            if left < 0:
                break
            taken[position] = first
            position += 1
    return taken


MASKINGS: dict[type, Callable[..., Masking]] = {
    TokenMaskingConfig: TokenMasking,
    SpanMaskingConfig: SpanMasking,
}
