"""Video sources: settings, and a field that decodes, stacks and standardises videos."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.core.config import Config, Within
from regard.core.specs import ImageSpec, VideoSpec
from regard.data.image.builtin import Pixels
from regard.data.image.io import MAX_PIXELS
from regard.data.image.resize import Fit, Frame
from regard.data.media import Decoder
from regard.data.standardize import StandardizedField
from regard.data.video.files import VIDEO_FILES
from regard.data.video.frames import read_video


@dataclass(frozen=True, kw_only=True)
class VideoConfig(Config):
    """Settings of video sources."""

    kind: Literal["video"] = "video"
    """Videos."""
    size: Annotated[int, Within(8, 1024)] = 32
    """Height and width to which frames are resized, in pixels."""
    channels: Literal[1, 3] = 3
    """1 for grey, 3 for colour."""
    num_frames: Annotated[int, Within(2, 256)] = 8
    """Number of frames of every video, evenly spaced from its first to its last."""
    fit: Fit = "crop"
    """Treatment of frames that are not square: cropped, padded with grey, or squashed."""
    max_pixels: Annotated[int, Within(1, 2**30)] = MAX_PIXELS
    """Maximum number of pixels of a frame; a larger one is an error before it is decoded."""

    @property
    def frame(self) -> Frame:
        """Size, channels and fit of every frame."""
        return Frame(self.size, self.channels, self.fit, self.max_pixels)

    @property
    def spec(self) -> VideoSpec:
        """Input specification of encoders."""
        return VideoSpec(self.num_frames, ImageSpec(self.channels, self.size, self.size))

    @property
    def decoder(self) -> Decoder:
        """Decoder of videos to arrays."""
        return video_decoder(self.num_frames, self.frame)


class VideoField(StandardizedField[VideoConfig]):
    """Videos as one side of an example.

    An item is one video (1, F, C, Y, X) of 8-bit integers. Its length is 1, since it counts as one
    position of a batch. Videos are not augmented: flipping would change their meaning.
    """

    modality = "video"
    settings = VideoConfig
    file = "{}.video.json"
    num_samples = 500


def video_decoder(num_frames: int, frame: Frame) -> Decoder:
    """Return a decoder of videos to (1, F, C, Y, X).

    Videos are not cached: the modification time of a folder does not cover the frames in it.
    """

    def read(reference: str) -> Pixels:
        return read_video(reference, num_frames, frame)[None]

    return Decoder(
        medium=VIDEO_FILES,
        settings=(num_frames, frame),
        read=read,
        read_numbered=lambda name, numbers: [read(f"{name}/{number}") for number in numbers],
    )
