"""JSON-lines files that another process appends to or replaces, read as they grow."""

import json
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from regard.core.errors import CheckpointError
from regard.core.records import MAX_JSON_LINES, check_encodable, check_run_file

Row = dict[str, Any]

MAX_READ = 16 * 2**20
"""Number of bytes that are read at a time; the next request continues."""

MAX_LINE = 2**20
"""Maximum length of a line, in bytes; longer ones are skipped."""


class GrowingLog:
    """Index of the rows of a JSON-lines file.

    Rows stay in the file; the index holds where each one is. A last line without line break is not
    complete yet, and lines that are no rows are skipped.

    Args:
        path: The file; it may be missing.
        accept: Called with each new row; raises `CheckpointError` if it is none.
        reset: Called when the file was replaced, before its rows are accepted from the first on.
    """

    def __init__(
        self, path: Path, *, accept: Callable[[Row], object], reset: Callable[[], None]
    ) -> None:
        self._path, self._accept, self._reset = path, accept, reset
        self.generation = 0
        """Number of times that the file was replaced."""
        self.is_complete = True
        """Whether all of the file is in the index."""
        self.modified: float | None = None
        """Time of the last change, in seconds; None without a file."""
        self._clear()

    def _clear(self) -> None:
        self._starts, self._ends = array("q"), array("q")
        self._position = 0
        self._identity: tuple[int, int] | None = None
        self._last = b""
        self._is_inside_long_line = False

    def __len__(self) -> int:
        return len(self._starts)

    def update(self) -> None:
        """Read what was added to the file."""
        self._with_file(lambda file: None)

    def read(self, first: int, *, max_rows: int, max_bytes: int) -> list[Row]:
        """Return rows from one on: as many as the limits allow, and at least one if there is one.

        Args:
            first: Index of the first row.
            max_rows: Maximum number of rows.
            max_bytes: Maximum number of bytes of all rows.
        """
        rows: list[Row] = []

        def collect(file: BinaryIO) -> None:
            num_bytes = 0
            for start, end in zip(
                self._starts[first : first + max_rows],
                self._ends[first : first + max_rows],
                strict=True,
            ):
                num_bytes += end - start
                if rows and num_bytes > max_bytes:
                    break
                rows.append(json.loads(_read_at(file, start, end - start)))

        self._with_file(collect)
        return rows

    def _with_file(self, use: Callable[[BinaryIO], None]) -> None:
        """Update the index, and call a function with the same file."""
        try:
            check_run_file(self._path, max_bytes=MAX_JSON_LINES)
            with self._path.open("rb") as file:
                self._update(file)
                use(file)
        except (CheckpointError, OSError):
            if self._identity is not None:
                self._restart()
            self.modified, self.is_complete = None, True

    def _restart(self) -> None:
        self._clear()
        self.generation += 1
        self._reset()

    def _update(self, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        identity = (status.st_dev, status.st_ino)
        if self._identity is not None and not self._is_same(file, identity, status.st_size):
            self._restart()
        self._identity, self.modified = identity, status.st_mtime
        file.seek(self._position)
        content = file.read(MAX_READ)
        *lines, rest = content.split(b"\n")
        for line in lines:
            self._add(line)
        if len(rest) > MAX_LINE:
            self._is_inside_long_line = True
            self._position += len(rest)
        self.is_complete = len(content) < MAX_READ

    def _is_same(self, file: BinaryIO, identity: tuple[int, int], size: int) -> bool:
        """Return whether a file is the one of the index, to which rows may have been added."""
        if identity != self._identity or size < self._position:
            return False
        last = self._starts[-1] if self._starts else 0
        return _read_at(file, last, len(self._last)) == self._last

    def _add(self, line: bytes) -> None:
        start = self._position
        self._position += len(line) + 1
        is_end, self._is_inside_long_line = self._is_inside_long_line, False
        if is_end or len(line) > MAX_LINE:
            return
        try:
            row = json.loads(line)
            check_encodable(row, line.decode())
            self._accept(row)
        except (ValueError, RecursionError, CheckpointError):
            return
        self._starts.append(start)
        self._ends.append(start + len(line))
        self._last = line


def _read_at(file: BinaryIO, start: int, num_bytes: int) -> bytes:
    file.seek(start)
    return file.read(num_bytes)
