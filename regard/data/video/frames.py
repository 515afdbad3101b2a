"""A reference → the frames of a video: a folder of them, an animated image, or a numbered one."""

import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from regard.core.errors import DataError
from regard.core.tables import on_demand
from regard.data.image.io import open_image, to_8_bits
from regard.data.image.resize import Frame, Pixels, to_pixels
from regard.data.media import split_numbered

SUFFIXES = frozenset((".gif", ".webp", ".png", ".apng"))
"""What the names of animated images end in."""
FRAME_SUFFIXES = frozenset((".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"))
"""What the names of frames end in, where a folder holds other files, too."""

MAX_FRAMES = 10_000
"""Frames that a video may have; of more, somebody should choose a part."""


_render_reference = on_demand("regard.data.datasets.synthetic.moving:render_reference")


def _render_moving(reference: str, num_frames: int, frame: Frame) -> Pixels:
    rendered = _render_reference(reference, num_frames, frame.size)
    if frame.channels == 3:
        return np.ascontiguousarray(rendered.transpose(0, 3, 1, 2))  # (F, C, Y, X)
    return np.stack([to_pixels(Image.fromarray(picture), frame) for picture in rendered])


VIDEOS: dict[str, Callable[[str, int, Frame], Pixels]] = {"moving": _render_moving}
"""Where numbered videos come from, by the name that their references begin with."""


def read_video(reference: str, num_frames: int, frame: Frame) -> Pixels:
    """Read a video, evenly from its beginning to its end: (F, C, Y, X).

    Args:
        reference: A folder of frames with a number each, an animated GIF, WebP or PNG, or a
            numbered video of a data set such as `moving/0/17`.
        num_frames: How many frames are taken; some of a shorter video come more than once.
        frame: What each becomes.
    """
    if numbered := split_numbered(reference, VIDEOS):
        return VIDEOS[numbered[0]](reference, num_frames, frame)
    place = Path(reference)
    if place.is_dir():
        return _read_folder(place, num_frames, frame)
    if not place.exists():
        raise DataError(f"{reference} does not exist.")
    return _read_animation(place, num_frames, frame)


def list_frames(folder: Path) -> list[Path]:
    """Return the frames of a folder by the last number in their names, of which none may lack."""
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in FRAME_SUFFIXES or path.name.startswith("."):
            continue
        digits = re.findall(r"\d+", path.stem, re.ASCII)
        if not digits:
            raise DataError(
                f"{path} has no number in its name. Frames must be numbered, as frame_001.png is."
            )
        if (number := int(digits[-1])) in found:
            raise DataError(
                f"{folder} has two frames of the number {number}: {found[number].name} and "
                f"{path.name}. Leave one."
            )
        found[number] = path
    if not found:
        raise DataError(f"{folder} holds no frame, but a video needs at least two images.")
    numbers = sorted(found)
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise DataError(
                f"{folder} has no frame {before + 1}: {found[after].name} follows "
                f"{found[before].name}. Number the frames without a gap."
            )
    return [found[number] for number in numbers]


def choose_frames(num: int, wanted: int) -> list[int]:
    """Return which of `num` frames stand for a video of `wanted`: the first, the last, evenly."""
    return [int(place) for place in np.linspace(0, num - 1, wanted).round()]


def _read_folder(folder: Path, num_frames: int, frame: Frame) -> Pixels:
    paths = [str(path) for path in list_frames(folder)]

    def read(number: int) -> Pixels:
        return to_pixels(open_image(paths[number], max_pixels=frame.max_pixels), frame)

    return _read_chosen(len(paths), num_frames, read, reference=str(folder))


def _read_animation(path: Path, num_frames: int, frame: Frame) -> Pixels:
    # The first frame says what is wrong with a file that is no image, or too large.
    open_image(str(path), max_pixels=frame.max_pixels)
    with warnings.catch_warnings(action="ignore"), Image.open(path) as image:

        def read(number: int) -> Pixels:
            try:
                image.seek(number)
                return to_pixels(to_8_bits(image), frame)
            # What a damaged file makes the decoders raise is no closed list.
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise DataError(f"{path} is a damaged video ({reason}).") from None

        num = getattr(image, "n_frames", 1)
        return _read_chosen(num, num_frames, read, reference=str(path))


def _read_chosen(
    num: int, num_frames: int, read: Callable[[int], Pixels], *, reference: str
) -> Pixels:
    """Read so many of all frames, each once, if a video may have as many."""
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
