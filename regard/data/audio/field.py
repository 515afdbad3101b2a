"""Audio sources: settings, and a field that decodes, stacks and standardises recordings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.core.config import Config, Within, within
from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec
from regard.data.audio.decoding import audio_decoder
from regard.data.audio.mel import Analysis, Spectrum, mel_filters
from regard.data.audio.specaugment import SpecAugmentConfig, mask_parts
from regard.data.audio.wav import RATES
from regard.data.media import Decoder
from regard.data.standardize import StandardizedField

MAX_WINDOW = 2**15
"""Maximum number of samples of a frame."""


@dataclass(frozen=True, kw_only=True)
class AudioConfig(Config):
    """Settings of audio sources."""

    kind: Literal["audio"] = "audio"
    """Audio."""
    rate: Annotated[int, Within(*RATES)] = 8000
    """Sampling rate in samples a second, to which recordings are resampled; half of it is the
    highest frequency."""
    num_mels: Annotated[int, Within(1, 512)] = 40
    """Number of mel bins of a frame."""
    window_ms: Annotated[float, Within(5.0, 1000.0)] = 25.0
    """Length of a frame, in milliseconds."""
    hop_ms: float = 10.0
    """Distance between the starts of consecutive frames, in milliseconds."""
    max_seconds: Annotated[float, Within(0.1, 3600.0)] = 30.0
    """Maximum duration of a recording; a longer one is an error."""
    augmentation: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    """Masking of frames and mel bins in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("hop_ms", self.hop_ms, low=1.0, high=self.window_ms)
        # The filters take memory for every bin and every sample of a frame.
        longest = 1000 * MAX_WINDOW / self.rate
        within("window_ms", self.window_ms, low=5.0, high=max(longest, 5.0))
        mel_filters(self.analysis)
        if self.augmentation.mel_width >= self.num_mels and self.augmentation.mel_masks:
            raise ConfigError(
                f"`augmentation.mel_width` must be smaller than `num_mels` ({self.num_mels}), "
                f"but is {self.augmentation.mel_width}."
            )

    @property
    def analysis(self) -> Analysis:
        """Settings of the log-mel frames."""
        window, hop = (round(self.rate * ms / 1000) for ms in (self.window_ms, self.hop_ms))
        return Analysis(self.rate, self.num_mels, window, hop, self.max_seconds)

    @property
    def spec(self) -> AudioSpec:
        """Input specification of encoders."""
        return AudioSpec(self.num_mels)

    @property
    def decoder(self) -> Decoder:
        """Decoder of recordings to arrays."""
        return audio_decoder(self.analysis)


class AudioField(StandardizedField[AudioConfig]):
    """Recordings as one side of an example.

    An item is the log-mel frames (F, M) of a recording; its length is the number of frames.
    """

    modality = "audio"
    settings = AudioConfig
    file = "{}.audio.json"
    channels = "num_mels"
    num_trailing_axes = 0
    num_samples = 1_000
    min_std = 0.1

    @staticmethod
    def moments(item: Spectrum) -> tuple[Any, int]:
        """Return the sums of a recording's values and of their squares, and its length."""
        frames = item.astype(np.float64)
        return (frames.sum(0), (frames**2).sum(0)), len(item)

    def stack(self, items: Sequence[Spectrum]) -> tuple[Tensor, Tensor]:
        """Pad and stack recordings.

        Returns:
            The frames (B, F, M), padded at the end with the mean, which `finish` maps to zero,
            and the mask (B, F), True = a real frame.
        """
        longest = max(map(len, items))
        mean, _ = self.statistics(torch.device("cpu"))
        values = mean.repeat(len(items), longest, 1)
        mask = torch.zeros(len(items), longest, dtype=torch.bool)
        for row, item in enumerate(items):
            values[row, : len(item)] = torch.tensor(item)
            mask[row, : len(item)] = True
        return values, mask

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Standardise stacked recordings (B, F, M); in training, mask parts of them."""
        frames = self.standardize(values)
        if is_training:
            # Only padding equals the mean in every bin.
            num_frames = frames.ne(0).any(-1).sum(-1)
            frames = mask_parts(frames, num_frames, self.config.augmentation)
        return frames

    def shorten(self, item: Spectrum, max_length: int) -> Spectrum:
        """Truncate a recording to `max_length` frames."""
        return item[:max_length]
