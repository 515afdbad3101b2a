"""Uploaded images, videos and recordings: decoded within limits in a worker process.

A worker process decodes an upload. It writes images and recordings again in a plain format (PNG, or
WAVE with one channel), which is what the model reads; videos stay as they are. The file has a name
of its own in a private folder, so nothing of a request is ever part of a path.
"""

import asyncio
import re
import secrets
import shutil
import signal
import struct
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError, DataError
from regard.core.workers import prepare_worker
from regard.data.audio.wav import read_file
from regard.data.image.io import open_image
from regard.serve.errors import invalid
from regard.serve.limits import Limits

UPLOAD = "The upload"
"""Name of an upload in messages."""

MAX_MEMORY = 2 * 2**30
"""Bytes of memory that the worker process may map for an upload, where the system can limit it."""

MAX_SECONDS = 30
"""Time to decode an upload, where the system can limit it."""


class Uploads:
    """Private folder of uploads, and the worker process that decodes them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._folder = Path(tempfile.mkdtemp(prefix="regard-serve-"))
        self._pool: ProcessPoolExecutor | None = None

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Create a folder for the uploads of a request, deleted at the end of the block."""
        folder = self._folder / secrets.token_hex(16)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def store(
        self, content: bytes, folder: Path, *, medium: str, read: Callable[[str], Any]
    ) -> str:
        """Decode an upload and return the path of a file with the same content.

        Args:
            content: The bytes of the upload.
            folder: A folder of the request.
            medium: The modality: `image`, `audio` or `video`.
            read: Decodes a file as the run needs it, or raises a `DataError`.
        """
        if not content:
            raise invalid(f"{UPLOAD} must be a file, but is empty.")
        path = folder / secrets.token_hex(16)
        path.write_bytes(content)
        work = partial(
            _rewrite,
            str(path),
            medium,
            max_pixels=self._limits.pixels,
            max_seconds=self._limits.audio,
            read=read,
        )
        found, message = await self._run(work)
        if message:
            raise invalid(message.replace(str(path), UPLOAD))
        return found

    def clean(self, message: str) -> str:
        """Return a message without the paths of uploads."""
        return re.sub(rf"{re.escape(str(self._folder))}[\w./-]*", UPLOAD, message)

    def close(self) -> None:
        """End the worker process and delete all files."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _run(self, work: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        """Return the result of the worker process, which is replaced if it has died.

        It may have died of another upload, so this one is tried twice.
        """
        loop = asyncio.get_running_loop()
        for _ in range(2):
            pool = self._pool = self._pool or ProcessPoolExecutor(
                1, get_context("spawn"), _limit_memory
            )
            try:
                return await loop.run_in_executor(pool, work)
            except BrokenProcessPool:
                if self._pool is pool:
                    self._pool = None
        raise invalid(f"{UPLOAD} cannot be decoded within its limits of time and memory.")


def _limit_memory() -> None:
    prepare_worker()
    with suppress(ImportError, ValueError, OSError):
        resource: Any = import_module("resource")
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + MAX_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _rewrite(
    path: str,
    medium: str,
    *,
    max_pixels: int,
    max_seconds: float,
    read: Callable[[str], Any],
) -> tuple[str, str]:
    """Decode a file and write it again; return the new path, and the error if there is one."""
    if hasattr(signal, "alarm"):
        signal.alarm(MAX_SECONDS)  # ends this process, also within a decoder
    try:
        if medium == "image":
            image = open_image(path, max_pixels=max_pixels)
            found = f"{path}.png"
            image.save(found, compress_level=1)
        elif medium == "audio":
            found = f"{path}.wav"
            waveform = read_file(path, max_seconds=max_seconds)
            _write_wave(found, waveform.samples.astype("<f4").tobytes(), waveform.rate)
        else:
            found = path
        read(found)
    except (DataError, ConfigError) as error:
        message = str(error).replace(f"{path}.png", UPLOAD).replace(f"{path}.wav", UPLOAD)
        # The rest is advice for the command line.
        reason, separator, _ = message.partition(" Give a part (")
        return "", f"{reason} Send a part of it." if separator else message
    except MemoryError:
        return "", f"{UPLOAD} takes too much memory. Make it smaller."
    finally:
        if hasattr(signal, "alarm"):
            signal.alarm(0)
    return found, ""


def _write_wave(path: str, samples: bytes, rate: int) -> None:
    """Write a WAVE file with one channel of 32-bit floats."""
    header = struct.pack("<HHIIHH", 3, 1, rate, 4 * rate, 4, 32)
    chunks = b"fmt " + struct.pack("<I", len(header)) + header
    chunks += b"data" + struct.pack("<I", len(samples)) + samples
    with open(path, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
