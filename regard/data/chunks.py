"""A long recording → parts of it, cut where it is quiet, found in one reading in little memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.core.errors import DataError
from regard.data.waves import Samples, is_silent, open_recording

BLOCK = 0.01
"""Loudness is measured over so many seconds."""

QUIET = 0.1
"""A block is quiet if it has less than this share of what is loud nearby."""

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

    Only one part is in memory, and parts that are nothing but silence are left out.

    Args:
        path: A recording, as `open_recording` takes it.
        seconds: How long a part is at most.
    """
    with open_recording(path) as file:
        most, overlap = int(seconds * file.rate), int(OVERLAP * file.rate)
        begin, has_overlap, is_last, is_heard = 0, False, False, False
        while not is_last:
            samples = file.read(begin, most)
            is_last, is_pause = file.num_samples - begin <= most, True
            if not is_last:
                place, is_pause = find_pause(samples[most // 2 :], file.rate)
                samples = samples[: most // 2 + place]
            end = begin + len(samples)
            if samples.size and not is_silent(samples):
                is_heard = True
                yield Chunk(path, begin / file.rate, end / file.rate, has_overlap)
            begin, has_overlap = (end, False) if is_pause else (end - overlap, True)
    if not is_heard:
        raise DataError(f"{path} holds no sound but silence. Record it again, or leave it out.")


def find_pause(samples: Samples, rate: int) -> tuple[int, bool]:
    """Return the middle of the longest pause, or where it is least loud, and whether it is one."""
    size = max(1, round(BLOCK * rate))
    blocks = samples[: len(samples) // size * size].reshape(-1, size)
    loudness = np.sqrt(np.square(blocks, dtype=np.float64).mean(1))
    is_quiet = loudness <= QUIET * np.quantile(loudness, 0.95)
    # A pause begins where the sign of change is +1, and ends where it is -1.
    changes = np.diff(np.concatenate([[0], is_quiet.astype(np.int8), [0]]))
    begins, ends = np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)
    lengths = ends - begins
    if not lengths.size or lengths.max() < LEAST_PAUSE:
        return (int(loudness.argmin()) * size + size // 2, False)
    longest = int(lengths.argmax())
    return (int(begins[longest] + ends[longest]) * size // 2, True)
