"""Reading of videos: folders of frames, animated images, and numbered videos."""

import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from regard.core.errors import DataError
from regard.core.tables import on_demand
from regard.data.formats import VIDEO, read_head
from regard.data.image.builtin import Pixels
from regard.data.image.io import check_size, open_image, to_8_bits
from regard.data.image.pillow import open_with_pillow
from regard.data.image.resize import Frame, to_pixels
from regard.data.media import split_numbered

FRAME_SUFFIXES = frozenset((".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"))
"""Suffixes of frames; other files in a folder are ignored."""

MAX_FRAMES = 10_000
"""Maximum number of frames of a video."""


_render_reference = on_demand("regard.data.datasets.synthetic.moving:render_reference")


def _render_moving(reference: str, num_frames: int, frame: Frame) -> Pixels:
    rendered = _render_reference(reference, num_frames, frame.size)
    if frame.channels == 3:
        return np.ascontiguousarray(rendered.transpose(0, 3, 1, 2))  # (F, C, Y, X)
    return np.stack([to_pixels(Image.fromarray(image), frame) for image in rendered])


NUMBERED_VIDEOS: dict[str, Callable[[str, int, Frame], Pixels]] = {"moving": _render_moving}
"""Functions that render numbered videos, by the prefix of their references."""


def read_video(reference: str, num_frames: int, frame: Frame) -> Pixels:
    """Read evenly spaced frames of a video: (F, C, Y, X).

    Args:
        reference: A folder of numbered frames, an animated GIF, WebP or PNG, or a numbered video
            of a data set such as `moving/0/17`.
        num_frames: Number of frames to read; frames of a shorter video are repeated.
        frame: Size, channels and fit of the frames.
    """
    if numbered := split_numbered(reference, NUMBERED_VIDEOS):
        return NUMBERED_VIDEOS[numbered[0]](reference, num_frames, frame)
    path = Path(reference)
    if path.is_dir():
        return _read_folder(path, num_frames, frame)
    if not path.exists():
        raise DataError(f"{reference} does not exist.")
    VIDEO.check(reference, read_head(path))
    return _read_animation(path, num_frames, frame)


def list_frames(folder: Path) -> list[Path]:
    """Return the frames of a folder in the order of the last number in their names.

    Raise `DataError` if a number is missing or occurs twice.
    """
    frames: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in FRAME_SUFFIXES or path.name.startswith("."):
            continue
        digits = re.findall(r"\d+", path.stem, re.ASCII)
        if not digits:
            raise DataError(
                f"{path} has no number in its name. Frames must be numbered, as frame_001.png is."
            )
        if (number := int(digits[-1])) in frames:
            raise DataError(
                f"{folder} has two frames of the number {number}: {frames[number].name} and "
                f"{path.name}. Leave one."
            )
        frames[number] = path
    if not frames:
        raise DataError(f"{folder} holds no frame, but a video needs at least two images.")
    numbers = sorted(frames)
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise DataError(
                f"{folder} has no frame {before + 1}: {frames[after].name} follows "
                f"{frames[before].name}. Number the frames consecutively."
            )
    return [frames[number] for number in numbers]


def choose_frames(num: int, num_chosen: int) -> list[int]:
    """Return the indexes of `num_chosen` of `num` frames, evenly spaced from first to last."""
    return [int(index) for index in np.linspace(0, num - 1, num_chosen).round()]


def _read_folder(folder: Path, num_frames: int, frame: Frame) -> Pixels:
    paths = [str(path) for path in list_frames(folder)]

    def read(number: int) -> Pixels:
        return to_pixels(open_image(paths[number], max_pixels=frame.max_pixels), frame)

    return _read_chosen(len(paths), num_frames, read, reference=str(folder))


def _read_animation(path: Path, num_frames: int, frame: Frame) -> Pixels:
    # Opening the first frame raises the errors of files that are not images, or too large.
    open_image(str(path), max_pixels=frame.max_pixels)
    with warnings.catch_warnings(action="ignore"), open_with_pillow(path) as image:

        def read(number: int) -> Pixels:
            try:
                image.seek(number)
                check_size(str(path), image.size, frame.max_pixels)  # A frame may enlarge a GIF.
                return to_pixels(to_8_bits(image), frame)
            except DataError:
                raise
            # Decoders raise many kinds of exceptions for damaged files.
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise DataError(f"{path} is a damaged video ({reason}).") from None

        num = getattr(image, "n_frames", 1)
        return _read_chosen(num, num_frames, read, reference=str(path))


def _read_chosen(
    num: int, num_frames: int, read: Callable[[int], Pixels], *, reference: str
) -> Pixels:
    """Read `num_frames` of `num` frames, each distinct frame once; check `num`."""
    if num < 2:
        raise DataError(
            f"{reference} has one frame, but a video needs at least two. Read it as an image: set "
            "`data.source.kind` to 'image'."
        )
    if num > MAX_FRAMES:
        raise DataError(
            f"{reference} has {num:,} frames, but a video has {MAX_FRAMES:,} at most. Cut it."
        )
    chosen = choose_frames(num, num_frames)
    pixels = {number: read(number) for number in dict.fromkeys(chosen)}
    return np.stack([pixels[number] for number in chosen])
