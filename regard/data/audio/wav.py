"""Audio files: WAVE and other formats, read completely or in part, as one channel.

The standard library's `wave` does not read 32-bit floats and extensible headers, which many
programs write. Other formats are read by `soundfile`, if it is installed.
"""

import os
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.data.archives import open_bytes
from regard.data.formats import AUDIO, HEAD_BYTES, INSTALL, WAVE, is_installed

Samples = NDArray[np.float32]
"""One channel, from -1 to 1."""

RATES = 1_000, 768_000
"""Minimum and maximum sampling rate, in samples a second."""

MAX_CHANNELS = 64
"""Maximum number of channels; all of them are decoded at once."""

_FORMAT_BYTES = 64
"""Number of bytes of a format chunk that are read; those after them are extensions."""

_BLOCK = 1 << 20
"""Number of samples that are decoded at a time, however many a header states."""

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
"""Sample formats; an extensible header stores the format in another field."""

UNKNOWN_SIZE = 0xFFFFFFFF
"""Size in the header of a streamed file: samples up to the end of the file."""

SILENCE = 1e-4
"""Maximum range of samples that are silence; the noise of 16 bits is a third of it."""

_SPAN = re.compile(r"(.+)#t=(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)", re.DOTALL)


@dataclass(frozen=True)
class Waveform:
    """A recording in memory."""

    samples: Samples
    rate: int
    """Samples a second."""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


class Recording(ABC):
    """An open audio file, of which any part can be read."""

    rate: int
    num_samples: int

    def __init__(self, file: BinaryIO, reference: str) -> None:
        self._file, self._reference = file, reference

    @abstractmethod
    def read(self, first: int = 0, num: int | None = None) -> Samples:
        """Return `num` samples, or all, from `first` on, as the mean of the channels."""


@contextmanager
def open_recording(reference: str) -> Iterator[Recording]:
    """Open a recording.

    Args:
        reference: A path, or a path through a `.zip` file to a member of it.
    """
    with open_bytes(reference, what="a recording") as file:
        head = file.read(HEAD_BYTES)
        if not head:
            raise DataError(f"{reference} is an empty file. Fetch it again.")
        file.seek(0)
        if WAVE.matches(head):
            yield _WaveFile(file, reference)
        else:
            AUDIO.check(reference, head)
            yield _OtherFile(file, reference, head)


def split_span(reference: str) -> tuple[str, float, float] | None:
    """Return file, start and end of a part such as `a.wav#t=2.5,4`; None for whole recordings.

    The syntax is that of W3C media fragments; times are in seconds.
    """
    match = None if os.path.isfile(reference) else _SPAN.fullmatch(reference)
    return (match[1], float(match[2]), float(match[3])) if match else None


def read_file(reference: str, *, max_seconds: float) -> Waveform:
    """Read a recording, or a part of one, as one channel.

    Args:
        reference: A path, a path through a `.zip` file to a member of it, or either with a part.
        max_seconds: Maximum duration; a longer recording raises `DataError` before it is read.
    """
    path, start, end = split_span(reference) or (reference, 0.0, None)
    with open_recording(path) as file:
        first = round(start * file.rate)
        last = file.num_samples if end is None else min(round(end * file.rate), file.num_samples)
        if last <= first:
            raise _no_samples(reference, file, start)
        if last - first > max_seconds * file.rate:
            part = f"{path}#t={start:g},{start + max_seconds:g}"
            raise DataError(
                f"{reference} has {(last - first) / file.rate:,.1f} seconds, but `max_seconds` "
                f"allows {max_seconds:g}. Give a part (`{part}`), train with a larger "
                "`data.source.max_seconds`, or, to transcribe it in segments, use `--chunk`."
            )
        return Waveform(file.read(first, last - first), file.rate)


def _no_samples(reference: str, file: Recording, start: float) -> DataError:
    """Return the error for a recording, or a part that begins at `start` seconds, without audio."""
    if not file.num_samples:
        return DataError(f"{reference} holds no audio: it is empty or cut off. Fetch it again.")
    seconds = file.num_samples / file.rate
    if start >= seconds:
        return DataError(
            f"{reference} begins at {start:g} s, but the recording ends at {seconds:.4g} s. "
            "Give an earlier part."
        )
    return DataError(f"{reference} holds no audio: it must end after {start:g} s, where it begins.")


def is_silent(samples: Samples) -> bool:
    """Return whether samples are inaudible, even if not exactly constant."""
    return bool(np.ptp(samples) <= SILENCE)


class _WaveFile(Recording):
    """A WAVE file (RIFF) of 8 to 32-bit integers or of floats."""

    def __init__(self, file: BinaryIO, reference: str) -> None:
        """Read the chunks up to the samples; each has a four-letter name, a size and content."""
        super().__init__(file, reference)
        end = file.seek(0, os.SEEK_END)
        file.seek(12)
        missing = "format"
        while len(header := file.read(8)) == 8:
            name, size = struct.unpack("<4sI", header)
            following = file.tell() + size + size % 2
            if name == b"data" and missing == "samples":
                self._find_samples(size, end - file.tell())
                return
            if name == b"fmt ":
                self._parse_format(file.read(min(size, _FORMAT_BYTES)))
                missing = "samples"
            file.seek(following)
        raise DataError(f"{reference} is a damaged WAVE file: it has no chunk with its {missing}.")

    def _parse_format(self, chunk: bytes) -> None:
        if len(chunk) < 16:
            raise DataError(f"{self._reference} is a damaged WAVE file: its format is cut off.")
        form, num_channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunk[:16])
        if form == EXTENSIBLE and len(chunk) >= 26:
            (form,) = struct.unpack("<H", chunk[24:26])
        if (form, bits) not in _DECODERS:
            raise DataError(
                f"{self._reference} has samples of format {form} in {bits} bits, but must have "
                "whole numbers (1) in 8, 16, 24 or 32 bits, or floats (3) in 32 or 64. Convert it."
            )
        _check_header(self._reference, rate, num_channels)
        self.rate = rate
        self._decode, self._num_channels = _DECODERS[form, bits], num_channels
        self._stride = num_channels * bits // 8  # bytes from one sample to the next

    def _find_samples(self, size: int, left: int) -> None:
        if size > left and size != UNKNOWN_SIZE:
            raise DataError(
                f"{self._reference} is cut off: its header states {size:,} bytes of samples, but "
                f"there are {left:,}. Fetch it again."
            )
        self._start = self._file.tell()
        self.num_samples = min(size, left) // self._stride

    def read(self, first: int = 0, num: int | None = None) -> Samples:
        available = max(self.num_samples - first, 0)
        self._file.seek(self._start + first * self._stride)
        data = self._file.read(self._stride * (available if num is None else min(num, available)))
        return _to_mono(self._decode(data).reshape(-1, self._num_channels), self._reference)


class _OtherFile(Recording):
    """A recording of another format, such as FLAC or Ogg."""

    def __init__(self, file: BinaryIO, reference: str, head: bytes) -> None:
        super().__init__(file, reference)
        if not is_installed("soundfile"):
            raise AUDIO.mismatch(reference, head)
        try:
            soundfile = import_module("soundfile")
        except (ImportError, OSError) as error:
            raise DataError(
                f"{reference} is read by `soundfile`, which cannot be imported ({error}). Install "
                f"it again: `{INSTALL['soundfile']}`."
            ) from None
        try:
            self._decoder: Any = soundfile.SoundFile(file)
        except (RuntimeError, OSError):
            # The message of the package describes its own file object: it would mislead.
            raise AUDIO.mismatch(reference, head) from None
        self.rate = int(self._decoder.samplerate)
        self.num_samples = int(self._decoder.frames)
        _check_header(reference, self.rate, int(self._decoder.channels))

    def read(self, first: int = 0, num: int | None = None) -> Samples:
        try:
            self._decoder.seek(first)
            left = self.num_samples - first if num is None else num
            parts = [self._read_block(min(_BLOCK, left))]
            # The memory of a block is allocated before it is decoded.
            while len(parts[-1]) == _BLOCK and (left := left - _BLOCK) > 0:
                parts.append(self._read_block(min(_BLOCK, left)))
        except (RuntimeError, OSError):
            raise DataError(f"{self._reference} is damaged or cut off. Fetch it again.") from None
        return np.concatenate(parts)

    def _read_block(self, num: int) -> Samples:
        return _to_mono(
            self._decoder.read(max(num, 0), dtype="float32", always_2d=True), self._reference
        )


def _check_header(reference: str, rate: int, num_channels: int) -> None:
    """Raise `DataError` for an impossible sampling rate or number of channels."""
    low, high = RATES
    if not low <= rate <= high or not 1 <= num_channels <= MAX_CHANNELS:
        raise DataError(
            f"{reference} states {rate:,} samples a second in {num_channels} channels, but must "
            f"have {low:,} to {high:,} in 1 to {MAX_CHANNELS} channels."
        )


def _to_mono(values: NDArray[Any], reference: str) -> Samples:
    """Return the mean of the channels of samples (L, C)."""
    samples: Samples = values.mean(1).astype(np.float32)
    if not np.isfinite(samples).all():
        raise DataError(f"{reference} contains samples that are infinite or NaN.")
    return samples


def _from_24_bits(data: bytes) -> NDArray[np.float64]:
    padded = np.zeros((len(data) // 3, 4), np.uint8)
    padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)  # the lowest byte comes first
    return padded.view("<i4")[:, 0] / 2.0**31


_DECODERS: dict[tuple[int, int], Callable[[bytes], NDArray[Any]]] = {
    (PCM, 8): lambda data: np.frombuffer(data, np.uint8) / 128.0 - 1.0,
    (PCM, 16): lambda data: np.frombuffer(data, "<i2") / 2.0**15,
    (PCM, 24): _from_24_bits,
    (PCM, 32): lambda data: np.frombuffer(data, "<i4") / 2.0**31,
    (FLOAT, 32): lambda data: np.frombuffer(data, "<f4"),
    (FLOAT, 64): lambda data: np.frombuffer(data, "<f8"),
}
"""Bytes → samples from -1 to 1, by format and bits."""
