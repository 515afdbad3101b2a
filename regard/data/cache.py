"""Arrays decoded from files, kept on disk until the files change."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.core.errors import CheckpointError, DataError
from regard.core.files import read_json, replacing, write_json
from regard.data.archives import find_archive
from regard.data.media import Array, Decoder

_FORMAT = 2
"""A new number makes all that is in the cache old."""


@dataclass(frozen=True)
class Decoded:
    """Files that were decoded, and why others were not."""

    arrays: dict[str, Array] = field(default_factory=dict)
    """By their references."""
    failures: dict[str, str] = field(default_factory=dict)
    """What is wrong with each of the other references, in a sentence."""

    def __contains__(self, reference: str) -> bool:
        return reference in self.arrays or reference in self.failures

    def add(self, references: Iterable[str], found: Iterable[Array | str]) -> None:
        """Add what was found for references: an array, or a sentence that says why not."""
        for reference, one in zip(references, found, strict=True):
            if isinstance(one, str):
                self.failures[reference] = one
            else:
                self.arrays[reference] = one


class ArrayCache:
    """Arrays of any number of rows of one shape, by the files that they were decoded from.

    Whatever was decoded together lies in one array on disk, beside a list of the numbers of rows
    and of what could not be decoded. A file is known by its path, its size and the time of its
    last change. So a part of what was decoded is found, too, and of more, only the rest is decoded.
    """

    def __init__(self, folder: Path, decoder: Decoder) -> None:
        """Describe a cache, without touching its folder.

        Args:
            folder: Where caches of all settings are kept.
            decoder: What files are decoded by; its settings are a part of the key.
        """
        name = hashlib.sha256(f"{_FORMAT} {decoder.settings}".encode()).hexdigest()[:16]
        self._folder = folder / name
        self._row, self._dtype = decoder.row, decoder.dtype
        self._split_span = decoder.medium.split_span

    def load(self, references: Sequence[str]) -> Decoded:
        """Return what is known of files, arrays mapped from disk."""
        known: dict[str, Array | str] = {}
        for index in sorted(self._folder.glob("*.json")):
            try:
                rows = np.asarray(np.load(index.with_suffix(".npy"), mmap_mode="r"))
                listed = read_json(index)
            except (OSError, ValueError, EOFError, CheckpointError):
                continue  # damaged: it will be decoded again
            ends = np.cumsum([num for _, num in listed["rows"]], dtype=np.int64).tolist()
            if rows.shape != (ends[-1] if ends else 0, *self._row):
                continue
            known.update(listed["failures"])
            for (key, num), end in zip(listed["rows"], ends, strict=True):
                known[key] = rows[end - num : end]
        decoded = Decoded()
        keys = {reference: self._key(reference) for reference in references}
        found = [reference for reference, key in keys.items() if key in known]
        decoded.add(found, [known[keys[reference]] for reference in found])
        return decoded

    def save(self, references: Sequence[str], found: Iterable[Array | str]) -> None:
        """Keep what files are decoded to, however much it is.

        Args:
            references: Files, each once.
            found: An array for each of them, or a sentence that says why there is none.
        """
        keys = [self._key(reference) for reference in references]
        digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]
        path = self._folder / f"{digest}.npy"
        try:
            write_json(path.with_suffix(".json"), self._write(path, keys, found))
        except OSError as error:
            raise DataError(
                f"{path} could not be written: {error.strerror}. "
                "Set REGARD_CACHE to another folder."
            ) from None

    def _write(
        self, path: Path, keys: Sequence[str], found: Iterable[Array | str]
    ) -> dict[str, object]:
        rows: list[tuple[str, int]] = []
        failures: dict[str, str] = {}
        with replacing(path) as temporary, temporary.open("wb") as file:
            self._write_header(file, 0)
            for key, array in zip(keys, found, strict=True):
                if isinstance(array, str):
                    failures[key] = array
                else:
                    file.write(np.ascontiguousarray(array, self._dtype).tobytes())
                    rows.append((key, len(array)))
            # Only now the number of rows is known; numpy leaves room for it to change.
            file.seek(0)
            self._write_header(file, sum(num for _, num in rows))
        return {"rows": rows, "failures": failures}

    def _write_header(self, file: BinaryIO, num: int) -> None:
        header = {"descr": self._dtype, "fortran_order": False, "shape": (num, *self._row)}
        np.lib.format.write_array_header_1_0(file, header)

    def _key(self, reference: str) -> str:
        """Return path, size and last change of a file, or of the archive that it is in."""
        path, *span = self._split_span(reference) or (reference,)
        archive = find_archive(path)
        try:
            found = os.stat(archive[0] if archive else path)
            size, changed = found.st_size, found.st_mtime_ns
        except (OSError, ValueError):
            size = changed = 0
        return " ".join(map(str, (os.path.abspath(path), size, changed, *span)))
