"""Library of the kernels: compiled once per processor and compiler, then found in the cache."""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from regard.core.cached_folder import cache_folder, find_or_build
from regard.core.errors import RegardError
from regard.core.logging import logger

SOURCE = Path(__file__).with_name("kernels.cpp")
LIBRARY = "kernels.so"
VARIABLE = "REGARD_KERNELS"
"""Environment variable that disables the kernels if it is 0."""
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O3", "-ffp-contract=fast", "-shared", "-fPIC", "-fvisibility=hidden", "-w")
PROCESSORS = ("-march=native", "-mcpu=native")
"""Flags for the instructions of this processor; compilers for ARM may know the second one only."""
TIMEOUT_SECONDS = 120


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Return the library; None if there is no compiler, or the kernels are disabled."""
    if os.environ.get(VARIABLE) == "0" or platform.system() == "Windows":
        return None
    compiler = os.environ.get("CXX") or next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        logger.info("There is no C++ compiler, so search on a CPU uses the operations of torch.")
        return None
    try:
        folder = cache_folder() / "kernels" / _key(compiler)
        built = find_or_build(folder, functools.partial(_build, compiler))
        return ctypes.CDLL(str(built.path / LIBRARY))
    except (RegardError, OSError, subprocess.SubprocessError) as error:
        message = "The kernels cannot be built, so search on a CPU uses the operations of torch: %s"
        logger.info(message, str(error).partition("\n")[0])
        return None


def _key(compiler: str) -> str:
    """Return a checksum of all that the library depends on."""
    version = _run([compiler, "--version"])
    parts = (SOURCE.read_text(encoding="utf-8"), compiler, version, *FLAGS, _processor())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _processor() -> str:
    """Return a text that differs between processors with other instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:
        lines = [platform.processor()]
    named = ("flags", "Features", "model", "vendor_id", "CPU part")
    return "\n".join([platform.machine(), *(line for line in lines if line.startswith(named))])


def _build(compiler: str, folder: Path) -> None:
    """Compile the library into a folder."""
    arguments = [compiler, *FLAGS, str(SOURCE), "-o", str(folder / LIBRARY)]
    for processor in PROCESSORS[:-1]:
        try:
            _run([*arguments, processor])
            return
        except subprocess.CalledProcessError:
            continue
    _run([*arguments, PROCESSORS[-1]])


def _run(arguments: list[str]) -> str:
    """Return the output of a command; raise `SubprocessError` if it fails."""
    found = subprocess.run(
        arguments, check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    return found.stdout
