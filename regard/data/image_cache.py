"""Decoded images on disk: one array for a set of files, good until one of them changes."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.core.errors import DataError
from regard.core.files import read_json, replacing, write_json
from regard.data.framing import Frame, Pixels
from regard.data.opening import find_archive

_FORMAT = 1
"""A new number makes all that is in the cache old."""


@dataclass(frozen=True)
class Decoded:
    """Images that were read, and why others were not."""

    images: dict[str, Pixels] = field(default_factory=dict)
    """(1, C, Y, X) each, by their references."""
    failures: dict[str, str] = field(default_factory=dict)
    """What is wrong with each of the other references, in a sentence."""

    def add(self, references: Iterable[str], pixels: Pixels) -> None:
        """Take up images as views of one array (B, C, Y, X)."""
        for row, reference in enumerate(references):
            self.images[reference] = pixels[row : row + 1]


class ImageCache:
    """What files were decoded to in one frame.

    There is an array for every set of files that can all be read, and for a set in which some
    cannot, a note on what is wrong with these. So the good ones of a set are also found when they
    are asked for by themselves.
    """

    def __init__(self, folder: Path, frame: Frame) -> None:
        self._folder = folder
        self._frame = frame

    def load(self, references: Sequence[str]) -> Decoded | None:
        """Return what a set of files was decoded to, mapped from disk, or None if it is not known.

        Args:
            references: Files, each once, in alphabetical order.
        """
        decoded = Decoded()
        if (note := self._path(references, ".json")).is_file():
            decoded.failures.update(read_json(note))
        good = [reference for reference in references if reference not in decoded.failures]
        if not good:
            return decoded
        try:
            pixels = np.load(self._path(good, ".npy"), mmap_mode="r")
        except (OSError, ValueError, EOFError):  # it is not there, or it is damaged
            return None
        if pixels.shape != self._shape(len(good)):
            return None
        decoded.add(good, pixels)
        return decoded

    def save(self, references: Sequence[str], found: Iterable[Pixels | str]) -> None:
        """Keep what files were decoded to, however much it is.

        Args:
            references: As for `load`.
            found: (C, Y, X) for each of them, or a sentence that says why there is nothing.
        """
        path = self._path(references, ".npy")
        try:
            failures = self._write(path, references, found)
            if failures:
                path.replace(self._path([r for r in references if r not in failures], ".npy"))
                write_json(path.with_suffix(".json"), failures)
        except OSError as error:
            raise DataError(
                f"{path} could not be written: {error.strerror}. "
                "Set REGARD_CACHE to another folder."
            ) from None

    def _write(
        self, path: Path, references: Sequence[str], found: Iterable[Pixels | str]
    ) -> dict[str, str]:
        failures: dict[str, str] = {}
        with replacing(path) as temporary, temporary.open("wb") as file:
            self._write_header(file, len(references))
            for reference, image in zip(references, found, strict=True):
                if isinstance(image, str):
                    failures[reference] = image
                else:
                    file.write(image.tobytes())
            # Only now the number of rows is known; numpy leaves room for it to change.
            file.seek(0)
            self._write_header(file, len(references) - len(failures))
        return failures

    def _write_header(self, file: BinaryIO, num: int) -> None:
        header = {"descr": "|u1", "fortran_order": False, "shape": self._shape(num)}
        np.lib.format.write_array_header_1_0(file, header)

    def _shape(self, num: int) -> tuple[int, int, int, int]:
        return num, self._frame.channels, self._frame.size, self._frame.size

    def _path(self, references: Iterable[str], suffix: str) -> Path:
        """Return a name that hangs on the frame, on the files and on when these were changed."""
        digest = hashlib.sha256(f"{_FORMAT} {self._frame}".encode())
        for reference in references:
            digest.update(f"\0{os.path.abspath(reference)}\0{_last_change(reference)}".encode())
        return self._folder / (digest.hexdigest()[:32] + suffix)


def _last_change(reference: str) -> tuple[int, int]:
    archive = find_archive(reference)
    try:
        found = os.stat(archive[0] if archive else reference)
    except (OSError, ValueError):
        return 0, 0
    return found.st_size, found.st_mtime_ns
