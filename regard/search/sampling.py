"""Ancestral sampling: every token is drawn from what the model says about it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.search.distributions import Reshape, build_reshapes
from regard.search.greedy import walk
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig


def sample(
    scorer: Scorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_samples: int = 1,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Draw targets token by token.

    A draw depends on the seed, the sentence's own number, the number of the sample and the step,
    and on nothing else: not on the sentences beside it, and the first samples are the same
    however many are asked for. Log-probabilities are the scorer's, not those of the distribution
    after temperature and cuts.

    Args:
        scorer: What gives log-probabilities.
        start: The start token.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence.
        config: The temperature, what is cut off, and the seed.
        num_samples: How many targets to draw a sentence.
        numbers: What tells the sentences apart, from 0 on; their places in the batch if not given.

    Returns:
        For each sentence its samples as they were drawn; the same target may come twice.
    """
    chosen = range(scorer.batch) if numbers is None else numbers
    seeds = [(config.seed, number, place) for number in chosen for place in range(num_samples)]
    noise = torch.stack([_noise(seed, int(max_lengths.max())) for seed in seeds])  # (B·W, T)
    draw = _Draw(noise.to(scorer.device), build_reshapes(config))
    found = walk(scorer, draw, start=start, end=end, max_lengths=max_lengths, width=num_samples)
    return [found[row : row + num_samples] for row in range(0, len(found), num_samples)]


@dataclass(frozen=True)
class _Draw:
    """Chooses the token at which the cumulated probability passes a number drawn before."""

    noise: Tensor  # (B·W, T) from 0 up to, but without, 1
    reshapes: Sequence[Reshape]

    def __call__(self, log_probs: Tensor, step: int) -> tuple[Tensor, Tensor]:
        shaped = log_probs
        for reshape in self.reshapes:
            shaped = reshape(shaped)
        # In single precision, the sum over a large vocabulary would be too coarse.
        reached = shaped.double().log_softmax(1).exp().cumsum(1)  # (B·W, V)
        heights = self.noise[:, step, None] * reached[:, -1:]
        tokens = torch.searchsorted(reached, heights, right=True)  # (B·W, 1)
        return log_probs.gather(1, tokens).squeeze(1), tokens.squeeze(1)


def _noise(seed: Sequence[int], length: int) -> Tensor:
    """Draw one number a step; a longer row begins with the shorter one."""
    return torch.from_numpy(np.random.default_rng(seed).random(length))
