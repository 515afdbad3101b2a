"""On-disk cache of arrays decoded from files, valid until the files change."""

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

_FORMAT = 3
"""Version of the format; another number invalidates all cached arrays."""


@dataclass(frozen=True)
class Decoded:
    """Decoded arrays and error messages of files."""

    arrays: dict[str, Array] = field(default_factory=dict)
    """Arrays by reference."""
    failures: dict[str, str] = field(default_factory=dict)
    """Error messages of all other references."""

    def __contains__(self, reference: str) -> bool:
        return reference in self.arrays or reference in self.failures

    def add(self, references: Iterable[str], results: Iterable[Array | str]) -> None:
        """Add the result of each reference: an array, or an error message."""
        for reference, result in zip(references, results, strict=True):
            if isinstance(result, str):
                self.failures[reference] = result
            else:
                self.arrays[reference] = result


class ArrayCache:
    """On-disk cache of arrays with rows of one shape, keyed by the files they were decoded from.

    Files decoded together are stored in one array, with an index of their numbers of rows and of
    decoding errors. The key of a file is its path, size and modification time, so that any subset
    of the files can be loaded, and only files that are not cached are decoded.
    """

    def __init__(self, folder: Path, decoder: Decoder) -> None:
        """Build a cache without accessing its folder.

        Args:
            folder: Folder of the caches of all settings.
            decoder: Decoder of the files; its settings are part of the key.
        """
        # Errors are cached, too, and a package that is installed later reads more files.
        key = f"{_FORMAT} {decoder.settings} {decoder.medium.formats.packages}"
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._folder = folder / name
        self._row, self._dtype = decoder.row, decoder.dtype
        self._split_span = decoder.medium.split_span

    def load(self, references: Sequence[str]) -> Decoded:
        """Return the cached results of files, as memory-mapped arrays."""
        cached: dict[str, Array | str] = {}
        for index in sorted(self._folder.glob("*.json")):
            try:
                rows = np.asarray(np.load(index.with_suffix(".npy"), mmap_mode="r"))
                listed = read_json(index)
            except (OSError, ValueError, EOFError, CheckpointError):
                continue  # damaged: its files are decoded again
            ends = np.cumsum([num for _, num in listed["rows"]], dtype=np.int64).tolist()
            if rows.shape != (ends[-1] if ends else 0, *self._row):
                continue
            cached.update(listed["failures"])
            for (key, num), end in zip(listed["rows"], ends, strict=True):
                cached[key] = rows[end - num : end]
        decoded = Decoded()
        keys = {reference: self._key(reference) for reference in references}
        hits = [reference for reference, key in keys.items() if key in cached]
        decoded.add(hits, [cached[keys[reference]] for reference in hits])
        return decoded

    def save(self, references: Sequence[str], results: Iterable[Array | str]) -> None:
        """Write the results of files; only one result is in memory at a time.

        Args:
            references: Files, each once.
            results: An array or an error message for each file.
        """
        keys = [self._key(reference) for reference in references]
        digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]
        path = self._folder / f"{digest}.npy"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path.with_suffix(".json"), self._write(path, keys, results))
        except OSError as error:
            raise DataError(
                f"{path} could not be written: {error.strerror}. "
                "Set REGARD_CACHE to another folder."
            ) from None

    def _write(
        self, path: Path, keys: Sequence[str], results: Iterable[Array | str]
    ) -> dict[str, object]:
        rows: list[tuple[str, int]] = []
        failures: dict[str, str] = {}
        with replacing(path) as temporary, temporary.open("wb") as file:
            self._write_header(file, 0)
            for key, result in zip(keys, results, strict=True):
                if isinstance(result, str):
                    failures[key] = result
                else:
                    file.write(np.ascontiguousarray(result, self._dtype).tobytes())
                    rows.append((key, len(result)))
            # The number of rows is known only now; numpy's header has a fixed size.
            file.seek(0)
            self._write_header(file, sum(num for _, num in rows))
        return {"rows": rows, "failures": failures}

    def _write_header(self, file: BinaryIO, num: int) -> None:
        header = {"descr": self._dtype, "fortran_order": False, "shape": (num, *self._row)}
        np.lib.format.write_array_header_1_0(file, header)

    def _key(self, reference: str) -> str:
        """Return path, size and modification time of a file, or of the archive that contains it."""
        path, *span = self._split_span(reference) or (reference,)
        archive = find_archive(path)
        try:
            stat = os.stat(archive[0] if archive else path)
            size, modified = stat.st_size, stat.st_mtime_ns
        except (OSError, ValueError):
            size = modified = 0
        return " ".join(map(str, (os.path.abspath(path), size, modified, *span)))
