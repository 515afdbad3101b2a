"""Many references → small images, each decoded once: in worker processes, kept in a cache."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.datasets.download import cache_folder
from regard.data.datasets.synthetic.scenes import KINDS
from regard.data.image.builtin import PICTURES, split_reference, to_image
from regard.data.image.cache import Decoded, ImageCache
from regard.data.image.resize import RESAMPLING, Frame, Pixels, read_files, to_pixels

Found = TypeVar("Found")

NUM_CACHED = 64
"""Files from which on the cache is used; fewer are soon read again."""

NUM_PER_WORKER = 250
"""Files that make a worker process worth its start."""

MAX_WORKERS = 16

CHUNK = 32
"""Files that a worker process reads at once."""

NUM_DRAWN_PER_WORKER = 5_000
"""Pictures to draw that make a worker process worth its start."""

DRAWN_CHUNK = 500
"""Pictures that a worker process draws at once."""


def decode(references: Iterable[str], frame: Frame) -> Decoded:
    """Read images, each once however often it is named, and note which cannot be read.

    Many files are read once for all: the next time they come from the cache, unless the frame or
    the file has changed.
    """
    numbered: dict[str, list[tuple[str, str]]] = {}
    files: list[str] = []
    for reference in dict.fromkeys(references):
        if found := split_reference(reference):
            numbered.setdefault(found[0], []).append((reference, found[1]))
        else:
            files.append(reference)
    decoded = _decode_files(files, frame)
    for name, named in numbered.items():
        pixels = _draw(name, tuple(argument for _, argument in named), frame)
        decoded.add((reference for reference, _ in named), pixels)
    return decoded


def read_many(references: Sequence[str], frame: Frame) -> Iterator[Pixels | str]:
    """Read files as `read_files` does, many of them in worker processes."""
    num_workers = _num_workers(len(references) // NUM_PER_WORKER)
    if num_workers < 2:
        yield from read_files(references, frame)
        return
    for found in _spread(partial(read_files, frame=frame), _cut(references, CHUNK), num_workers):
        yield from found


def _num_workers(most: int) -> int:
    return min(MAX_WORKERS, _num_cores(), most)


def _cut(references: Sequence[str], size: int) -> list[Sequence[str]]:
    return [references[start : start + size] for start in range(0, len(references), size)]


def _spread(
    work: Callable[[Sequence[str]], Found], chunks: Sequence[Sequence[str]], num_workers: int
) -> Iterator[Found]:
    """Do the work of each chunk in worker processes; what comes of it keeps its order."""
    num_done = 0
    # A forked process would inherit threads and devices half-way through whatever they do.
    pool = ProcessPoolExecutor(num_workers, get_context("spawn"), _ignore_interrupts)
    try:
        for found in pool.map(work, chunks):
            yield found
            num_done += 1
    except BrokenProcessPool:
        logger.warning(
            "worker processes have ended early, and images are read in this one. "
            "Has your script `if __name__ == '__main__':` around what it does?"
        )
        yield from map(work, chunks[num_done:])
    finally:
        pool.shutdown(cancel_futures=True)


def _decode_files(references: Sequence[str], frame: Frame) -> Decoded:
    if len(references) < NUM_CACHED:
        return _collect(Decoded(), references, read_files(references, frame))
    folder = cache_folder() / "images"
    cache = ImageCache(folder, frame)
    decoded = cache.load(references)
    missing = [reference for reference in references if reference not in decoded]
    if len(missing) < NUM_CACHED:
        return _collect(decoded, missing, read_files(missing, frame))
    logger.info("reading %s images, to be kept in %s", f"{len(missing):,}", folder)
    cache.save(missing, read_many(missing, frame))
    decoded = cache.load(references)
    if any(reference not in decoded for reference in missing):
        raise DataError("Images have changed while they were read. Try again.")
    return decoded


def _collect(decoded: Decoded, references: Sequence[str], found: Iterable[Pixels | str]) -> Decoded:
    for reference, image in zip(references, found, strict=True):
        if isinstance(image, str):
            decoded.failures[reference] = image
        else:
            decoded.images[reference] = image[None]
    return decoded


@lru_cache(maxsize=2)
def _draw(name: str, arguments: tuple[str, ...], frame: Frame) -> Pixels:
    """Return numbered pictures, (B, C, Y, X); the last are kept, as who measures them also trains.

    They need no file: some are drawn, and the others lie in arrays anyway.
    """
    work = partial(_draw_part, name, frame)
    num_workers = _num_workers(len(arguments) // NUM_DRAWN_PER_WORKER)
    if name in KINDS and num_workers > 1:
        logger.info("drawing %s pictures", f"{len(arguments):,}")
        pixels = np.concatenate([*_spread(work, _cut(arguments, DRAWN_CHUNK), num_workers)])
    else:
        pixels = work(arguments)  # arrays are there at once, and few pictures soon drawn
    pixels.flags.writeable = False
    return pixels


def _draw_part(name: str, frame: Frame, arguments: Sequence[str]) -> Pixels:
    return _frame_all(PICTURES[name](arguments), frame)


def _frame_all(pictures: Pixels, frame: Frame) -> Pixels:
    """Bring pictures (B, Y, X, C) of one size to (B, C, Y, X), as `to_pixels` does one by one."""
    num, height, width, channels = pictures.shape
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


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
