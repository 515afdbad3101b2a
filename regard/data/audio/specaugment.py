"""Frames hidden at random while training: stretches of time and bands of frequencies."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.config import Config, NonNegative, Positive, UnitInterval


@dataclass(frozen=True, kw_only=True)
class SpecAugmentConfig(Config):
    """What of a recording may be hidden while training (Park et al. 2019); nothing is warped."""

    time_masks: NonNegative = 0
    """Stretches of time that are hidden; 0 for none."""
    time_width: Positive = 20
    """Frames of a stretch at most."""
    time_share: UnitInterval = 0.2
    """Share of a recording that a stretch hides at most, so that short ones keep their words."""
    mel_masks: NonNegative = 0
    """Bands of frequencies that are hidden; 0 for none."""
    mel_width: Positive = 8
    """Mel bins of a band at most."""


def mask_parts(frames: Tensor, num_frames: Tensor, config: SpecAugmentConfig) -> Tensor:
    """Set parts of every recording to zero, each in its own way.

    Args:
        frames: (B, F, M), standardised, so that zero is the mean.
        num_frames: (B,), without padding.
        config: How much is hidden.
    """
    lengths = num_frames.float()[:, None]
    if config.time_masks:
        widths = (config.time_share * lengths).clamp(max=config.time_width)
        is_hidden = _stretches(lengths, widths, config.time_masks, size=frames.size(1))
        frames = frames.masked_fill(is_hidden[:, :, None], 0.0)
    if config.mel_masks:
        bins = torch.full_like(lengths, frames.size(2))
        widths = bins.clamp(max=config.mel_width)
        is_hidden = _stretches(bins, widths, config.mel_masks, size=frames.size(2))
        frames = frames.masked_fill(is_hidden[:, None, :], 0.0)
    return frames


def _stretches(lengths: Tensor, widths: Tensor, num: int, *, size: int) -> Tensor:
    """Return (B, size), True in `num` stretches within `lengths` (B, 1), of `widths` at most."""
    chance = torch.rand(2, len(lengths), num, device=lengths.device)
    # From 0 to the most, each as likely; the begin leaves room for the whole stretch.
    own = (chance[0] * (widths.floor() + 1)).floor()  # (B, N), one for each stretch
    begins = (chance[1] * (lengths - own + 1)).floor()
    places = torch.arange(size, device=lengths.device)
    is_in = (places >= begins[..., None]) & (places < (begins + own)[..., None])
    return is_in.any(1)
