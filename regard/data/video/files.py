"""Video files: suffixes, detection and names in messages."""

from pathlib import Path

from regard.data.media import Medium
from regard.data.video.frames import FRAME_SUFFIXES, NUMBERED_VIDEOS, SUFFIXES


def _is_folder(path: Path) -> bool:
    return any(entry.suffix.lower() in FRAME_SUFFIXES for entry in path.iterdir())


VIDEO_FILES = Medium(
    name="video",
    text="caption",
    suffixes=SUFFIXES,
    numbered=NUMBERED_VIDEOS,
    headings=({"video"}, {"caption"}),
    is_folder=_is_folder,
    hint=", as folders of frames or as animated images",
)
