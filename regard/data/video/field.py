"""Videos as a source: settings, and the field that reads, stacks and standardises them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from regard.core.config import at_least, from_dict, to_dict
from regard.core.errors import DataError
from regard.core.files import read_json, write_json
from regard.data.example import Example
from regard.data.image.field import MIN_DEVIATION, ImageConfig, ImageField
from regard.data.image.io import MAX_PIXELS
from regard.data.image.resize import Fit, Frame, Pixels
from regard.data.skipping import tell_skipped
from regard.data.standardize import from_moments
from regard.data.video.frames import is_numbered, read_video

VIDEO = "{}.video.json"
"""The file in a run folder that says how a side's videos are brought into one form."""

NUM_SAMPLES = 500
"""Videos that mean and deviation are taken from at most."""


@dataclass(frozen=True, kw_only=True)
class VideoConfig:
    """How videos are read."""

    kind: Literal["video"] = "video"
    """Videos."""
    size: int = 32
    """Rows, and columns, that every frame is brought to, in pixels."""
    channels: Literal[1, 3] = 3
    """1 for grey, 3 for colour."""
    num_frames: int = 8
    """Frames that every video is brought to, evenly from its first to its last."""
    fit: Fit = "crop"
    """What becomes of a frame that is no square: cut at its longer sides, filled up with grey at
    its shorter ones, or squashed."""
    max_pixels: int = MAX_PIXELS
    """Pixels that a frame may hold; a larger one is refused before it is decoded."""

    def __post_init__(self) -> None:
        at_least("size", self.size, 8)
        at_least("num_frames", self.num_frames, 2)
        at_least("max_pixels", self.max_pixels, 1)

    @property
    def frame(self) -> Frame:
        """What every frame becomes before it is stacked."""
        return Frame(self.size, self.channels, self.fit, self.max_pixels)


class VideoField:
    """Videos as one side of an example.

    An item is one video, (1, F, C, Y, X) in 8 bits: its length is 1, because it counts as one
    position of a batch.
    """

    def __init__(self, config: VideoConfig, mean: Sequence[float], std: Sequence[float]) -> None:
        """Take up what was learned.

        Args:
            config: How videos are read.
            mean: Of each channel, where black is 0 and white is 1.
            std: Standard deviation of each channel, likewise.
        """
        self.config = config
        # A frame is standardised like an image. Nothing is augmented: a video that is turned over
        # says something else.
        image = ImageConfig(size=config.size, channels=config.channels)
        self.frames = ImageField(image, mean, std)

    @classmethod
    def learn(cls, config: VideoConfig, references: Sequence[str]) -> Self:
        """Return a field with the mean and the deviation of training videos.

        Args:
            config: How videos are read.
            references: The training videos. Of many, a sample is measured.
        """
        if not references:
            raise DataError("There is no video to learn from.")
        chosen = np.random.default_rng(0).permutation(len(references))[:NUM_SAMPLES]
        sums = np.zeros((2, config.channels))
        for row in chosen:
            video = read_video(references[row], config.num_frames, config.frame)
            pixels = video.astype(np.float64) / 255  # (F, C, Y, X)
            sums += pixels.mean((0, 2, 3)), (pixels**2).mean((0, 2, 3))
        return cls(config, *from_moments(sums / len(chosen), MIN_DEVIATION))

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Frames, channels, rows and columns of every video."""
        return self.config.num_frames, *self.frames.size

    def read_all(self, references: Sequence[str]) -> list[Pixels]:
        """Read videos, each once however often it is named, as (1, F, C, Y, X)."""
        found = {
            reference: read_video(reference, self.config.num_frames, self.config.frame)[None]
            for reference in dict.fromkeys(references)
        }
        return [found[reference] for reference in references]

    def stack(self, items: Sequence[Pixels]) -> tuple[Tensor, Tensor]:
        """Put videos together.

        Returns:
            The videos (B, F, C, Y, X), still in 8 bits, and the mask (B, 1), all True.
        """
        return torch.from_numpy(np.concatenate(items)), torch.ones(len(items), 1, dtype=torch.bool)

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Turn stacked videos (B, F, C, Y, X) into what an encoder takes, where they are."""
        return self.frames.finish(values, is_training=False)

    def shorten(self, item: Pixels, most: int) -> Pixels:
        """Return an item as it is: a video takes one position."""
        return item

    def save(self, folder: Path, side: str) -> None:
        """Write settings, mean and deviation into a run folder."""
        mean, std = self.frames.mean, self.frames.std
        value = {"config": to_dict(self.config), "mean": mean, "std": std}
        write_json(folder / VIDEO.format(side), value)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        value = read_json(path)
        return cls(from_dict(VideoConfig, value["config"]), value["mean"], value["std"])


def keep_readable_videos(examples: Sequence[Example], config: VideoConfig) -> list[Example]:
    """Drop the examples whose video cannot be read, and say how many and which was the first.

    Args:
        examples: With a video each.
        config: How videos are read.
    """
    failures: dict[str, str] = {}
    for reference in dict.fromkeys(str(example.source) for example in examples):
        # Numbered videos have no file that could be bad.
        if not is_numbered(reference):
            try:
                read_video(reference, config.num_frames, config.frame)
            except DataError as error:
                failures[reference] = str(error)
    kept = [example for example in examples if example.source not in failures]
    tell_skipped("video", failures.values(), num_kept=len(kept), num_asked=len(examples))
    return kept
