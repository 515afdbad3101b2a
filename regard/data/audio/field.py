"""Sound as a source: settings, and the field that reads, stacks and standardises recordings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regard.core.config import at_least, from_dict, to_dict, within
from regard.core.errors import ConfigError, DataError
from regard.core.files import read_json, write_json
from regard.data.audio.builtin import split_recording
from regard.data.audio.decoding import hear
from regard.data.audio.mel import Analysis, Spectrum, mel_filters
from regard.data.audio.specaugment import SpecAugmentConfig, hide
from regard.data.audio.wav import RATES
from regard.data.example import Example
from regard.data.skipping import tell_skipped
from regard.data.standardize import Standard, from_moments

AUDIO = "{}.audio.json"
"""The file in a run folder that says how a side's recordings are brought into one form."""

NUM_SAMPLES = 1_000
"""Recordings that mean and deviation are taken from at most."""

MIN_DEVIATION = 0.1
"""Recordings that are all alike must not be blown up."""


@dataclass(frozen=True, kw_only=True)
class AudioConfig:
    """How recordings are read."""

    kind: Literal["audio"] = "audio"
    """Sound."""
    rate: int = 8000
    """Samples a second that every recording is brought to; half of it is the highest frequency."""
    num_mels: int = 40
    """Bands of frequencies of a frame."""
    window_ms: float = 25.0
    """What a frame looks at, in milliseconds."""
    hop_ms: float = 10.0
    """From one frame to the next, in milliseconds."""
    max_seconds: float = 30.0
    """A longer recording is refused."""
    augmentation: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    """What of a recording may be hidden while training."""

    def __post_init__(self) -> None:
        within("rate", self.rate, low=RATES[0], high=RATES[1])
        at_least("num_mels", self.num_mels, 1)
        within("window_ms", self.window_ms, low=5.0, high=1000.0)
        within("hop_ms", self.hop_ms, low=1.0, high=self.window_ms)
        within("max_seconds", self.max_seconds, low=0.1, high=3600.0)
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


class AudioField:
    """Recordings as one side of an example.

    An item is a recording's log-mel frames (F, M): its length is the number of frames.
    """

    def __init__(self, config: AudioConfig, mean: Sequence[float], std: Sequence[float]) -> None:
        """Take up what was learned.

        Args:
            config: How recordings are read.
            mean: Of each mel bin.
            std: Standard deviation of each mel bin.
        """
        self.config = config
        self._standard = Standard(mean, std, num=config.num_mels, name="num_mels")
        self.mean, self.std = self._standard.mean, self._standard.std

    @classmethod
    def learn(cls, config: AudioConfig, references: Sequence[str]) -> "AudioField":
        """Return a field with the mean and the deviation of training recordings.

        Args:
            config: How recordings are read.
            references: The training recordings. Of many, a sample is measured.
        """
        if not references:
            raise DataError("There is no recording to learn from.")
        unmeasured = cls(config, (0.0,) * config.num_mels, (1.0,) * config.num_mels)
        items = unmeasured.read_all(references)
        chosen = np.random.default_rng(0).permutation(len(items))[:NUM_SAMPLES]
        num = sum(len(items[row]) for row in chosen)
        sums = np.zeros((2, config.num_mels))
        for row in chosen:
            frames = items[row].astype(np.float64)
            sums += frames.sum(0), (frames**2).sum(0)
        return cls(config, *from_moments(sums / num, MIN_DEVIATION))

    @property
    def size(self) -> tuple[int]:
        """The number of mel bins of every frame."""
        return (self.config.num_mels,)

    def read_all(self, references: Sequence[str]) -> list[Spectrum]:
        """Read recordings, each as log-mel frames (F, M)."""
        heard = hear(references, self.config.analysis)
        if heard.failures:
            raise DataError(next(iter(heard.failures.values())))
        return [heard.frames[reference] for reference in references]

    def stack(self, items: Sequence[Spectrum]) -> tuple[Tensor, Tensor]:
        """Put recordings together.

        Returns:
            The frames (B, F, M), padded at the end with the mean, which `finish` turns into zero,
            and the mask (B, F), True = a real frame.
        """
        longest = max(map(len, items))
        mean, _ = self._standard.on(torch.device("cpu"))
        values = mean.repeat(len(items), longest, 1)
        mask = torch.zeros(len(items), longest, dtype=torch.bool)
        for row, item in enumerate(items):
            values[row, : len(item)] = torch.tensor(item)
            mask[row, : len(item)] = True
        return values, mask

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Standardise stacked recordings, on the device where they are.

        Args:
            values: (B, F, M).
            is_training: Whether parts are hidden.
        """
        mean, std = self._standard.on(values.device)
        frames = (values - mean) / std
        if is_training:
            # Padding, and nothing else, is the mean in every bin.
            num_frames = frames.ne(0).any(-1).sum(-1)
            frames = hide(frames, num_frames, self.config.augmentation)
        return frames

    def shorten(self, item: Spectrum, most: int) -> Spectrum:
        """Cut a recording to `most` frames."""
        return item[:most]

    def save(self, folder: Path, side: str) -> None:
        """Write settings, mean and deviation into a run folder."""
        value = {"config": to_dict(self.config), "mean": self.mean, "std": self.std}
        write_json(folder / AUDIO.format(side), value)

    @classmethod
    def load(cls, path: Path) -> "AudioField":
        """Read what `save` wrote."""
        value = read_json(path)
        return cls(from_dict(AudioConfig, value["config"]), value["mean"], value["std"])


def keep_audible(examples: Sequence[Example], config: AudioConfig) -> list[Example]:
    """Drop the examples whose recording cannot be read, and say how many and which was the first.

    Called once before training, so that no epoch ends half-way.
    """
    # Numbered recordings have no file that could be bad.
    files = [e.source for e in examples if split_recording(e.source) is None]
    failures = hear(files, config.analysis).failures
    kept = [example for example in examples if example.source not in failures]
    tell_skipped("recording", failures.values(), num_kept=len(kept), num_asked=len(examples))
    return kept
