"""Segmentation of long recordings at pauses, in one pass with constant memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.data.audio.wav import Samples, is_silent, open_recording

BLOCK = 0.01
"""Length of a block, over which loudness is measured, in seconds."""

QUIET = 0.1
"""Loudness of a block, as a share of the loudness nearby, below which it is quiet."""

NO_SPEECH = 0.02
"""Loudness of a block, as a share of the loudness before, below which it holds no speech."""

LEAD = 0.3
"""Maximum length of silence at the start of a chunk, in seconds."""

DECAY = 0.8
"""Factor of the loudness per chunk, since a later speaker may be quieter."""

MIN_PAUSE = 3
"""Minimum number of consecutive quiet blocks in a pause; fewer may be within a word."""

OVERLAP = 0.5
"""Overlap of consecutive chunks without a pause between them, in seconds."""


@dataclass(frozen=True)
class Chunk:
    """A part of a recording; times are in seconds."""

    path: str
    start: float
    end: float
    has_overlap: bool = False
    """Whether it starts before the end of the previous chunk."""

    @property
    def reference(self) -> str:
        """Reference of the chunk, as audio fields read it."""
        return f"{self.path}#t={self.start:.6f},{self.end:.6f}"


def split_at_pauses(path: str, *, seconds: float) -> Iterator[Chunk]:
    """Yield chunks of a recording, each split at the longest pause in its second half.

    Only one chunk is in memory. Long stretches without speech are skipped: a model trained on
    speech only would predict words for them.

    Args:
        path: A recording as for `open_recording`.
        seconds: Maximum duration of a chunk.
    """
    with open_recording(path) as file:
        max_samples, overlap = int(seconds * file.rate), int(OVERLAP * file.rate)
        start, has_overlap, loud, num_chunks = 0, False, 0.0, 0
        while start < file.num_samples:
            samples, is_pause = file.read(start, max_samples), True
            loud = max(loud, _high_loudness(measure_loudness(samples, file.rate)))
            if num_silent := _leading_silence(samples, file.rate, loud):
                start, has_overlap = start + num_silent, False
                continue
            if start + len(samples) < file.num_samples:
                pause, is_pause = find_pause(samples[max_samples // 2 :], file.rate, loud=loud)
                samples = samples[: max_samples // 2 + pause]
            end = start + len(samples)
            yield Chunk(path, start / file.rate, end / file.rate, has_overlap)
            num_chunks, loud = num_chunks + 1, DECAY * loud
            start, has_overlap = (end, False) if is_pause else (end - overlap, True)
    if not num_chunks:
        raise DataError(f"{path} holds only silence. Record it again, or leave it out.")


def find_pause(samples: Samples, rate: int, *, loud: float = 0.0) -> tuple[int, bool]:
    """Return the middle of the longest pause and True, or the quietest position and False.

    Args:
        samples: Samples to search.
        rate: Samples a second.
        loud: Loudness of earlier speech; that of `samples` is used if it is higher.
    """
    size = _block(rate)
    loudness = measure_loudness(samples, rate)
    is_quiet = loudness <= QUIET * max(loud, _high_loudness(loudness))
    # A pause starts where the difference is +1, and ends where it is -1.
    changes = np.diff(np.concatenate([[0], is_quiet.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)
    lengths = ends - starts
    if not lengths.size or lengths.max() < MIN_PAUSE:
        return (int(loudness.argmin()) * size + size // 2, False)
    longest = int(lengths.argmax())
    return (int(starts[longest] + ends[longest]) * size // 2, True)


def measure_loudness(samples: Samples, rate: int) -> NDArray[np.float64]:
    """Return the root mean square of each block; of all samples if there is less than a block."""
    size = min(_block(rate), len(samples))
    blocks = samples[: len(samples) // size * size].reshape(-1, size)
    loudness: NDArray[np.float64] = np.sqrt(np.square(blocks, dtype=np.float64).mean(1))
    return loudness


def _block(rate: int) -> int:
    return max(1, round(BLOCK * rate))


def _high_loudness(loudness: NDArray[np.float64]) -> float:
    """Return the 95th percentile of loudness, which ignores single clicks."""
    return float(np.quantile(loudness, 0.95))


def _leading_silence(samples: Samples, rate: int, loud: float) -> int:
    """Return the number of samples before speech starts, less `LEAD` seconds."""
    is_speech = measure_loudness(samples, rate) > NO_SPEECH * loud
    if is_silent(samples) or not is_speech.any():
        return len(samples)
    return max(0, int(is_speech.argmax()) * _block(rate) - round(LEAD * rate))
