"""Downloaded files: cached in a folder and verified at every use."""

import os
import urllib.request
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit

from regard.core.cached_folder import cache_folder
from regard.core.errors import DataError
from regard.core.files import replacing, sha256, write_text
from regard.core.logging import logger
from regard.core.progress import counting

BLOCK_BYTES = 1 << 16
TIMEOUT_SECONDS = 30


def local_folder(name: str) -> Path:
    """Return the folder of a data set in `REGARD_DATA`; the folder need not exist."""
    return Path(os.environ.get("REGARD_DATA") or os.devnull) / name


def describe_local(files: Sequence[str]) -> str:
    """Return which folder `REGARD_DATA` must be, and what it is, for messages.

    Args:
        files: Files that the folder must contain, relative to it.
    """
    root = os.environ.get("REGARD_DATA")
    missing = [file for file in files if not (local_folder("") / file).is_file()]
    if not root:
        state = "not set"
    elif not Path(root).is_dir():
        state = f"'{root}', which does not exist"
    else:
        lacking = "them" if len(missing) == len(files) > 1 else ", ".join(missing)
        state = f"'{root}', which does not contain {'it' if len(files) == 1 else lacking}"
    return f"the folder that contains {', '.join(files)}; it is {state}"


def fetch(
    url: str,
    *,
    cache: Path | None = None,
    name: str | None = None,
    instead: Sequence[str] = (),
) -> Path:
    """Return the local copy of a file; download it on first use.

    The checksum is stored at the first download and compared at every later use.

    Args:
        url: URL of the file.
        cache: Folder to store it in; `cache_folder()` if not given.
        name: File name in the folder; the last part of the URL if not given.
        instead: Files in `REGARD_DATA` that make the download unnecessary, for messages.
    """
    path = (cache or cache_folder()) / (name or _last_part(url))
    record = path.with_name(path.name + ".sha256")
    if path.exists() and record.exists():
        expected, actual = record.read_text(encoding="utf-8").strip(), sha256(path)
        if actual != expected:
            raise DataError(
                f"{path} is not the file that was downloaded: its SHA-256 must be {expected}, "
                f"but is {actual}. Delete it to download it again."
            )
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            logger.info("downloading %s", url)
            with replacing(path) as temporary, temporary.open("wb") as file:
                file.writelines(_read_blocks(url, instead))
        write_text(record, sha256(path) + "\n")
    except OSError as error:
        raise DataError(
            f"{path} could not be written: {error.strerror}. Set REGARD_CACHE to another folder."
        ) from None
    return path


def _last_part(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name or "download"


def _read_blocks(url: str, instead: Sequence[str]) -> Iterator[bytes]:
    expected, received = None, 0
    try:
        # Some servers reject the default user agent of urllib.
        request = urllib.request.Request(url, headers={"User-Agent": "Mozilla/5.0 (regard)"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            if length := response.headers.get("Content-Length"):
                expected = int(length)
            with counting(f"Downloading {_last_part(url)}", expected) as advance:
                while block := response.read(BLOCK_BYTES):
                    received += len(block)
                    advance(len(block))
                    yield block
    except HTTPError as error:
        error.close()
        reason = f"the server responded with {error.code} {error.reason}"
        raise _failed(url, reason, instead) from None
    except URLError as error:
        raise _failed(url, str(error.reason), instead) from None
    except (OSError, HTTPException, ValueError) as error:
        raise _failed(url, str(error) or type(error).__name__, instead) from None
    if expected is not None and received != expected:
        reason = f"the transfer broke off after {received:,} of {expected:,} bytes"
        raise _failed(url, reason, instead)


def _failed(url: str, reason: str, instead: Sequence[str]) -> DataError:
    other = f", or set `REGARD_DATA` to {describe_local(instead)}" if instead else ""
    return DataError(
        f"{url} could not be downloaded: {reason}. Check the network and try again{other}."
    )
