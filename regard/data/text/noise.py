"""Noise on texts: tokens are dropped, swapped with their neighbour, or hidden."""

from dataclasses import dataclass
from typing import Annotated

from regard.core.config import Config, Within
from regard.core.keyed_random import uniform
from regard.data.batching import Rows, Sequences
from regard.data.text.corruption import Pairs
from regard.data.text.tokenizers import Tokenizer

_DROP, _SWAP, _MASK = range(3)
"""Purposes of random numbers, which make them independent."""


@dataclass(frozen=True, kw_only=True)
class WordNoiseConfig(Config):
    """Noise on a source while a model learns to reconstruct the text."""

    drop: Annotated[float, Within(0.0, 0.95)] = 0.0
    """Probability that a token is left out."""
    swap: Annotated[float, Within(0.0, 0.95)] = 0.0
    """Probability that two neighbours, the first and second, third and fourth, …, change places."""
    mask: Annotated[float, Within(0.0, 0.95)] = 0.0
    """Probability that a token is hidden by '<mask>'."""

    @property
    def is_any(self) -> bool:
        """Whether there is any noise."""
        return max(self.drop, self.swap, self.mask) > 0


class WordNoise:
    """Corrupts texts; how depends on seed, epoch and the text's number alone.

    Hill et al. 2016, section 3.2: first tokens are dropped, then neighbours of what is left change
    places, each pair by itself. A text keeps one token at the least.

    Args:
        config: How much noise there is.
        tokenizer: Knows the mask token.
        seed: Another seed gives other noise.
    """

    def __init__(self, config: WordNoiseConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._mask = tokenizer.mask if config.mask else tokenizer.unk
        self._seed = seed

    def corrupt(self, texts: Sequences, rows: Rows, *, epoch: int) -> Sequences:
        """Return the noisy texts of an epoch, tokens without ends.

        Args:
            texts: Their tokens.
            rows: Their numbers.
            epoch: Other noise in every epoch.
        """
        longest = max(map(len, texts), default=0)
        drop, swap, mask = (
            uniform((self._seed, epoch, purpose), rows, longest).tolist()
            for purpose in (_DROP, _SWAP, _MASK)
        )
        return [
            self._hide(self._swap(self._drop(ids, drop[row]), swap[row]), mask[row])
            for row, ids in enumerate(texts)
        ]

    def change(self, pairs: Pairs, rows: Rows, epoch: int) -> Pairs:
        """Return noisy sources, whose ends are kept, and the targets as they are."""
        sources, targets = pairs
        noisy = self.corrupt([ids[:-1] for ids in sources], rows, epoch=epoch)
        ends = [ids[-1] for ids in sources]
        return [[*ids, end] for ids, end in zip(noisy, ends, strict=True)], targets

    def _drop(self, ids: list[int], lots: list[float]) -> list[int]:
        kept = [token for token, lot in zip(ids, lots, strict=False) if lot >= self._config.drop]
        last = max(range(len(ids)), key=lots.__getitem__, default=0)
        return kept or ids[last : last + 1]

    def _swap(self, ids: list[int], lots: list[float]) -> list[int]:
        swapped = list(ids)
        for first in range(0, len(ids) - 1, 2):
            if lots[first] < self._config.swap:
                swapped[first : first + 2] = ids[first + 1], ids[first]
        return swapped

    def _hide(self, ids: list[int], lots: list[float]) -> list[int]:
        hidden = zip(ids, lots, strict=False)
        return [self._mask if lot < self._config.mask else token for token, lot in hidden]
