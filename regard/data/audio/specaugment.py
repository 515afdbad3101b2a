"""SpecAugment: random masking of frames and mel bins in training (Park et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.config import Config, NonNegative, Positive, UnitInterval


@dataclass(frozen=True, kw_only=True)
class SpecAugmentConfig(Config):
    """Settings of SpecAugment (Park et al. 2019), without time warping."""

    time_masks: NonNegative = 0
    """Number of time masks; 0 for none."""
    time_width: Positive = 20
    """Maximum number of frames of a time mask."""
    time_share: UnitInterval = 0.2
    """Maximum share of a recording in a time mask, so that short recordings keep their words."""
    mel_masks: NonNegative = 0
    """Number of frequency masks; 0 for none."""
    mel_width: Positive = 8
    """Maximum number of mel bins of a frequency mask."""


def mask_parts(frames: Tensor, num_frames: Tensor, config: SpecAugmentConfig) -> Tensor:
    """Set random parts of every recording to zero, independently for each recording.

    Args:
        frames: (B, F, M), standardised, so that zero is the mean.
        num_frames: (B,), without padding.
        config: Number and size of the masks.
    """
    lengths = num_frames.float()[:, None]
    if config.time_masks:
        widths = (config.time_share * lengths).clamp(max=config.time_width)
        is_masked = _sample_spans(lengths, widths, config.time_masks, size=frames.size(1))
        frames = frames.masked_fill(is_masked[:, :, None], 0.0)
    if config.mel_masks:
        bins = torch.full_like(lengths, frames.size(2))
        widths = bins.clamp(max=config.mel_width)
        is_masked = _sample_spans(bins, widths, config.mel_masks, size=frames.size(2))
        frames = frames.masked_fill(is_masked[:, None, :], 0.0)
    return frames


def _sample_spans(lengths: Tensor, widths: Tensor, num: int, *, size: int) -> Tensor:
    """Return (B, size), True in `num` spans within `lengths` (B, 1), of at most `widths`."""
    uniforms = torch.rand(2, len(lengths), num, device=lengths.device)
    # Widths are uniform from 0 to the maximum; starts leave room for the span.
    sampled = (uniforms[0] * (widths.floor() + 1)).floor()  # (B, N), one for each span
    starts = (uniforms[1] * (lengths - sampled + 1)).floor()
    positions = torch.arange(size, device=lengths.device)
    is_inside = (positions >= starts[..., None]) & (positions < (starts + sampled)[..., None])
    return is_inside.any(1)
