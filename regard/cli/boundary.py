"""Boundary of the command line: errors that people can fix become one line and exit code 2."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer

from regard.cli.errors import OUT_OF_MEMORY, UsageError, is_out_of_memory, usage_message
from regard.core.errors import RegardError
from regard.core.logging import is_first_process, logger
from regard.core.terminal import filtered

MAX_NAME = 200
"""Maximum number of characters of a file name in a message."""

REMEDIES = {
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "Free some space, or write to another disk.",
    errno.EACCES: "Change its permissions, or choose another folder.",
    errno.EPERM: "Change its permissions, or choose another folder.",
    errno.EROFS: "Choose another folder.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.ENOTDIR: "A part of its path is a file; choose another folder.",
    errno.EISDIR: "Name a file.",
    errno.ENOENT: "Check its name.",
    errno.EEXIST: "Choose another name.",
    errno.ELOOP: "Its links form a circle; remove one.",
    errno.EMFILE: "Allow more open files: `ulimit -n 4096`.",
}
"""Remedies for errors of input and output, by their number."""

# Libraries in Rust, such as safetensors and tokenizers, raise other classes with this text.
_RUST_ERROR = re.compile(r"\(os error (\d+)\)")


@contextmanager
def boundary() -> Iterator[None]:
    """Print errors that people can fix as one line and exit with 2; bugs keep their traceback."""
    try:
        try:
            yield
        except typer.Exit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except RegardError as error:
        raise refuse(str(error)) from None
    except UsageError as error:
        raise refuse(usage_message(error)) from None
    except KeyboardInterrupt:
        if is_first_process():
            print("regard: interrupted.", file=sys.stderr)
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader closed standard output, as `head` does; this is not an error.
        _discard(sys.stdout)
        raise typer.Exit(0) from None
    except Exception as error:
        message = _explain(error)
        if message is None:
            raise
        logger.debug("%s", message, exc_info=True)
        raise refuse(message) from None


def refuse(message: str) -> typer.Exit:
    """Print an error, and return the exception that ends the command with exit code 2."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard(sys.stdout)
    # Errors of other processes are printed by the first one (`training/distributed/monitor.py`).
    if not is_first_process():
        return typer.Exit(2)
    try:
        # File names may have line breaks.
        print(f"regard: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)
    return typer.Exit(2)


def prepare_streams() -> None:
    """Make the standard streams safe to use: all three are open, and terminals get clean text."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # Otherwise the next file that is opened takes the number of the closed stream. Writing
            # to a closed standard output stays an error, since the null device is open to read.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        # File names are not always UTF-8: other programs get their bytes, people a question mark.
        stream.reconfigure(errors="replace" if stream.isatty() else "surrogateescape")
        setattr(sys, name, filtered(stream))


def _explain(error: Exception) -> str | None:
    """Return the message for an error of input, output, encoding or memory; None for any other."""
    if isinstance(error, MemoryError | RuntimeError) and is_out_of_memory(error):
        return OUT_OF_MEMORY
    if isinstance(error, UnicodeError):
        return f"A text or a file name is not valid Unicode: {error}. Convert or rename it."
    if isinstance(error, OSError):
        return _explain_os_error(error)
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        # `Path.resolve` before Python 3.13.
        return _explain_os_error(OSError(errno.ELOOP, f"{error}"))
    if found := _RUST_ERROR.search(str(error)):
        number = int(found[1])
        return _explain_os_error(OSError(number, os.strerror(number)))
    return None


def _explain_os_error(error: OSError) -> str:
    reason = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    remedy = REMEDIES.get(error.errno or 0, "")
    if isinstance(error.filename, str | bytes | os.PathLike):
        name = os.fsdecode(error.filename)
        name = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
        return f"{name} cannot be read or written: {reason}. {remedy}".rstrip()
    # Only opening a file names it, not writing to it; standard output is never opened.
    return f"Input or output failed: {reason}. {remedy}".rstrip()


def _discard(stream: TextIO) -> None:
    """Send what is left in the buffer of a stream nowhere, so that Python can exit silently."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
