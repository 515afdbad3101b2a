"""Decoded images on disk, good until their files change."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.core.errors import CheckpointError, DataError
from regard.core.files import read_json, replacing, write_json
from regard.data.image.io import find_archive
from regard.data.image.resize import Frame, Pixels

_FORMAT = 1
"""A new number makes all that is in the cache old."""


@dataclass(frozen=True)
class Decoded:
    """Images that were read, and why others were not."""

    images: dict[str, Pixels] = field(default_factory=dict)
    """(1, C, Y, X) each, by their references."""
    failures: dict[str, str] = field(default_factory=dict)
    """What is wrong with each of the other references, in a sentence."""

    def __contains__(self, reference: str) -> bool:
        return reference in self.images or reference in self.failures

    def add(self, references: Iterable[str], pixels: Pixels) -> None:
        """Take up images as views of one array (B, C, Y, X)."""
        for row, reference in enumerate(references):
            self.images[reference] = pixels[row : row + 1]


class ImageCache:
    """What files were decoded to in one frame.

    Whatever was read together lies in one array, beside a list of the rows and of what could not
    be read. A file is known by its place, its size and the time of its last change. So a part of
    what was read is found, too, and of more than that, only the rest is read.
    """

    def __init__(self, folder: Path, frame: Frame) -> None:
        """Look into a folder, without touching it.

        Args:
            folder: Where frames of all kinds are kept.
            frame: What the images became.
        """
        name = hashlib.sha256(f"{_FORMAT} {frame}".encode()).hexdigest()[:16]
        self._folder = folder / name
        self._shape = frame.channels, frame.size, frame.size

    def load(self, references: Sequence[str]) -> Decoded:
        """Return what is known of files, images mapped from disk."""
        places: dict[str, tuple[Pixels, int]] = {}
        failures: dict[str, str] = {}
        for index in sorted(self._folder.glob("*.json")):
            try:
                pixels = np.asarray(np.load(index.with_suffix(".npy"), mmap_mode="r"))
                known = read_json(index)
            except (OSError, ValueError, EOFError, CheckpointError):
                continue  # damaged: it will be read again
            if pixels.shape == (len(known["rows"]), *self._shape):
                failures.update(known["failures"])
                places.update({key: (pixels, row) for row, key in enumerate(known["rows"])})
        decoded = Decoded()
        for reference in references:
            key = file_key(reference)
            if key in places:
                pixels, row = places[key]
                decoded.images[reference] = pixels[row : row + 1]
            elif key in failures:
                decoded.failures[reference] = failures[key]
        return decoded

    def save(self, references: Sequence[str], found: Iterable[Pixels | str]) -> None:
        """Keep what files are decoded to, however much it is.

        Args:
            references: Files, each once.
            found: (C, Y, X) for each of them, or a sentence that says why there is nothing.
        """
        keys = [file_key(reference) for reference in references]
        digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]
        path = self._folder / f"{digest}.npy"
        try:
            failures = self._write(path, keys, found)
            rows = [key for key in keys if key not in failures]
            write_json(path.with_suffix(".json"), {"rows": rows, "failures": failures})
        except OSError as error:
            raise DataError(
                f"{path} could not be written: {error.strerror}. "
                "Set REGARD_CACHE to another folder."
            ) from None

    def _write(
        self, path: Path, keys: Sequence[str], found: Iterable[Pixels | str]
    ) -> dict[str, str]:
        failures: dict[str, str] = {}
        with replacing(path) as temporary, temporary.open("wb") as file:
            self._write_header(file, len(keys))
            for key, image in zip(keys, found, strict=True):
                if isinstance(image, str):
                    failures[key] = image
                else:
                    file.write(image.tobytes())
            # Only now the number of rows is known; numpy leaves room for it to change.
            file.seek(0)
            self._write_header(file, len(keys) - len(failures))
        return failures

    def _write_header(self, file: BinaryIO, num: int) -> None:
        header = {"descr": "|u1", "fortran_order": False, "shape": (num, *self._shape)}
        np.lib.format.write_array_header_1_0(file, header)


def file_key(reference: str) -> str:
    """Return place, size and last change of a file, or of the archive that it is in."""
    archive = find_archive(reference)
    try:
        found = os.stat(archive[0] if archive else reference)
        size, changed = found.st_size, found.st_mtime_ns
    except (OSError, ValueError):
        size = changed = 0
    return f"{os.path.abspath(reference)} {size} {changed}"
