"""Decoder of images to small squares of one size."""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from regard.core.logging import logger
from regard.core.progress import track
from regard.core.workers import count_workers, map_chunks
from regard.data.decoding import split
from regard.data.image.builtin import NUMBERED_IMAGES, RENDERED, Pixels, to_image
from regard.data.image.files import IMAGE_FILES
from regard.data.image.resize import RESAMPLING, Frame, read_image, to_pixels
from regard.data.media import Decoder

NUM_PER_WORKER = 5_000
"""Minimum number of rendered images per worker process."""

CHUNK = 500
"""Number of images that a worker process renders at a time."""


def image_decoder(frame: Frame) -> Decoder:
    """Return a decoder of images to (1, C, Y, X)."""
    return Decoder(
        medium=IMAGE_FILES,
        settings=frame,
        read=partial(read_image, frame=frame),
        read_numbered=partial(_read_numbered, frame),
        row=(frame.channels, frame.size, frame.size),
        has_workers=True,
    )


def _read_numbered(frame: Frame, name: str, arguments: tuple[str, ...]) -> list[Pixels]:
    return [pixels[None] for pixels in _render(name, arguments, frame)]


@lru_cache(maxsize=2)
def _render(name: str, arguments: tuple[str, ...], frame: Frame) -> Pixels:
    """Return numbered images (B, C, Y, X); the latest are cached for statistics and training."""
    num_workers = count_workers(len(arguments), NUM_PER_WORKER) if name in RENDERED else 0
    if num_workers > 1:
        logger.info("rendering %s images", f"{len(arguments):,}")
    work = partial(_render_part, name, frame)
    chunks = split(arguments, CHUNK) if num_workers > 1 else [arguments]
    rendered = map_chunks(work, chunks, num_workers=num_workers)
    parts = [*track(rendered, "Rendering images", total=len(arguments), size=len)]
    pixels = parts[0] if len(parts) == 1 else np.concatenate(parts)
    pixels.flags.writeable = False
    return pixels


def _render_part(name: str, frame: Frame, arguments: Sequence[str]) -> Pixels:
    """Convert images of one size to (B, C, Y, X), as `to_pixels` does one by one."""
    images = NUMBERED_IMAGES[name](arguments)  # (B, Y, X, C)
    _, height, width, channels = images.shape
    if height != width or channels > frame.channels:
        return np.stack([to_pixels(to_image(image), frame) for image in images])
    if height != frame.size:
        images = _resize_squares(images, frame.size)
    pixels = images.transpose(0, 3, 1, 2).repeat(frame.channels // channels, axis=1)
    return np.ascontiguousarray(pixels)  # (B, C, Y, X)


def _resize_squares(images: Pixels, size: int) -> Pixels:
    """Resize many square images at once, (B, Y, X, C) to (B, Y, X, C).

    Pillow resizes the width first, then the height. So images are stacked vertically for the first
    step and horizontally for the second, and pixels of different images are not mixed.
    """
    num, side, _, channels = images.shape
    high = to_image(images.reshape(num * side, side, channels))
    rows = np.asarray(high.resize((size, num * side), RESAMPLING))
    beside = rows.reshape(num, side, size, channels).swapaxes(0, 1)  # (Y, B, X, C)
    wide = to_image(beside.reshape(side, num * size, channels))
    columns = np.asarray(wide.resize((num * size, size), RESAMPLING))
    return columns.reshape(size, num, size, channels).swapaxes(0, 1)  # (B, Y, X, C)
