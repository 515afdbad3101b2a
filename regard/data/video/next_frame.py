"""Videos whose last frame is to be predicted from those before it."""

from collections.abc import Sequence

from regard.data.decoding import read_items
from regard.data.image.resize import Frame
from regard.data.media import Array
from regard.data.video.field import VideoField, video_decoder


class FirstFrames(VideoField):
    """Videos as a source without their last frame.

    A video is brought to one frame more than is read, evenly from its first to its last.
    """

    def read_all(self, references: Sequence[str]) -> list[Array]:
        """Read all but the last frame of videos, as (1, F, C, Y, X)."""
        return [video[:, :-1] for video in self.read_whole(references, self.config.frame)]

    def read_last(self, references: Sequence[str], frame: Frame) -> list[Array]:
        """Read the last frame of videos, as (1, C, Y, X).

        Args:
            references: The videos.
            frame: What each frame becomes.
        """
        return [video[:, -1] for video in self.read_whole(references, frame)]

    def read_whole(self, references: Sequence[str], frame: Frame) -> list[Array]:
        """Read whole videos, each once however often it is named, as (1, F, C, Y, X).

        Args:
            references: The videos.
            frame: What each frame becomes.
        """
        return read_items(references, video_decoder(self.config.num_frames + 1, frame))
