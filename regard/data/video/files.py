"""Video files: how they are recognised and what messages call them."""

from pathlib import Path

from regard.data.media import Medium
from regard.data.video.frames import FRAME_SUFFIXES, SUFFIXES, VIDEOS


def _is_folder(path: Path) -> bool:
    return any(entry.suffix.lower() in FRAME_SUFFIXES for entry in path.iterdir())


VIDEO_FILES = Medium(
    name="video",
    text="caption",
    suffixes=SUFFIXES,
    numbered=VIDEOS,
    headings=({"video"}, {"caption"}),
    is_folder=_is_folder,
    hint=", as folders of frames or as animated images",
)
