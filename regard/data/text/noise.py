"""Noise on texts: tokens are dropped, swapped with their neighbour, or hidden."""

from dataclasses import dataclass

import numpy as np

from regard.core.config import within
from regard.core.keyed_random import uniform
from regard.data.batching import BatchConfig, Batches, Field, Items, Rows, Sequences
from regard.data.text.tokenizers import Tokenizer

_DROP, _SWAP, _MASK = range(3)
"""Purposes of random numbers, which make them independent."""


@dataclass(frozen=True, kw_only=True)
class WordNoiseConfig:
    """What spoils a source while a model learns to write the text as it was."""

    drop: float = 0.0
    """Probability that a token is left out."""
    swap: float = 0.0
    """Probability that two neighbours, the first and second, third and fourth, …, change places."""
    mask: float = 0.0
    """Probability that a token is hidden by '<mask>'."""

    def __post_init__(self) -> None:
        for name in ("drop", "swap", "mask"):
            within(name, getattr(self, name), low=0.0, high=0.95)

    @property
    def is_any(self) -> bool:
        """Whether anything is spoilt."""
        return max(self.drop, self.swap, self.mask) > 0


class WordNoise:
    """Spoils texts; how hangs on seed, epoch and the text's number alone.

    Hill et al. 2016, section 3.2: first tokens are dropped, then neighbours of what is left change
    places, each pair by itself. A text keeps one token at the least.

    Args:
        config: How much is spoilt.
        tokenizer: Knows the token that hides another.
        seed: Another seed spoils otherwise.
    """

    def __init__(self, config: WordNoiseConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._mask = tokenizer.mask if config.mask else tokenizer.unk
        self._seed = seed

    def spoil(self, texts: Sequences, rows: Rows, *, epoch: int) -> Sequences:
        """Return texts, tokens without ends, spoilt as in this epoch.

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
            self._hide(self._swap(self._drop(ids, drop[place]), swap[place]), mask[place])
            for place, ids in enumerate(texts)
        ]

    def _drop(self, ids: list[int], lots: list[float]) -> list[int]:
        kept = [token for token, lot in zip(ids, lots, strict=False) if lot >= self._config.drop]
        last = max(range(len(ids)), key=lots.__getitem__, default=0)
        return kept or ids[last : last + 1]

    def _swap(self, ids: list[int], lots: list[float]) -> list[int]:
        swapped = list(ids)
        for place in range(0, len(ids) - 1, 2):
            if lots[place] < self._config.swap:
                swapped[place : place + 2] = ids[place + 1], ids[place]
        return swapped

    def _hide(self, ids: list[int], lots: list[float]) -> list[int]:
        hidden = zip(ids, lots, strict=False)
        return [self._mask if lot < self._config.mask else token for token, lot in hidden]


class SpoiltBatches(Batches):
    """Pairs whose sources are spoilt anew in each epoch.

    Args:
        sources: Tokens of each source, its end included; they count as long as they are before.
        targets: Tokens of each target.
        config: Budget and limits.
        noise: Spoils sources.
        fields: Of source and target; they pad.
        seed: Another seed is another order.
        is_shuffled: Whether every epoch has an order of its own.
        is_pinned: Whether tensors are put where a GPU fetches them without waiting.
    """

    def __init__(
        self,
        sources: Sequences,
        targets: Sequences,
        config: BatchConfig,
        *,
        noise: WordNoise,
        fields: tuple[Field, Field],
        seed: int = 0,
        is_shuffled: bool = True,
        is_pinned: bool = False,
    ) -> None:
        super().__init__(
            sources,
            targets,
            config,
            fields=fields,
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=is_pinned,
        )
        self._noise = noise

    def pairs(self, rows: Rows, number: int) -> tuple[Items, Sequences]:
        """Return what is left of sources in an epoch, and the whole targets."""
        sources, targets = super().pairs(rows, number)
        spoilt = self._noise.spoil([ids[:-1] for ids in sources], np.asarray(rows), epoch=number)
        ends = [ids[-1] for ids in sources]
        return [[*ids, end] for ids, end in zip(spoilt, ends, strict=True)], targets
