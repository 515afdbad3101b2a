"""Files and members of `.zip` archives: `images.zip/cats/1.png` is a member of `images.zip`."""

import io
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from regard.core.errors import DataError
from regard.core.files import check_regular
from regard.data.expansion import check_member


def find_archive(reference: str) -> tuple[str, str] | None:
    """Return the `.zip` file within a reference and the member's name; None without an archive."""
    parts = reference.replace("\\", "/").split("/")
    for end, part in enumerate(parts[:-1], start=1):
        if part.lower().endswith(".zip") and Path(archive := "/".join(parts[:end])).is_file():
            return archive, "/".join(parts[end:])
    return None


def members(archive: str) -> list[str]:
    """Return the names of all members of a `.zip` file."""
    return _archive(archive).namelist()


def exists(reference: str) -> bool:
    """Return whether a reference names an existing file or member of an archive."""
    if member := find_archive(reference):
        return member[1] in _archive(member[0]).NameToInfo
    return Path(reference).is_file()


def open_bytes(reference: str, *, what: str) -> BinaryIO:
    """Open a file, or a member of a `.zip` file; `what` names it in errors."""
    check_regular(reference)
    try:
        if member := find_archive(reference):
            archive, name = _archive(member[0]), member[1]
            check_member(reference, archive.getinfo(name))
            return io.BytesIO(archive.read(name))
        return cast(BinaryIO, Path(reference).open("rb"))
    except FileNotFoundError:
        raise DataError(f"{reference} does not exist.") from None
    except KeyError:
        raise DataError(f"{reference} does not exist: the archive has no such member.") from None
    except IsADirectoryError:
        raise DataError(f"{reference} is a folder, not {what}.") from None
    # An archive may be damaged, encrypted or compressed by a method that Python does not support.
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{reference} cannot be read: {reason}.") from None


def _archive(path: str) -> zipfile.ZipFile:
    stat = Path(path).stat()
    try:
        return _open_archive(path, (stat.st_size, stat.st_mtime_ns))
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is a damaged archive ({error}).") from None


@lru_cache(maxsize=4)
def _open_archive(path: str, version: tuple[int, int]) -> zipfile.ZipFile:
    """Open an archive once for all its members, and again when its size or time changes."""
    return zipfile.ZipFile(path)
