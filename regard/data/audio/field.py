"""Audio as a source: settings, and the field that reads, stacks and standardises recordings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.core.config import Config, Positive, Within, within
from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec
from regard.data.audio.decoding import audio_decoder
from regard.data.audio.mel import Analysis, Spectrum, mel_filters
from regard.data.audio.specaugment import SpecAugmentConfig, mask_parts
from regard.data.audio.wav import RATES
from regard.data.media import Decoder
from regard.data.standardize import StandardizedField


@dataclass(frozen=True, kw_only=True)
class AudioConfig(Config):
    """How recordings are read."""

    kind: Literal["audio"] = "audio"
    """Sound."""
    rate: Annotated[int, Within(*RATES)] = 8000
    """Samples a second that every recording is brought to; half of it is the highest frequency."""
    num_mels: Positive = 40
    """Bands of frequencies of a frame."""
    window_ms: Annotated[float, Within(5.0, 1000.0)] = 25.0
    """What a frame looks at, in milliseconds."""
    hop_ms: float = 10.0
    """From one frame to the next, in milliseconds."""
    max_seconds: Annotated[float, Within(0.1, 3600.0)] = 30.0
    """A longer recording is refused."""
    augmentation: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    """What of a recording may be hidden while training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("hop_ms", self.hop_ms, low=1.0, high=self.window_ms)
        mel_filters(self.analysis)
        if self.augmentation.mel_width >= self.num_mels and self.augmentation.mel_masks:
            raise ConfigError(
                f"`augmentation.mel_width` must be smaller than `num_mels` ({self.num_mels}), "
                f"but is {self.augmentation.mel_width}."
            )

    @property
    def analysis(self) -> Analysis:
        """What every recording becomes before it is stacked."""
        window, hop = (round(self.rate * ms / 1000) for ms in (self.window_ms, self.hop_ms))
        return Analysis(self.rate, self.num_mels, window, hop, self.max_seconds)

    @property
    def spec(self) -> AudioSpec:
        """The sizes of its tensors."""
        return AudioSpec(self.num_mels)

    @property
    def decoder(self) -> Decoder:
        """How recordings become arrays."""
        return audio_decoder(self.analysis)


class AudioField(StandardizedField[AudioConfig]):
    """Recordings as one side of an example.

    An item is a recording's log-mel frames (F, M): its length is the number of frames.
    """

    modality = "audio"
    settings = AudioConfig
    file = "{}.audio.json"
    channels = "num_mels"
    num_after = 0
    num_samples = 1_000
    min_deviation = 0.1

    @staticmethod
    def moments(item: Spectrum) -> tuple[Any, int]:
        """Return the sums of a recording's values and of their squares, and its length."""
        frames = item.astype(np.float64)
        return (frames.sum(0), (frames**2).sum(0)), len(item)

    def stack(self, items: Sequence[Spectrum]) -> tuple[Tensor, Tensor]:
        """Put recordings together.

        Returns:
            The frames (B, F, M), padded at the end with the mean, which `finish` turns into zero,
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
        frames = self.standardise(values)
        if is_training:
            # Padding, and nothing else, is the mean in every bin.
            num_frames = frames.ne(0).any(-1).sum(-1)
            frames = mask_parts(frames, num_frames, self.config.augmentation)
        return frames

    def shorten(self, item: Spectrum, most: int) -> Spectrum:
        """Cut a recording to `most` frames."""
        return item[:most]
