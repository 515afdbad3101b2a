"""Noise on texts: dropped, swapped and masked tokens."""

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
    """Noise on the source of a denoising autoencoder."""

    drop: Annotated[float, Within(0.0, 0.95)] = 0.0
    """Probability that a token is dropped."""
    swap: Annotated[float, Within(0.0, 0.95)] = 0.0
    """Probability that neighbours are swapped: the first and second, third and fourth, …"""
    mask: Annotated[float, Within(0.0, 0.95)] = 0.0
    """Probability that a token is replaced by '<mask>'."""

    @property
    def is_any(self) -> bool:
        """Whether there is any noise."""
        return max(self.drop, self.swap, self.mask) > 0


class WordNoise:
    """Noise on texts, a function of the seed, the epoch and the text's number only.

    Hill et al. 2016, section 3.2: tokens are dropped, then neighbours among the remaining tokens
    are swapped, each pair independently. A text keeps at least one token.

    Args:
        config: Probabilities of the kinds of noise.
        tokenizer: Tokenizer with a mask token, if tokens are masked.
        seed: Random seed.
    """

    def __init__(self, config: WordNoiseConfig, tokenizer: Tokenizer, *, seed: int) -> None:
        self._config = config
        self._mask = tokenizer.mask if config.mask else tokenizer.unk
        self._seed = seed

    def corrupt(self, texts: Sequences, rows: Rows, *, epoch: int) -> Sequences:
        """Return the noisy texts of an epoch, without end tokens.

        Args:
            texts: Tokens of the texts.
            rows: Numbers of the texts.
            epoch: Each epoch has other noise.
        """
        longest = max(map(len, texts), default=0)
        drop, swap, mask = (
            uniform((self._seed, epoch, purpose), rows, longest).tolist()
            for purpose in (_DROP, _SWAP, _MASK)
        )
        return [
            self._replace(self._swap(self._drop(ids, drop[row]), swap[row]), mask[row])
            for row, ids in enumerate(texts)
        ]

    def change(self, pairs: Pairs, rows: Rows, epoch: int) -> Pairs:
        """Return noisy sources, which keep their end tokens, and unchanged targets."""
        sources, targets = pairs
        noisy = self.corrupt([ids[:-1] for ids in sources], rows, epoch=epoch)
        ends = [ids[-1] for ids in sources]
        return [[*ids, end] for ids, end in zip(noisy, ends, strict=True)], targets

    def _drop(self, ids: list[int], uniforms: list[float]) -> list[int]:
        kept = [token for token, u in zip(ids, uniforms, strict=False) if u >= self._config.drop]
        highest = max(range(len(ids)), key=uniforms.__getitem__, default=0)
        return kept or ids[highest : highest + 1]

    def _swap(self, ids: list[int], uniforms: list[float]) -> list[int]:
        swapped = list(ids)
        for first in range(0, len(ids) - 1, 2):
            if uniforms[first] < self._config.swap:
                swapped[first : first + 2] = ids[first + 1], ids[first]
        return swapped

    def _replace(self, ids: list[int], uniforms: list[float]) -> list[int]:
        pairs = zip(ids, uniforms, strict=False)
        return [self._mask if u < self._config.mask else token for token, u in pairs]
