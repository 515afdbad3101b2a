"""Videos whose last frame is to be foretold from those before it."""

from collections.abc import Sequence

from regard.data.image.resize import Frame, Pixels
from regard.data.video.field import VideoField
from regard.data.video.frames import read_video


class FirstFrames(VideoField):
    """Videos as a source without their last frame.

    A video is brought to one frame more than is read, evenly from its first to its last.
    """

    def read_all(self, references: Sequence[str]) -> list[Pixels]:
        """Read all but the last frame of videos, as (1, F, C, Y, X)."""
        return [frames[None, :-1] for frames in self.read_whole(references, self.config.frame)]

    def read_last(self, references: Sequence[str], frame: Frame) -> list[Pixels]:
        """Read the last frame of videos, as (1, C, Y, X).

        Args:
            references: The videos.
            frame: What each frame becomes.
        """
        return [frames[-1:] for frames in self.read_whole(references, frame)]

    def read_whole(self, references: Sequence[str], frame: Frame) -> list[Pixels]:
        """Read whole videos, each once however often it is named, as (F, C, Y, X).

        Args:
            references: The videos.
            frame: What each frame becomes.
        """
        num = self.config.num_frames + 1
        found = {name: read_video(name, num, frame) for name in dict.fromkeys(references)}
        return [found[reference] for reference in references]
