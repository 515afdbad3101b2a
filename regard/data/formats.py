"""File formats of media: which are read, need a package or need conversion."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from regard.core.errors import DataError
from regard.core.records import find_special_kind
from regard.core.tables import with_article

HEAD_BYTES = 32
"""Number of first bytes of a file that signatures are compared with."""

INSTALL = {"soundfile": "pip install 'regard[audio]'", "pillow_heif": "pip install pillow-heif"}
"""Commands that install the optional packages, by import name."""

_BASE_MEDIA = rb"\0.{3}ftyp"
"""First bytes of ISO base media files, such as MP4 and HEIC, before the four letters of a brand."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """A row of a table of file formats."""

    name: str
    """Name in messages, such as "MP3"."""
    suffixes: tuple[str, ...]
    """Suffixes of files, in lower case."""
    signature: bytes = b""
    """Regular expression of the first bytes; empty if they do not identify the format."""
    package: str = ""
    """Import name of the optional package that reads the format, one of `INSTALL`, if any."""
    convert: str = ""
    """Command that converts a file, with `{file}` and `{stem}`; empty if it is not needed."""

    @property
    def is_read(self) -> bool:
        """Whether files can be read with the installed packages."""
        return is_installed(self.package) if self.package else not self.convert

    def matches(self, head: bytes) -> bool:
        """Return whether the first bytes of a file are those of this format."""
        return bool(self.signature) and re.match(self.signature, head, re.DOTALL) is not None

    def how_to_read(self, reference: str) -> str:
        """Return what to install, or how to convert a file to a format that is read."""
        file = Path(reference)
        stem = str(file.with_suffix(""))
        command = self.convert.format(file=shlex.quote(reference), stem=shlex.quote(stem))
        if self.package:
            installation = f"Install the package that reads it: `{INSTALL[self.package]}`"
            return f"{installation}; or convert it: `{command}`."
        return f"Convert it: `{command}`."


@dataclass(frozen=True)
class FormatTable:
    """File formats of one medium."""

    noun: str
    """Name of an item in messages, such as "recording"."""
    rows: tuple[Format, ...]

    @property
    def suffixes(self) -> frozenset[str]:
        """Suffixes of all formats, also of those that need a package or conversion."""
        return frozenset(suffix for row in self.rows for suffix in row.suffixes)

    @property
    def packages(self) -> tuple[str, ...]:
        """Optional packages that are installed."""
        return tuple(sorted({row.package for row in self.rows if row.package and row.is_read}))

    def describe(self) -> str:
        """Return the names of the formats that are read, and of those that need a package."""
        text = ", ".join(row.name for row in self.rows if row.is_read)
        for package, command in INSTALL.items():
            rows = [row.name for row in self.rows if row.package == package and not row.is_read]
            text += f", with `{command}` also {', '.join(rows)}" if rows else ""
        return text

    def by_signature(self, head: bytes) -> Format | None:
        """Return the format with the given first bytes; None if there is none."""
        return next((row for row in self.rows if row.matches(head)), None)

    def by_suffix(self, reference: str) -> Format | None:
        """Return the format with the suffix of a file; None if there is none."""
        suffix = Path(reference).suffix.lower()
        return next((row for row in self.rows if suffix in row.suffixes), None)

    def check(self, reference: str, head: bytes) -> None:
        """Raise `DataError` if the format of a file needs conversion, or a missing package."""
        if reason := self.why_not_read(reference, head):
            raise DataError(reason)

    def why_not_read(self, reference: str, head: bytes) -> str:
        """Return what to install or convert if the format of a file is not read; else nothing."""
        row = self.by_signature(head) or self.by_suffix(reference)
        if row is None or row.is_read:
            return ""
        return (
            f"{reference} is {with_article(self.noun)} in a format that is not read "
            f"({row.name}). {row.how_to_read(reference)}"
        )

    def mismatch(self, reference: str, head: bytes) -> DataError:
        """Return the error for a file that the reader of this medium does not accept.

        Args:
            reference: The file.
            head: Its first bytes.
        """
        found = None if self.by_signature(head) else identify(reference, head)
        if found and found[0] is not self:
            table, row = found
            return DataError(
                f"{reference} is {with_article(table.noun)} ({row.name}), but must be "
                f"{with_article(self.noun)}."
            )
        if self.by_signature(head) or self.by_suffix(reference):
            return DataError(
                f"{reference} is not {with_article(self.noun)}, or damaged. Fetch it again."
            )
        return DataError(
            f"{reference} is not {with_article(self.noun)} of a known format. "
            f"Formats that are read: {self.describe()}."
        )


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return find_spec(package) is not None


def read_head(path: str | Path) -> bytes:
    """Return the first bytes of a file; nothing if it cannot be read, or is a pipe or a device."""
    if find_special_kind(path):
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return b""


def identify(reference: str | Path, head: bytes) -> tuple[FormatTable, Format] | None:
    """Return medium and format of a file by its first bytes, or of a binary file by its suffix."""
    candidates: Iterator[tuple[FormatTable, Format | None]]
    candidates = ((table, table.by_signature(head)) for table in TABLES)
    if b"\0" in head:
        named = ((table, table.by_suffix(str(reference))) for table in TABLES)
        candidates = (pair for pairs in (candidates, named) for pair in pairs)
    return next(((table, row) for table, row in candidates if row is not None), None)


def check_is_text(path: str | Path, head: bytes) -> None:
    """Raise `DataError` if the first bytes of a file are those of a recording, image or video."""
    if found := identify(path, head):
        table, row = found
        raise DataError(f"{path} is {with_article(table.noun)} ({row.name}), but must be text.")


def describe_formats() -> str:
    """Return the most frequent formats of all media, for messages."""
    names = {
        table.noun: [row.name for row in table.rows if row.package or not row.convert]
        for table in TABLES
    }
    return ", ".join(f"{noun}s ({', '.join(rows[:4])}, …)" for noun, rows in names.items())


_TO_WAVE = "ffmpeg -i {file} {stem}.wav"
_TO_PNG = "magick {file} {stem}.png"
_TO_GIF = "ffmpeg -i {file} {stem}.gif"


def _sndfile(name: str, suffixes: tuple[str, ...], signature: bytes) -> Format:
    return Format(
        name=name, suffixes=suffixes, signature=signature, package="soundfile", convert=_TO_WAVE
    )


WAVE = Format(name="WAVE", suffixes=(".wav", ".wave"), signature=rb"RIFF.{4}WAVE")
"""The audio format that needs no package."""

AUDIO = FormatTable(
    "recording",
    (
        WAVE,
        _sndfile("FLAC", (".flac",), rb"fLaC[\0\x80]"),
        _sndfile("Ogg", (".oga", ".ogg", ".opus"), rb"OggS\0"),
        _sndfile("MP3", (".mp2", ".mp3"), rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2-\xf5\xfa-\xfd]"),
        _sndfile("AIFF", (".aif", ".aifc", ".aiff"), rb"FORM.{4}AIF[CF]"),
        _sndfile("AU", (".au", ".snd"), rb"\.snd\0"),
        _sndfile("CAF", (".caf",), rb"caff\0"),
        _sndfile("RF64 or W64", (".rf64", ".w64"), rb"RF64.{4}WAVE|riff\x2e\x91\xcf\x11"),
        _sndfile("SPHERE", (".sph",), rb"NIST_1A"),
        _sndfile("VOC", (".voc",), rb"Creative Voice File\x1a"),
        Format(
            name="AAC",
            suffixes=(".aac", ".m4a", ".m4b"),
            signature=_BASE_MEDIA + rb"M4[AB]|\xff[\xf0\xf1\xf8\xf9]",
            convert=_TO_WAVE,
        ),
        Format(name="AMR", suffixes=(".3ga", ".amr"), signature=rb"#!AMR", convert=_TO_WAVE),
        Format(name="WMA", suffixes=(".wma",), convert=_TO_WAVE),
        Format(name="Matroska audio", suffixes=(".mka", ".weba"), convert=_TO_WAVE),
        Format(
            name="APE, WavPack or Musepack",
            suffixes=(".ape", ".mpc", ".wv"),
            signature=rb"MAC \x96|wvpk.{5}\x04|MPCK",
            convert=_TO_WAVE,
        ),
    ),
)
"""Audio formats."""

IMAGE = FormatTable(
    "image",
    (
        Format(
            name="JPEG",
            suffixes=(".jfif", ".jpe", ".jpeg", ".jpg", ".mpo"),
            signature=rb"\xff\xd8\xff",
        ),
        Format(name="PNG", suffixes=(".png",), signature=rb"\x89PNG"),
        Format(name="GIF", suffixes=(".gif",), signature=rb"GIF8[79]a"),
        Format(name="WebP", suffixes=(".webp",), signature=rb"RIFF.{4}WEBP"),
        Format(name="AVIF", suffixes=(".avif",), signature=_BASE_MEDIA + rb"avi[fs]"),
        Format(name="BMP", suffixes=(".bmp", ".dib"), signature=rb"BM.{4}\0\0\0\0"),
        # Without a signature: camera raw files begin like TIFF, but Pillow finds only a preview.
        Format(name="TIFF", suffixes=(".tif", ".tiff")),
        Format(name="PPM", suffixes=(".pbm", ".pgm", ".pnm", ".ppm")),
        Format(
            name="JPEG 2000",
            suffixes=(".j2k", ".jp2", ".jpf", ".jpx"),
            signature=rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51",
        ),
        Format(name="TGA", suffixes=(".tga",)),
        Format(name="PCX", suffixes=(".pcx",)),
        Format(name="QOI", suffixes=(".qoi",), signature=rb"qoif\0"),
        Format(name="PSD", suffixes=(".psd",), signature=rb"8BPS\0"),
        Format(name="ICO", suffixes=(".ico",), signature=rb"\0\0\x01\0[^\0]\0"),
        Format(name="DDS", suffixes=(".dds",), signature=rb"DDS \x7c"),
        Format(
            name="HEIC",
            suffixes=(".heic", ".heif", ".hif"),
            signature=_BASE_MEDIA + rb"(?:hei[cmsx]|hev[cmsx]|mif1|msf1)",
            package="pillow_heif",
            convert="heif-convert {file} {stem}.png",
        ),
        Format(
            name="JPEG XL",
            suffixes=(".jxl",),
            signature=rb"\xff\x0a|\0\0\0\x0cJXL ",
            convert="djxl {file} {stem}.png",
        ),
        Format(name="SVG", suffixes=(".svg",), convert="rsvg-convert -o {stem}.png {file}"),
        Format(
            name="camera raw",
            suffixes=(".arw", ".cr2", ".cr3", ".dng", ".nef", ".orf", ".raf", ".rw2"),
            signature=_BASE_MEDIA + rb"crx ",
            convert=_TO_PNG,
        ),
    ),
)
"""Image formats; Pillow reads those without a package or conversion."""

VIDEO = FormatTable(
    "video",
    (
        Format(name="animated GIF", suffixes=(".gif",), signature=rb"GIF8[79]a"),
        Format(name="animated WebP", suffixes=(".webp",), signature=rb"RIFF.{4}WEBP"),
        Format(name="animated PNG", suffixes=(".apng", ".png"), signature=rb"\x89PNG"),
        Format(
            name="QuickTime",
            suffixes=(".mov", ".qt"),
            signature=_BASE_MEDIA + rb"qt  |\0.{3}(?:moov|mdat|wide)",
            convert=_TO_GIF,
        ),
        Format(
            name="MP4",
            suffixes=(".3g2", ".3gp", ".f4v", ".m4v", ".mp4"),
            signature=_BASE_MEDIA + rb"(?!avi[fs]|hei|mif1|M4[AB])",
            convert=_TO_GIF,
        ),
        Format(
            name="Matroska",
            suffixes=(".mkv", ".webm"),
            signature=rb"\x1aE\xdf\xa3",
            convert=_TO_GIF,
        ),
        Format(name="AVI", suffixes=(".avi",), signature=rb"RIFF.{4}AVI ", convert=_TO_GIF),
        Format(
            name="MPEG",
            suffixes=(".m2ts", ".m2v", ".mpeg", ".mpg", ".mts", ".vob"),
            signature=rb"\0\0\x01[\xb3\xba]",
            convert=_TO_GIF,
        ),
        Format(
            name="WMV",
            suffixes=(".asf", ".wmv"),
            signature=rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
            convert=_TO_GIF,
        ),
        Format(name="Flash", suffixes=(".flv",), signature=rb"FLV\x01", convert=_TO_GIF),
        Format(name="Ogg video", suffixes=(".ogv",), convert=_TO_GIF),
    ),
)
"""Video formats."""

TABLES = (AUDIO, IMAGE, VIDEO)
"""Tables in the order in which they are searched: a still GIF is an image before a video."""
