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

_CHOICE, _FATE, _TOKEN, _LENGTH = range(4)
"""Purposes of random numbers, which make them independent."""


@dataclass(frozen=True, kw_only=True)
class BaseMaskingConfig(Config):
    """What every way of hiding can be told."""

    share: Annotated[float, Within(0.0, 0.9)] = 0.15
    """Share of a text's tokens that is hidden, one at the least."""
    masked_share: UnitInterval = 0.8
    """Share of the hidden tokens in whose place the mask stands."""
    random_share: UnitInterval = 0.1
    """Share of the hidden tokens in whose place any token stands; the rest stay as they are."""
    is_dynamic: bool = True
    """Hide other tokens in every epoch (Liu et al. 2019), not always the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masked_share + self.random_share > 1:
            raise ConfigError(
                f"`random_share` must be at most 1 - `masked_share` ({1 - self.masked_share:g}), "
                f"but is {self.random_share:g}."
            )


@dataclass(frozen=True, kw_only=True)
class TokenMaskingConfig(BaseMaskingConfig):
    """Hide tokens one by one (Devlin et al. 2019)."""

    kind: Literal["tokens"] = "tokens"
    """What is hidden."""


@dataclass(frozen=True, kw_only=True)
class SpanMaskingConfig(BaseMaskingConfig):
    """Hide runs of tokens, each with one fate (Joshi et al. 2020)."""

    kind: Literal["spans"] = "spans"
    """What is hidden."""
    stop: Annotated[float, Within(0.01, 1.0)] = 0.2
    """Probability that a span ends after each of its words."""
    max_words: Positive = 10
    """Words in a span at most."""
    is_whole_words: bool = True
    """Let spans begin and end with words, not with pieces of words."""


MaskingConfig = TokenMaskingConfig | SpanMaskingConfig


@dataclass(frozen=True, slots=True)
class Masked:
    """Texts of which some tokens are hidden."""

    values: Ids
    """(B, S) what is shown."""
    hidden: Flags
    """(B, S) True = has to be told."""


class Masking(ABC):
    """Hides tokens; which ones depends on the seed, the epoch and the text's number alone.

    Args:
        config: How much is hidden, and what stands in its place.
        tokenizer: Knows the mask, and the special tokens, which are never hidden.
        seed: Another seed hides other tokens.
    """

    def __init__(self, config: MaskingConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._seed = seed
        self._mask = tokenizer.mask
        special = [tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos, tokenizer.mask]
        self._can_hide = np.ones(tokenizer.vocab_size, dtype=np.bool_)
        self._can_hide[special] = False
        self._ordinary = np.flatnonzero(self._can_hide)

    def hide(self, values: Ids, rows: Ids, *, epoch: int) -> Masked:
        """Hide tokens.

        Args:
            values: (B, S) token ids, padded at the end.
            rows: (B,) numbers of the texts.
            epoch: Static masking does not look at it.
        """
        number = epoch if self._config.is_dynamic else 0
        can_hide = self._can_hide[values]

        def sample(purpose: int) -> Uniform:
            return uniform((self._seed, number, purpose), rows, values.shape[1])

        num_real = can_hide.sum(1)
        num = np.minimum(np.maximum(np.rint(self._config.share * num_real), 1), num_real)
        hidden, fates = self._choose(values, num.astype(np.int64), sample)
        is_masked = hidden & (fates < self._config.masked_share)
        is_random = hidden & ~is_masked
        is_random &= fates < self._config.masked_share + self._config.random_share
        shown = np.where(is_masked, self._mask, values)
        others = self._ordinary[(sample(_TOKEN) * len(self._ordinary)).astype(np.int64)]
        return Masked(np.where(is_random, others, shown), hidden)

    @abstractmethod
    def _choose(self, values: Ids, num: Ids, sample: Sample) -> tuple[Flags, Uniform]:
        """Choose `num` (B,) tokens of every text (B, S) and sample what becomes of each."""


class TokenMasking(Masking):
    """Each token is as likely as any other, and has a fate of its own."""

    def _choose(self, values: Ids, num: Ids, sample: Sample) -> tuple[Flags, Uniform]:
        can_hide = self._can_hide[values]
        lots = np.where(can_hide, sample(_CHOICE), 2.0)
        worst = np.take_along_axis(np.sort(lots, axis=1), num[:, None] - 1, axis=1)
        return can_hide & (lots <= worst), sample(_FATE)


class SpanMasking(Masking):
    """Spans of geometric length, truncated so that the share is kept exactly."""

    _config: SpanMaskingConfig

    def __init__(self, config: SpanMaskingConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        super().__init__(config, tokenizer, seed=seed)
        self._begins = np.ones(tokenizer.vocab_size, dtype=np.bool_)
        if config.is_whole_words:
            self._begins = np.array(tokenizer.word_beginnings())
        lengths = np.arange(config.max_words)
        odds = config.stop * (1 - config.stop) ** lengths
        self._ladder = (odds / odds.sum()).cumsum()

    def _choose(self, values: Ids, num: Ids, sample: Sample) -> tuple[Flags, Uniform]:
        can_hide = self._can_hide[values]
        begins = self._begins[values].tolist()
        order = np.where(can_hide, sample(_CHOICE), 2.0).argsort(axis=1).tolist()
        words = (np.searchsorted(self._ladder, sample(_LENGTH)) + 1).tolist()
        hidden = np.zeros(values.shape, dtype=np.bool_)
        spans = np.zeros(values.shape, dtype=np.int64)
        for row, budget in enumerate(num.tolist()):
            taken = _take_spans(
                order[row], words[row], begins[row], free=can_hide[row].tolist(), budget=budget
            )
            hidden[row, list(taken)] = True
            spans[row, list(taken)] = list(taken.values())
        return hidden, np.take_along_axis(sample(_FATE), spans, axis=1)


def _take_spans(
    anchors: list[int], words: list[int], begins: list[bool], *, free: list[bool], budget: int
) -> dict[int, int]:
    """Lay spans at anchors, one after the other, until the budget is spent.

    Args:
        anchors: Positions in the order of their lots.
        words: How many words long the span at each position is.
        begins: Whether a word begins at each position.
        free: Whether each position can be hidden.
        budget: How many positions to take.

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
        while not begins[first] and free[first - 1] and first - 1 not in taken:
            first -= 1
        position, left = first, words[anchor]
        while (
            len(taken) < budget
            and position < len(free)
            and free[position]
            and position not in taken
        ):
            left -= begins[position] or position == first
            if left < 0:
                break
            taken[position] = first
            position += 1
    return taken


MASKINGS: dict[type, Callable[..., Masking]] = {
    TokenMaskingConfig: TokenMasking,
    SpanMaskingConfig: SpanMasking,
}
