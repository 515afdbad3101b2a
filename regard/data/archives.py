"""Files, also those in `.zip` archives: `images.zip/cats/1.png` is a member of `images.zip`."""

import io
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from regard.core.errors import DataError


def find_archive(reference: str) -> tuple[str, str] | None:
    """Return the `.zip` file in the middle of a reference and the member, where there is one."""
    parts = reference.replace("\\", "/").split("/")
    for place, part in enumerate(parts[:-1], start=1):
        if part.lower().endswith(".zip") and Path(archive := "/".join(parts[:place])).is_file():
            return archive, "/".join(parts[place:])
    return None


def members(archive: str) -> list[str]:
    """Return the names of what a `.zip` file holds."""
    return _archive(archive).namelist()


def exists(reference: str) -> bool:
    """Whether there is a file, or a member of an archive, under a reference."""
    if found := find_archive(reference):
        return found[1] in _archive(found[0]).NameToInfo
    return Path(reference).is_file()


def open_bytes(reference: str, *, what: str) -> BinaryIO:
    """Open a file, or a member of a `.zip` file; `what` names it in errors."""
    try:
        if found := find_archive(reference):
            archive, member = found
            return io.BytesIO(_archive(archive).read(member))
        return cast(BinaryIO, Path(reference).open("rb"))
    except FileNotFoundError:
        raise DataError(f"{reference} does not exist.") from None
    except KeyError:
        raise DataError(f"{reference} does not exist: the archive has no such member.") from None
    except IsADirectoryError:
        raise DataError(f"{reference} is a folder, not {what}.") from None
    # An archive may be damaged, locked by a password or packed in a way that Python cannot unpack.
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{reference} cannot be read: {reason}.") from None


def _archive(path: str) -> zipfile.ZipFile:
    found = Path(path).stat()
    try:
        return _open_archive(path, (found.st_size, found.st_mtime_ns))
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} is a damaged archive ({error}).") from None


@lru_cache(maxsize=4)
def _open_archive(path: str, changed: tuple[int, int]) -> zipfile.ZipFile:
    """Open an archive once for all its members, and again when the file has changed."""
    return zipfile.ZipFile(path)
