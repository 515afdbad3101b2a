"""Log-mel frames of recordings on disk, good until their files change."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.core.errors import CheckpointError, DataError
from regard.core.files import read_json, replacing, write_json
from regard.data.audio.mel import Analysis, Spectrum
from regard.data.audio.wav import split_span
from regard.data.image.cache import file_key

_FORMAT = 1
"""A new number makes all that is in the cache old."""


@dataclass(frozen=True)
class Heard:
    """Recordings that were read, and why others were not."""

    frames: dict[str, Spectrum] = field(default_factory=dict)
    """(F, M) each, by their references."""
    failures: dict[str, str] = field(default_factory=dict)
    """What is wrong with each of the other references, in a sentence."""

    def __contains__(self, reference: str) -> bool:
        return reference in self.frames or reference in self.failures

    def add(self, references: Iterable[str], found: Iterable[Spectrum | str]) -> None:
        """Take up what was found for references: frames, or a sentence that says why not."""
        for reference, one in zip(references, found, strict=True):
            if isinstance(one, str):
                self.failures[reference] = one
            else:
                self.frames[reference] = one


class SoundCache:
    """What files became in one analysis.

    Whatever was read together lies in one array, recording after recording, beside a list of their
    numbers of frames and of what could not be read. A file is known by its place, its size and the
    time of its last change, as an image is.
    """

    def __init__(self, folder: Path, analysis: Analysis) -> None:
        """Look into a folder, without touching it."""
        name = hashlib.sha256(f"{_FORMAT} {analysis}".encode()).hexdigest()[:16]
        self._folder = folder / name
        self._num_mels = analysis.num_mels

    def load(self, references: Sequence[str]) -> Heard:
        """Return what is known of files, frames mapped from disk."""
        known: dict[str, Spectrum | str] = {}
        for index in sorted(self._folder.glob("*.json")):
            try:
                frames = np.asarray(np.load(index.with_suffix(".npy"), mmap_mode="r"))
                listed = read_json(index)
            except (OSError, ValueError, EOFError, CheckpointError):
                continue  # damaged: it will be read again
            ends = np.cumsum([num for _, num in listed["rows"]], dtype=np.int64)
            if frames.shape != (ends[-1] if len(ends) else 0, self._num_mels):
                continue
            known.update(listed["failures"])
            for (key, num), end in zip(listed["rows"], ends.tolist(), strict=True):
                known[key] = frames[end - num : end]
        heard = Heard()
        keys = {reference: _key(reference) for reference in references}
        found = [reference for reference, key in keys.items() if key in known]
        heard.add(found, [known[keys[reference]] for reference in found])
        return heard

    def save(self, references: Sequence[str], found: Iterable[Spectrum | str]) -> None:
        """Keep what files become, however much it is.

        Args:
            references: Files, each once.
            found: (F, M) for each of them, or a sentence that says why there is nothing.
        """
        keys = [_key(reference) for reference in references]
        digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]
        path = self._folder / f"{digest}.npy"
        try:
            listed = self._write(path, keys, found)
            write_json(path.with_suffix(".json"), listed)
        except OSError as error:
            raise DataError(
                f"{path} could not be written: {error.strerror}. "
                "Set REGARD_CACHE to another folder."
            ) from None

    def _write(
        self, path: Path, keys: Sequence[str], found: Iterable[Spectrum | str]
    ) -> dict[str, object]:
        rows: list[tuple[str, int]] = []
        failures: dict[str, str] = {}
        with replacing(path) as temporary, temporary.open("wb") as file:
            self._write_header(file, 0)
            for key, frames in zip(keys, found, strict=True):
                if isinstance(frames, str):
                    failures[key] = frames
                else:
                    file.write(np.ascontiguousarray(frames, "<f4").tobytes())
                    rows.append((key, len(frames)))
            # Only now the number of frames is known; numpy leaves room for it to change.
            file.seek(0)
            self._write_header(file, sum(num for _, num in rows))
        return {"rows": rows, "failures": failures}

    def _write_header(self, file: BinaryIO, num: int) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": (num, self._num_mels)}
        np.lib.format.write_array_header_1_0(file, header)


def _key(reference: str) -> str:
    span = split_span(reference)
    return f"{file_key(span[0])} {span[1]} {span[2]}" if span else file_key(reference)
