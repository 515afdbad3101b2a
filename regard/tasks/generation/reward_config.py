"""The settings of learning from rewards."""

from dataclasses import dataclass
from typing import Literal

from regard.core.config import at_least, within
from regard.core.errors import ConfigError
from regard.models.bottlenecks import VariationalBottleneckConfig
from regard.models.build import ModelConfig
from regard.models.decoders.xu2015 import HardXuDecoderConfig
from regard.models.encoders import BottleneckEncoderConfig


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Whether a model learns from how good its own answers are (Rennie et al. 2017)."""

    metric: Literal["none", "bleu", "cider"] = "none"
    """What tells how good an answer is; 'none' = the right answers are made likelier instead."""
    num_draws: int = 5
    """Answers drawn for each source, of which those better than the others become likelier."""
    share: float = 1.0
    """Share of the loss that is about rewards; the rest is the loss without them, all its terms."""

    def __post_init__(self) -> None:
        at_least("num_draws", self.num_draws, 2)
        within("share", self.share, low=0.0, high=1.0)


def check_reward(reward: RewardConfig, model: ModelConfig, *, task: str) -> None:
    """Raise if answers cannot be judged, or if a part of a model would learn nothing from it."""
    if reward.metric == "none":
        return
    if task == "denoising":
        raise ConfigError(
            f"`reward.metric` must be 'none' where `task` is '{task}', since spans are taken out "
            f"anew each time and no whole answers are judged, but is '{reward.metric}'."
        )
    if model.ctc_weight == 1:
        raise ConfigError(
            "`reward.metric` must be 'none' where `model.ctc.weight` is 1, since answers are drawn "
            f"from the decoder, which learns nothing, but is '{reward.metric}'."
        )
    narrow = (
        model.encoder.bottleneck if isinstance(model.encoder, BottleneckEncoderConfig) else None
    )
    own_losses = {
        "`model.decoder.kind` 'xu_hard'": isinstance(model.decoder, HardXuDecoderConfig),
        "`model.ctc.kind` 'head'": model.ctc_weight > 0,
        "a variational bottleneck": isinstance(narrow, VariationalBottleneckConfig),
    }
    for name, has_own in own_losses.items():
        if has_own and reward.share == 1:
            raise ConfigError(
                f"`reward.share` must be below 1 with {name}, which learns from a loss of its own, "
                "but is 1. Set it to 0.5."
            )
