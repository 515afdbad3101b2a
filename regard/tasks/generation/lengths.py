"""Limits of text lengths: those of training and of learned positions."""

from collections.abc import Sequence

from torch import Tensor

from regard.core.errors import ConfigError
from regard.models.build import ModelConfig
from regard.models.encoders import max_tokens

Sequences = Sequence[Sequence[int]]


def check_positions(model: ModelConfig, sources: Sequences, targets: Sequences) -> None:
    """Raise a `ConfigError` if training would come upon a text that a side cannot read."""
    # A decoder reads all of a target but its last token.
    longest = {"encoder": max(map(len, sources)), "decoder": max(map(len, targets)) - 1}
    for side, length in longest.items():
        most = max_tokens(getattr(model, side))
        if 0 < most < length:
            raise ConfigError(
                f"`model.{side}.max_length` must be at least the longest text to learn from "
                f"({length} tokens) with learned positions, but is {most}. Raise it, or lower "
                "`data.batch.max_length`."
            )


def limit_targets(lengths: Tensor, model: ModelConfig) -> Tensor:
    """Return lengths (B,), none of them beyond what the decoder has positions for."""
    most = max_tokens(model.decoder)
    return lengths.clamp(max=most) if most else lengths
