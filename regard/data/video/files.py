"""Videos that a person has: a folder for each label, a file of captions, a list of paths."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.label_folders import pair_with_labels
from regard.data.splits import expand_references
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import read_examples
from regard.data.video.frames import FRAME_SUFFIXES, SUFFIXES, is_numbered


def read_video_folder(path: str | Path) -> list[Example]:
    """Read a folder with a folder for each label, in which the videos with this label lie."""
    root = Path(path)
    found = pair_with_labels(root, _videos_in)
    if not found:
        raise DataError(
            f"{root} holds no video in a folder of its own label. Videos of waving must lie in "
            f"{root / 'waving'}, for example, as folders of frames or as animated images."
        )
    return found


def read_video_captions(path: str | Path, *, columns: Sequence[str] = ()) -> list[Example]:
    """Read a file of videos and captions, or labels, one example for each caption.

    It is TSV, CSV or JSON lines as for `read_examples`, with the video in the place of the source:
    a path that starts at the folder of the file. Where a video does not exist, the example is
    skipped and counted.

    Args:
        path: The file.
        columns: What stands in its columns, if not video and caption.
    """
    folder = _folder_of(path)
    examples = [
        replace(example, source=_place(example.source, folder))
        for example in expand_references(read_examples(path, columns=columns))
    ]
    missing = list(dict.fromkeys(e.source for e in examples if not _is_there(e.source)))
    kept = [example for example in examples if example.source not in set(missing)]
    if not kept:
        raise DataError(
            f"{file_name(path)} names no video that exists. First: {missing[0]}. Paths start at "
            "the folder of the file."
        )
    if missing:
        logger.warning(
            "skipped %s videos in %s that cannot be found (first: %s)",
            f"{len(missing):,}",
            file_name(path),
            missing[0],
        )
    return kept


def find_videos(path: str) -> list[str]:
    """Return the references of a video, of a folder of videos, or of a list of paths.

    Args:
        path: A video, a numbered one, a folder with videos in it, or a text file with a path on
            each line (`-` for standard input). These paths start at the folder of the list.
    """
    place = Path(path)
    if is_numbered(path) or _is_video(place):
        return [path]
    if place.is_dir():
        found = [str(video) for video in _videos_in(place)]
        # Without a video in it, it is taken for one, and whoever reads it says what is wrong.
        return found or [path]
    folder = _folder_of(path)
    found = [_place(line.strip(), folder) for line in read_lines(path) if line.strip()]
    if not found:
        raise DataError(f"{file_name(path)} holds no video.")
    return found


def _videos_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if _is_video(path)]


def _is_video(path: Path) -> bool:
    """Tell whether a path is that of an animated image, or of a folder with images in it."""
    if path.name.startswith("."):
        return False
    if path.is_dir():
        return any(entry.suffix.lower() in FRAME_SUFFIXES for entry in path.iterdir())
    return path.suffix.lower() in SUFFIXES and path.is_file()


def _is_there(reference: str) -> bool:
    return is_numbered(reference) or Path(reference).exists()


def _folder_of(path: str | Path) -> Path:
    return Path() if str(path) == STANDARD_INPUT else Path(path).parent


def _place(name: str, folder: Path) -> str:
    # Absolute, because the examples of a run are kept in another folder.
    return name if is_numbered(name) else os.path.abspath(folder / name)
