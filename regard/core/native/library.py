"""Library of the kernels: compiled once per processor and compiler, then found in the cache."""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

from regard.core.cached_folder import cache_folder, find_or_build
from regard.core.errors import RegardError
from regard.core.files import write_text
from regard.core.logging import logger

SOURCE = Path(__file__).parent / "sources" / "kernels.cpp"
LIBRARY = "kernels.so"
FAULT = "fault.txt"
"""File with the reason why the library of a compiler cannot be built."""
VARIABLE = "REGARD_KERNELS"
"""Environment variable that disables the kernels if it is 0."""
COMPILERS = ("c++", "g++", "clang++")
FLAGS = (
    "-std=c++17",
    "-O3",
    "-ffp-contract=fast",
    "-shared",
    "-fPIC",
    "-pthread",
    "-fvisibility=hidden",
    "-w",
)
PROCESSORS = ("-march=native", "-mcpu=native")
"""Flags for the instructions of this processor; on ARM, compilers may need the second one."""
TIMEOUT_SECONDS = 120


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Return the library; None if it cannot be built, or the kernels are disabled."""
    if os.environ.get(VARIABLE) == "0" or platform.system() == "Windows":
        return None
    compiler = _find_compiler()
    if compiler is None:
        logger.info("There is no C++ compiler, so search on a CPU uses the operations of torch.")
        return None
    try:
        folder = cache_folder() / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        built = find_or_build(folder / _key(compiler), functools.partial(_build, compiler))
        fault = built.path / FAULT
        if fault.exists():
            raise OSError(fault.read_text(encoding="utf-8"))
        check_owner(built.path / LIBRARY)
        return ctypes.CDLL(str(built.path / LIBRARY))
    except (RegardError, OSError, subprocess.SubprocessError) as error:
        message = "There are no kernels, so search on a CPU uses the operations of torch: %s"
        logger.info(message, str(error).partition("\n")[0])
        return None


def check_owner(library: Path) -> None:
    """Raise `OSError` unless only this user (or root) can write a file and its two folders.

    Who can replace the library can run code as this user.
    """
    for path in (library, library.parent, library.parent.parent):
        status = path.stat()
        if status.st_uid not in (os.getuid(), 0) or status.st_mode & 0o022:
            raise OSError(
                f"{path} must belong to this user and not be writable for others. Remove it, or "
                "set REGARD_CACHE to another folder."
            )


def _find_compiler() -> list[str] | None:
    """Return the command of a compiler: `CXX`, or the first one that exists."""
    given = shlex.split(os.environ.get("CXX", ""))
    if given and shutil.which(given[0]):
        return given
    found = next(filter(None, map(shutil.which, COMPILERS)), None)
    return None if found is None else [found]


def _key(compiler: list[str]) -> str:
    """Return a checksum of all that the library depends on."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(SOURCE.parent.glob("*.h"))]
    parts = (
        SOURCE.read_text(encoding="utf-8"),
        *sources,
        *compiler,
        _run([*compiler, "--version"]),
    )
    return hashlib.sha256("\0".join([*parts, *FLAGS, _processor()]).encode()).hexdigest()[:32]


def _processor() -> str:
    """Return a text that differs between processors with other instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:
        lines = [platform.processor()]
    named = ("flags", "Features", "model", "vendor_id", "CPU part")
    return "\n".join([platform.machine(), *(line for line in lines if line.startswith(named))])


def _build(compiler: list[str], folder: Path) -> None:
    """Compile the library into a folder; or write why that fails, so that it is not tried again."""
    faults = []
    for processor in PROCESSORS:
        try:
            _run([*compiler, *FLAGS, processor, str(SOURCE), "-o", str(folder / LIBRARY)])
            ctypes.CDLL(str(folder / LIBRARY))
            # Where groups may write by default, the library would not be loaded: see `check_owner`.
            for path in (folder, folder / LIBRARY):
                path.chmod(0o700)
            return
        except (OSError, subprocess.SubprocessError) as error:
            output = getattr(error, "stderr", None) or str(error)
            faults.append(output.strip().partition("\n")[0])
    write_text(folder / FAULT, faults[0])


def _run(arguments: list[str]) -> str:
    """Return the output of a command; raise `SubprocessError` if it fails."""
    found = subprocess.run(
        arguments,
        check=True,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=TIMEOUT_SECONDS,
    )
    return found.stdout
