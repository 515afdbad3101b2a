"""Trainings in child processes with faults: a kill or a full disk at any operation on files."""

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from regard.core.errors import RegardError

FINISHED, FAILED, REFUSED = 0, 1, 2
"""Exit codes of a child process: as planned, by an unexpected error, with a message."""


class Operations:
    """Counts the changes of files below a folder and calls a function before each, by number.

    Args:
        folder: The folder.
        before: Function of the number of the operation, from 0, and of whether it needs space.
    """

    def __init__(self, folder: Path, before: Callable[[int, bool], None]) -> None:
        self.number = 0
        self._folder = str(folder)
        self._before = before

    def install(self) -> None:
        """Watch this process, which cannot be undone: only in a child process."""
        sys.addaudithook(self._audit)
        fsync = os.fsync

        def counted(handle: int) -> None:
            self._count(needs_space=True)
            fsync(handle)

        os.fsync = counted

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            is_written = bool(int(str(flags)) & (os.O_WRONLY | os.O_RDWR))
            if is_written and str(path).startswith(self._folder):
                self._count(needs_space=True)
        elif event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"):
            # Paths of `shutil.rmtree` are relative to the handle of a folder.
            is_inside = str(arguments[0]).startswith(self._folder)
            if is_inside or (event in ("os.remove", "os.rmdir") and arguments[1] != -1):
                self._count(needs_space=event == "os.mkdir")

    def _count(self, *, needs_space: bool) -> None:
        number, self.number = self.number, self.number + 1
        self._before(number, needs_space)


Work = Callable[[Path], object]
"""Function of the run folder."""


def start_child(work: Work, folder: Path, *, log: Path) -> int:
    """Start a child process that calls a function, and return its id; it writes errors to a log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of the parent are idle
        child = os.fork()
    if child:
        return child
    code = FAILED
    try:
        sys.stdout = sys.stderr = log.open("a", buffering=1)
        work(folder)
        code = FINISHED
    except RegardError as error:
        print(f"regard: {error}")
        code = REFUSED
    except OSError as error:
        traceback.print_exc()
        code = REFUSED if error.errno == errno.ENOSPC else FAILED
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait_for(child: int) -> int:
    """Return the exit code of a child process, negative if it was killed by a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def count_operations(work: Work, folder: Path, *, log: Path) -> int:
    """Return the number of changes of files below a folder, which a child process makes."""
    reader, writer = os.pipe()
    operations = Operations(folder, lambda number, needs_space: None)

    def counted(folder: Path) -> None:
        operations.install()
        work(folder)
        os.write(writer, str(operations.number).encode())

    assert wait_for(start_child(counted, folder, log=log)) == FINISHED, log.read_text()
    os.close(writer)
    with os.fdopen(reader) as file:
        return int(file.read())


def run_killed(work: Work, folder: Path, *, at: int, log: Path) -> int:
    """Run a child process that is killed before an operation, by its number."""

    def kill(number: int, needs_space: bool) -> None:
        if number == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def killed(folder: Path) -> None:
        Operations(folder, kill).install()
        work(folder)

    return wait_for(start_child(killed, folder, log=log))


def run_on_full_disk(work: Work, folder: Path, *, after: int, log: Path) -> int:
    """Run a child process whose disk is full from an operation on, by its number."""

    def fill(number: int, needs_space: bool) -> None:
        if number >= after and needs_space:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def filled(folder: Path) -> None:
        Operations(folder, fill).install()
        work(folder)

    return wait_for(start_child(filled, folder, log=log))
