"""The settings of learning from rewards."""

from dataclasses import dataclass
from typing import Literal

from regard.core.config import at_least, within


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Whether a model learns from how good its own answers are (Rennie et al. 2017)."""

    metric: Literal["none", "bleu", "cider"] = "none"
    """What tells how good an answer is; 'none' = the right answers are made likelier instead."""
    num_draws: int = 5
    """Answers drawn for each source, of which those better than the others become likelier."""
    share: float = 1.0
    """Share of the loss that is about rewards; the rest is the likelihood of the right answers."""

    def __post_init__(self) -> None:
        at_least("num_draws", self.num_draws, 2)
        within("share", self.share, low=0.0, high=1.0)
