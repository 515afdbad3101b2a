"""A long recording → parts of it, cut where it is quiet, found in one reading in little memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.data.audio.wav import Samples, is_silent, open_recording

BLOCK = 0.01
"""Loudness is measured over so many seconds."""

QUIET = 0.1
"""A block is quiet if it has less than this share of what is loud nearby."""

HUSHED = 0.02
"""A block with less than this share of what was loud before is in no word."""

LEAD = 0.3
"""Seconds of hush that a part may begin with."""

FADING = 0.8
"""With each part, what was loud before counts less: somebody else may speak, and more softly."""

LEAST_PAUSE = 3
"""Quiet blocks in a row that make a pause; fewer may be in the middle of a word."""

OVERLAP = 0.5
"""Where there is no pause, the next part begins so many seconds before the end of this one."""


@dataclass(frozen=True)
class Chunk:
    """A part of a recording."""

    path: str
    begin: float
    """In seconds."""
    end: float
    has_overlap: bool = False
    """Whether it begins before the end of the part before it."""

    @property
    def reference(self) -> str:
        """What a field reads it by."""
        return f"{self.path}#t={self.begin:.6f},{self.end:.6f}"


def cut_at_pauses(path: str, *, seconds: float) -> Iterator[Chunk]:
    """Cut a recording in the longest pause between half of `seconds` and `seconds`, on and on.

    Only one part is in memory. Where nobody speaks for a while, it is left out: who has learned
    that there always are words would write some.

    Args:
        path: A recording, as `open_recording` takes it.
        seconds: How long a part is at most.
    """
    with open_recording(path) as file:
        most, overlap = int(seconds * file.rate), int(OVERLAP * file.rate)
        begin, has_overlap, loud, num_parts = 0, False, 0.0, 0
        while begin < file.num_samples:
            samples, is_pause = file.read(begin, most), True
            loud = max(loud, _loud(measure_loudness(samples, file.rate)))
            if hush := _measure_hush(samples, file.rate, loud):
                begin, has_overlap = begin + hush, False
                continue
            if begin + len(samples) < file.num_samples:
                place, is_pause = find_pause(samples[most // 2 :], file.rate, loud=loud)
                samples = samples[: most // 2 + place]
            end = begin + len(samples)
            yield Chunk(path, begin / file.rate, end / file.rate, has_overlap)
            num_parts, loud = num_parts + 1, FADING * loud
            begin, has_overlap = (end, False) if is_pause else (end - overlap, True)
    if not num_parts:
        raise DataError(f"{path} holds no sound but silence. Record it again, or leave it out.")


def find_pause(samples: Samples, rate: int, *, loud: float = 0.0) -> tuple[int, bool]:
    """Return the middle of the longest pause, or where it is least loud, and whether it is one.

    Args:
        samples: Where to cut.
        rate: Samples a second.
        loud: How loud it was before; what is loud in `samples` themselves may be more.
    """
    size = _block(rate)
    loudness = measure_loudness(samples, rate)
    is_quiet = loudness <= QUIET * max(loud, _loud(loudness))
    # A pause begins where the sign of change is +1, and ends where it is -1.
    changes = np.diff(np.concatenate([[0], is_quiet.astype(np.int8), [0]]))
    begins, ends = np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)
    lengths = ends - begins
    if not lengths.size or lengths.max() < LEAST_PAUSE:
        return (int(loudness.argmin()) * size + size // 2, False)
    longest = int(lengths.argmax())
    return (int(begins[longest] + ends[longest]) * size // 2, True)


def measure_loudness(samples: Samples, rate: int) -> NDArray[np.float64]:
    """Return how loud each block is; of less than a block, how loud it is as a whole."""
    size = min(_block(rate), len(samples))
    blocks = samples[: len(samples) // size * size].reshape(-1, size)
    loudness: NDArray[np.float64] = np.sqrt(np.square(blocks, dtype=np.float64).mean(1))
    return loudness


def _block(rate: int) -> int:
    return max(1, round(BLOCK * rate))


def _loud(loudness: NDArray[np.float64]) -> float:
    """Return what is loud, though not a single crack."""
    return float(np.quantile(loudness, 0.95))


def _measure_hush(samples: Samples, rate: int, loud: float) -> int:
    """Return how many samples come before somebody speaks, but for the last moment before it."""
    is_word = measure_loudness(samples, rate) > HUSHED * loud
    if is_silent(samples) or not is_word.any():
        return len(samples)
    return max(0, int(is_word.argmax()) * _block(rate) - round(LEAD * rate))
