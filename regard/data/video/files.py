"""Video files: formats, detection and names in messages."""

from pathlib import Path

from regard.data.formats import VIDEO
from regard.data.media import Medium
from regard.data.video.frames import FRAME_SUFFIXES, NUMBERED_VIDEOS


def is_folder_of_frames(path: Path) -> bool:
    """Return whether a folder contains images."""
    return any(entry.suffix.lower() in FRAME_SUFFIXES for entry in path.iterdir())


VIDEO_FILES = Medium(
    formats=VIDEO,
    text="caption",
    numbered=NUMBERED_VIDEOS,
    headings=({"video"}, {"caption"}),
    is_folder=is_folder_of_frames,
    hint=", as folders of frames or as animated images",
)
