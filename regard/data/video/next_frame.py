"""Field of videos for the prediction of their last frame."""

from collections.abc import Sequence

from regard.data.decoding import read_items
from regard.data.image.resize import Frame
from regard.data.media import Array
from regard.data.video.field import VideoField, video_decoder


class FirstFrames(VideoField):
    """Videos without their last frame as a source.

    `num_frames` + 1 frames are read, evenly spaced from first to last; the last is the target.
    """

    def read_all(self, references: Sequence[str]) -> list[Array]:
        """Read all but the last frame of videos, as (1, F, C, Y, X)."""
        return [video[:, :-1] for video in self.read_whole(references, self.config.frame)]

    def read_last(self, references: Sequence[str], frame: Frame) -> list[Array]:
        """Read the last frame of videos, as (1, C, Y, X).

        Args:
            references: The videos.
            frame: Size, channels and fit of the frames.
        """
        return [video[:, -1] for video in self.read_whole(references, frame)]

    def read_whole(self, references: Sequence[str], frame: Frame) -> list[Array]:
        """Read all frames of videos, each distinct video once, as (1, F, C, Y, X).

        Args:
            references: The videos.
            frame: Size, channels and fit of the frames.
        """
        return read_items(references, video_decoder(self.config.num_frames + 1, frame))
