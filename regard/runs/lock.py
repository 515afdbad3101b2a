"""Lock of a run folder: one training at a time writes to it."""

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.logging import logger
from regard.core.records import check_run_file
from regard.training.loggers.logger import Logger
from regard.training.plan import Row

if sys.platform != "win32":
    import fcntl

LOCK = ".lock"

MAX_WAIT = 2.0
"""Maximum time to wait for the name of a process that has just locked a folder, in seconds."""


MAX_OWNER = 10_000
"""Maximum size of a lock file, in bytes."""


class FolderLock:
    """Exclusive use of a run folder, as a context.

    The kernel releases the lock when this process ends, however it ends. A folder that did not
    exist and is still empty at the end is removed.

    Args:
        folder: The run folder, created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / LOCK
        self._created: list[Path] = []
        self._handle = -1
        self.is_left = False
        """Whether the lock was there already: left by a process that was killed."""

    def __enter__(self) -> "FolderLock":
        self._created = [p for p in (self._folder, *self._folder.parents) if not p.exists()]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._open()
            while not self._is_held():  # the process before removed the file after it was opened
                os.close(self._handle)
                self._open()
            owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
            os.ftruncate(self._handle, 0)
            os.write(self._handle, json.dumps(owner).encode())
        except OSError as error:
            name = error.filename or self._folder
            raise DataError(f"{name} cannot be written: {error.strerror}.") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_held():
            self._path.unlink()
        os.close(self._handle)
        with suppress(OSError):  # not empty
            for folder in self._created:
                folder.rmdir()

    def check(self) -> None:
        """Raise `CheckpointError` if the folder was deleted or replaced."""
        if not self._is_held():
            raise CheckpointError(
                f"{self._folder} was deleted or replaced during training, which ends here: the "
                "folder is incomplete. Train again."
            )

    def _open(self) -> None:
        """Open the file and lock it; raise `ConfigError` if another process has locked it."""
        # A link could lead to a file of the user, which would be emptied.
        no_link = getattr(os, "O_NOFOLLOW", 0)
        self.is_left = self._path.exists()
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | no_link, 0o666)
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = self._wait_for_owner()
            os.close(self._handle)
            raise ConfigError(
                f"{self._folder} is in use by another training{owner}. Wait until it ends, stop "
                "it, or name another folder (--out)."
            ) from None
        except OSError:
            logger.warning(
                "The file system of %s has no locks. Do not start a second training there.",
                self._folder,
            )

    def _wait_for_owner(self) -> str:
        """Return the process that has locked the file; empty if it does not write its name."""
        deadline = time.monotonic() + MAX_WAIT
        while True:
            # A process locks the file before it writes to it.
            os.lseek(self._handle, 0, os.SEEK_SET)
            owner = _describe_owner(os.read(self._handle, 1000))
            if owner or time.monotonic() > deadline:
                return owner
            time.sleep(0.01)

    def _is_held(self) -> bool:
        """Return whether the locked file is still the one in the folder."""
        try:
            return os.path.samestat(os.fstat(self._handle), self._path.stat())
        except OSError:
            return False


def is_locked(folder: Path) -> bool:
    """Return whether a training writes to a folder now, without locking it even for a moment.

    The lock file of a process that was killed stays, so its process must exist. That of another
    machine counts as a running training.
    """
    path = folder / LOCK
    try:
        check_run_file(path, max_bytes=MAX_OWNER)
        owner, locked = json.loads(path.read_bytes()), path.stat().st_mtime
        is_here = owner["host"] == socket.gethostname()
        return not is_here or _is_running(owner["pid"], locked)
    except (CheckpointError, OSError, ValueError, TypeError, KeyError):
        return False  # no lock, or one whose process has not written its name yet


def _is_running(pid: object, locked: float) -> bool:
    """Return whether the process that has locked a file at a time exists.

    Args:
        pid: Its number, which a later process may have.
        locked: When it locked the file, in seconds.
    """
    if sys.platform == "win32":
        return True  # there, the file is removed unless the process is killed
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        return False
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # a process of another user
    with suppress(OSError, ValueError, IndexError, StopIteration):
        # After the name in parentheses: the state, and the start in ticks since the system start.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        lines = Path("/proc/stat").read_text(encoding="utf-8").splitlines()
        booted = next(int(line.split()[1]) for line in lines if line.startswith("btime"))
        started = booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return fields[0] not in "ZX" and started <= locked + MAX_WAIT
    return True


class FolderWatch(Logger):
    """Ends a training whose run folder was deleted or replaced, before it writes to another one.

    Args:
        lock: Lock of the run folder.
    """

    def __init__(self, lock: FolderLock) -> None:
        self._lock = lock

    def advance(self, step: int) -> None:
        """Check the folder."""
        self._lock.check()

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Check the folder after a validation, whose results are written to it."""
        yield
        self._lock.check()

    def write(self, row: Row) -> None:
        """Check the folder."""
        self._lock.check()


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _describe_owner(content: bytes) -> str:
    """Return the process that wrote a lock file, such as " (process 7 on host since …)"."""
    try:
        owner = json.loads(content)
        return f" (process {owner['pid']} on {owner['host']} since {owner['since']})"
    except (ValueError, TypeError, KeyError):
        return ""  # not written yet, or not completely
