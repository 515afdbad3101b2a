"""Predictions in a file that a later command can continue after an interruption."""

import errno
import glob
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, TypedDict

from regard.core.checksums import find_checksums
from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import find_irreplaceable_kind, read_record, sync_folder, write_json
from regard.core.logging import logger
from regard.core.progress import counting
from regard.runs.ensemble import split_folders
from regard.runs.folder import LOGS, RESULTS, TEST, WEIGHTS
from regard.runs.prediction.lexical import describe_lexical
from regard.runs.prediction.predict import PredictionPipeline
from regard.runs.saved.config import CONFIG
from regard.tasks.generation.lexical import LexicalOptions

if sys.platform != "win32":
    import fcntl

SAVE_SECONDS = 1.0
"""Minimum time between two saved states: what a killed command predicts again."""


RUNS = "runs"
"""Name of the checksums of the runs among the settings."""

OPTIONS = {
    "num_best": "--nbest",
    "prefix": "--prefix",
    "chunk_seconds": "--chunk",
    "rerank_weight": "--rerank-weight",
    "alternatives": "--alternatives",
}
"""Command-line options by the name of the option of prediction."""

REPLACED = ("beams", "overrides", "image_folder", "lexical", "tree")
"""Options that are part of the search settings, described in another way, or of no file."""


class _State(TypedDict):
    """Content of the file beside unfinished predictions."""

    settings: dict[str, Any]
    """Everything else that determines the predictions."""
    sources: int
    """Number of sources whose predictions are in the file."""
    bytes: int
    """Size of these predictions."""
    digest: str
    """SHA-256 checksum of these sources."""


class PartialOutput:
    """Predictions that replace a file when they are complete, as a context.

    Until then they are in `OUT.part`, and `OUT.part.json` states which sources they are for. A
    process that is killed at any moment leaves both in a state that `is_resumed` continues: text
    after the stated size is written again. At most `SAVE_SECONDS` of work are lost.

    The input is recognised by a checksum of the sources that are already predicted, so lines after
    them may change.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any], *, is_resumed: bool) -> None:
        """Take the file and what determines its content.

        Args:
            out: The file.
            settings: Everything but the input, as values of JSON.
            is_resumed: Whether to continue the predictions of an interrupted command.
        """
        if out.is_dir():
            raise ConfigError(f"`--out` must be a file, but {out} is a folder.")
        if kind := find_irreplaceable_kind(out):
            raise ConfigError(f"`--out` must be a file, but {out} is {kind}. Leave it out.")
        self.num_done = 0
        self._out = out
        self._part = out.with_name(f"{out.name}.part")
        self._state_path = out.with_name(f"{out.name}.part.json")
        self._settings = json.loads(json.dumps(dict(settings)))
        self._is_resumed = is_resumed
        self._digest = hashlib.sha256()
        self._size = 0
        self._is_started = False
        self._is_new = False
        self._state: _State | None = None
        self._saved_at = 0.0
        self._file: TextIO | None = None

    @property
    def file(self) -> TextIO:
        """The file to print to."""
        assert self._file is not None
        return self._file

    def __enter__(self) -> "PartialOutput":
        try:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            state = self._read_state()
            if self._is_resumed and state is not None and not self._part.exists():
                self._undo_replacement(state)
            self._is_new = not os.path.lexists(self._part)
            self._open()
        except OSError as error:
            raise DataError(f"{self._out} cannot be written: {error.strerror}.") from error
        try:
            # Another process may have written since.
            self._state = self._check(self._read_state())
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is None:  # finished
            return
        if self._is_started:
            self._keep_or_remove()
        self._close()
        is_full = any(
            isinstance(one, OSError) and one.errno == errno.ENOSPC
            for one in (error, error and error.__cause__)
        )
        if is_full:
            raise DataError(
                f"{self._part} could not be written: the disk is full. Free some space, and "
                "continue with the same command and `--resume`."
            ) from error

    def skip(self, sources: Iterable[str]) -> Iterator[str]:
        """Return the sources that are not predicted yet; raise if others were predicted before."""
        remaining = iter(sources)
        if self._state is not None:
            expected = self._state["sources"]
            with counting("Reading predicted sources", expected) as advance:
                num = 0
                for source in islice(remaining, expected):
                    self._hash(source)
                    num += 1
                    advance(1)
            if num < expected or self._digest.hexdigest() != self._state["digest"]:
                found = "differ" if num == expected else f"are only {num:,}"
                raise ConfigError(
                    "`--resume` must be given with the input of the interrupted command, but its "
                    f"first {expected:,} sources {found}. Name the same file, or delete "
                    f"{self._part}."
                )
            self.num_done, self._size = expected, self._state["bytes"]
            if expected:
                logger.info("%s holds predictions of %s sources.", self._part, f"{expected:,}")
        self.file.seek(self._size)
        self.file.truncate()
        self._is_started = True
        self._save_state()
        return remaining

    def add(self, sources: Iterable[str]) -> None:
        """Record that the predictions of further sources are printed."""
        self.file.flush()
        for source in sources:
            self._hash(source)
            self.num_done += 1
        self._size = os.lseek(self.file.fileno(), 0, os.SEEK_CUR)
        if time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self._save_state()

    def finish(self) -> None:
        """Replace the output file."""
        self._save_state()
        self.file.close()
        self._file = None
        self._part.replace(self._out)
        sync_folder(self._out.parent)
        self._remove_state()

    def _hash(self, source: str) -> None:
        self._digest.update(source.encode("utf-8", errors="surrogatepass") + b"\n")

    def _keep_or_remove(self) -> None:
        """Keep the predictions of whole groups of sources; remove the files if there are none."""
        if not self.num_done:
            self._is_new = True
            self._remove_state()
            return
        with suppress(OSError, DataError):  # a full disk: the state before is valid, too
            self.file.flush()
            # A group that was being printed is incomplete.
            os.truncate(self.file.fileno(), self._size)
            self._save_state()
        logger.info(
            "%s holds predictions of %s sources. Continue with the same command and `--resume`.",
            self._part,
            f"{self.num_done:,}",
        )

    def _remove_state(self) -> None:
        # Also temporary files of a process that was killed while it wrote the state.
        for path in self._out.parent.glob(f".{glob.escape(self._state_path.name)}.*.part"):
            path.unlink(missing_ok=True)
        self._state_path.unlink()

    def _close(self) -> None:
        if self._is_new and not self.num_done:
            self._part.unlink()
        with suppress(OSError):  # what is left in the buffer if the disk is full
            self.file.close()
        self._file = None

    def _save_state(self) -> None:
        """Write the predictions to disk, then how many there are."""
        os.fsync(self.file.fileno())
        state = _State(
            settings=self._settings,
            sources=self.num_done,
            bytes=self._size,
            digest=self._digest.hexdigest(),
        )
        write_json(self._state_path, state)
        self._saved_at = time.monotonic()

    def _read_state(self) -> _State | None:
        exists = os.path.lexists(self._state_path)
        return read_record(self._state_path, _State) if exists else None

    def _undo_replacement(self, state: _State) -> None:
        """Continue a command that was killed after it had replaced the output file."""
        if _size(self._out) == state["bytes"]:
            self._out.rename(self._part)

    def _check(self, state: _State | None) -> _State | None:
        """Return the state to resume from, None to start at the first source, or raise."""
        size = _size(self._part) or 0
        if state is None:
            if self._is_resumed and os.path.lexists(self._out):
                raise ConfigError(
                    f"{self._out} cannot be resumed: {self._state_path}, which an interrupted "
                    "command leaves, does not exist, so the file is complete or from elsewhere. "
                    "Leave out `--resume` to replace it."
                )
            if size:
                raise ConfigError(
                    f"{self._part} must not exist without {self._state_path.name}, which an "
                    "interrupted command leaves beside it. Delete or rename it."
                )
            return None
        if not self._is_resumed:
            if state["sources"] and size:
                raise ConfigError(
                    f"{self._part} holds predictions of {state['sources']:,} sources from an "
                    "interrupted command. Continue it with `--resume`, or delete the file."
                )
            return None
        self._check_settings(state["settings"])
        if size < state["bytes"]:
            raise CheckpointError(
                f"{self._part} must have at least {state['bytes']:,} bytes, as "
                f"{self._state_path.name} states, but has {size:,}. Delete both."
            )
        return state

    def _check_settings(self, before: Mapping[str, Any]) -> None:
        for name in sorted({*before, *self._settings}):
            old, new = before.get(name), self._settings.get(name)
            if old == new:
                continue
            if name == RUNS:
                raise ConfigError(
                    "`--resume` must be given with the run of the interrupted command, but its "
                    f"weights or settings are others. Name the same run, or delete {self._part}."
                )
            raise ConfigError(
                "`--resume` must be given with the options of the interrupted command, but "
                f"`{name}` was {old!r} and is {new!r}. Give the same ones, or delete {self._part}."
            )

    def _open(self) -> None:
        """Open and lock the file; raise if another command writes to it."""
        # A link could lead to another file, which would be emptied.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self._part, flags, 0o666)
        self._file = open(handle, "w", encoding="utf-8")  # noqa: SIM115
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = os.path.samestat(os.fstat(handle), self._part.stat())
        except (BlockingIOError, FileNotFoundError):
            is_free = False
        except OSError:  # a file system without locks
            return
        if not is_free:
            self._file.close()
            raise ConfigError(
                f"{self._part} is in use by another command. Wait until it ends, or name another "
                "file (--out)."
            )


def check_resumed(out: Path | None, *, has_images: bool, num_processes: int) -> None:
    """Raise `ConfigError` if predictions cannot be resumed.

    Args:
        out: The file for the predictions.
        has_images: Whether images are predicted.
        num_processes: Number of processes.
    """
    if has_images:
        raise ConfigError("`--resume` continues a file, but images are predicted. Leave it out.")
    if out is None:
        raise ConfigError("`--resume` continues a file. Name it with `--out`.")
    if num_processes > 1:
        raise ConfigError(
            f"`--resume` is for one process, but there are {num_processes}. Leave it out, or "
            "leave out `torchrun`."
        )


def describe_settings(pipeline: PredictionPipeline, runs: Iterable[str]) -> dict[str, Any]:
    """Return what predictions depend on besides the sources: models, options, search settings.

    Args:
        pipeline: Predicts.
        runs: The run, and that which reranks; each may be several joined by commas.
    """
    others = (TEST, *LOGS, *RESULTS)
    folders = [folder for run in runs for folder in split_folders(run)]
    options = {
        OPTIONS.get(one.name, one.name): getattr(pipeline.options, one.name)
        for one in fields(pipeline.options)
        if one.name not in REPLACED
    }
    search = {} if pipeline.search is None else asdict(pipeline.search)
    return {
        RUNS: [
            find_checksums(folder, always=(CONFIG, WEIGHTS), ignored=others) for folder in folders
        ],
        **options,
        **describe_lexical(pipeline.options.lexical or LexicalOptions()),
        **{f"search.{name}": value for name, value in search.items()},
    }


def _size(path: Path) -> int | None:
    """Return the size of a file; None if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
