"""Many references → small images, each decoded once."""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from regard.core.logging import logger
from regard.data import decoding
from regard.data.image.builtin import PICTURES, RENDERED, to_image
from regard.data.image.files import IMAGE_FILES
from regard.data.image.resize import RESAMPLING, Frame, Pixels, read_image, to_pixels
from regard.data.media import Decoder

NUM_PER_WORKER = 5_000
"""Images to render that make a worker process worth its start."""

CHUNK = 500
"""Images that a worker process renders at once."""


def image_decoder(frame: Frame) -> Decoder:
    """Return how images are brought into a frame."""
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
    """Return numbered images, (B, C, Y, X); the last are kept, to be measured and trained on.

    They need no file: some are rendered, and the others lie in arrays anyway.
    """
    num_workers = decoding.count_workers(len(arguments), NUM_PER_WORKER) if name in RENDERED else 0
    if num_workers > 1:
        logger.info("rendering %s images", f"{len(arguments):,}")
    work = partial(_render_part, name, frame)
    parts = [*decoding.spread(work, arguments, chunk=CHUNK, num_workers=num_workers)]
    pixels = parts[0] if len(parts) == 1 else np.concatenate(parts)
    pixels.flags.writeable = False
    return pixels


def _render_part(name: str, frame: Frame, arguments: Sequence[str]) -> Pixels:
    """Bring pictures of one size to (B, C, Y, X), as `to_pixels` does one by one."""
    pictures = PICTURES[name](arguments)  # (B, Y, X, C)
    _, height, width, channels = pictures.shape
    if height != width or channels > frame.channels:
        return np.stack([to_pixels(to_image(picture), frame) for picture in pictures])
    if height != frame.size:
        pictures = _resize_squares(pictures, frame.size)
    pixels = pictures.transpose(0, 3, 1, 2).repeat(frame.channels // channels, axis=1)
    return np.ascontiguousarray(pixels)  # (B, C, Y, X)


def _resize_squares(pictures: Pixels, size: int) -> Pixels:
    """Resize many pictures at once, (B, Y, X, C) to (B, Y, X, C).

    Pillow does it along the rows first and along the columns then. So they lie one above the other
    for the first and side by side for the second, and nothing is mixed.
    """
    num, side, _, channels = pictures.shape
    high = to_image(pictures.reshape(num * side, side, channels))
    rows = np.asarray(high.resize((size, num * side), RESAMPLING))
    beside = rows.reshape(num, side, size, channels).swapaxes(0, 1)  # (Y, B, X, C)
    wide = to_image(beside.reshape(side, num * size, channels))
    columns = np.asarray(wide.resize((num * size, size), RESAMPLING))
    return columns.reshape(size, num, size, channels).swapaxes(0, 1)  # (B, Y, X, C)
