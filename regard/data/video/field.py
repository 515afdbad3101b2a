"""Videos as a source: settings, and the field that reads, stacks and standardises them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.core.config import AtLeast, Config, Positive
from regard.core.specs import ImageSpec, VideoSpec
from regard.data.image.io import MAX_PIXELS
from regard.data.image.resize import Fit, Frame, Pixels
from regard.data.media import Decoder
from regard.data.standardize import StandardizedField
from regard.data.video.files import VIDEO_FILES
from regard.data.video.frames import read_video


@dataclass(frozen=True, kw_only=True)
class VideoConfig(Config):
    """How videos are read."""

    kind: Literal["video"] = "video"
    """Videos."""
    size: Annotated[int, AtLeast(8)] = 32
    """Rows, and columns, that every frame is brought to, in pixels."""
    channels: Literal[1, 3] = 3
    """1 for grey, 3 for colour."""
    num_frames: Annotated[int, AtLeast(2)] = 8
    """Frames that every video is brought to, evenly from its first to its last."""
    fit: Fit = "crop"
    """What becomes of a frame that is no square: cut at its longer sides, filled up with grey at
    its shorter ones, or squashed."""
    max_pixels: Positive = MAX_PIXELS
    """Pixels that a frame may hold; a larger one is refused before it is decoded."""

    @property
    def frame(self) -> Frame:
        """What every frame becomes before it is stacked."""
        return Frame(self.size, self.channels, self.fit, self.max_pixels)

    @property
    def spec(self) -> VideoSpec:
        """The sizes of its tensors."""
        return VideoSpec(self.num_frames, ImageSpec(self.channels, self.size, self.size))

    @property
    def decoder(self) -> Decoder:
        """How videos become arrays."""
        return video_decoder(self.num_frames, self.frame)


class VideoField(StandardizedField[VideoConfig]):
    """Videos as one side of an example.

    An item is one video, (1, F, C, Y, X) in 8 bits: its length is 1, because it counts as one
    position of a batch. Nothing is augmented: a video that is flipped has another meaning.
    """

    modality = "video"
    settings = VideoConfig
    file = "{}.video.json"
    num_samples = 500


def video_decoder(num_frames: int, frame: Frame) -> Decoder:
    """Return how videos become so many frames, (1, F, C, Y, X).

    They are not cached: the time of a folder's last change says nothing of the frames in it.
    """

    def read(reference: str) -> Pixels:
        return read_video(reference, num_frames, frame)[None]

    return Decoder(
        medium=VIDEO_FILES,
        settings=(num_frames, frame),
        read=read,
        read_numbered=lambda name, numbers: [read(f"{name}/{number}") for number in numbers],
    )
