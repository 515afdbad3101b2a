"""Files of a medium: label folders, tables with captions, lists of paths, archives; decoders."""

import os
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.core.tables import with_article
from regard.data.archives import exists, find_archive, members
from regard.data.example import Example
from regard.data.formats import FormatTable, identify, read_head
from regard.data.splits import expand_references
from regard.data.text.lines import STANDARD_INPUT, file_name
from regard.data.text.readers import OnError, read_examples
from regard.data.text.sources import read_sources

Array = NDArray[Any]

MAX_SKIPPED = 0.2
"""Maximum share of files that are skipped because their format is not read."""


def split_numbered(reference: str, names: Container[str]) -> tuple[str, str] | None:
    """Return data set and number of a numbered item such as `digits/5`; None for other references.

    A file of the same name can be given as `./digits/5`.
    """
    name, _, number = reference.partition("/")
    return (name, number) if name in names and number[-1:].isdecimal() else None


def resolve(name: str, path: str | Path, numbered: Container[str]) -> str:
    """Return a reference in the file `path` as an absolute path, relative to the file's folder."""
    folder = Path() if str(path) == STANDARD_INPUT else Path(path).parent
    return name if split_numbered(name, numbered) else os.path.abspath(folder / name)


@dataclass(frozen=True, kw_only=True)
class Medium:
    """Recognition and naming of the files of one medium."""

    formats: FormatTable
    """File formats, with the name of an item in messages."""
    text: str
    """Name of an item's text in messages, such as "caption"."""
    numbered: Container[str]
    """Names of the data sets whose items have numbers instead of files."""
    headings: tuple[Collection[str], Collection[str]]
    """Possible headings of the two columns of a table."""
    has_signature: Callable[[Path], bool] = lambda path: False
    """Function that detects a file of this medium whose format has neither suffix nor signature."""
    split_span: Callable[[str], tuple[str, float, float] | None] = lambda reference: None
    """Function that splits the reference of a part of an item into file, start and end."""
    is_folder: Callable[[Path], bool] | None = None
    """Function that detects a folder that is one item; None if items are never folders."""
    hint: str = ""
    """Addition to the message about label folders."""
    inspect: Callable[[Sequence[str]], None] = lambda references: None
    """Function that warns of items that another medium may fit better."""

    @property
    def name(self) -> str:
        """Name of an item in messages, such as "image"."""
        return self.formats.noun

    @cached_property
    def suffixes(self) -> frozenset[str]:
        """Suffixes of files, also of formats that need a package or conversion."""
        return self.formats.suffixes

    def split_numbered(self, reference: str) -> tuple[str, str] | None:
        """Return data set and number of a numbered item; None for other references."""
        return split_numbered(reference, self.numbered)

    def is_name(self, reference: object) -> bool:
        """Return whether a value is the reference of an item by its name."""
        if not isinstance(reference, str):
            return False
        suffix = Path(self._file(reference)).suffix.lower()
        return suffix in self.suffixes or self.split_numbered(reference) is not None

    def exists(self, reference: str) -> bool:
        """Return whether a reference names a numbered item, an existing file or an item folder."""
        path = self._file(reference)
        is_folder = self.is_folder is not None and Path(path).is_dir()
        return self.split_numbered(reference) is not None or exists(path) or is_folder

    def read_label_folders(self, path: str | Path) -> list[Example]:
        """Read a folder with one subfolder of items for each label."""
        root = Path(path)
        if not root.is_dir():
            raise DataError(
                f"{root} is not a folder. Give one with a folder of {self.name}s for each label."
            )
        entries = sorted(root.iterdir())
        labels = [entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        items = {folder.name: self._items_in(folder) for folder in labels}
        if not any(items.values()):
            raise DataError(
                f"{root} holds no {self.name} in a folder of its own label. "
                f"{self.name.capitalize()}s of cats must lie in {root / 'cat'}, for example"
                f"{self.hint}."
            )
        if unlabelled := [entry for entry in entries if entry.is_file() and self._is_item(entry)]:
            names = [entry.name for entry in unlabelled]
            _warn(
                "skipped %s in %s that lie in no label's folder", names, noun=self.name, path=root
            )
        if empty := [label for label, paths in items.items() if not paths]:
            _warn(f"left out %s in %s without any {self.name}", empty, noun="label", path=root)
        examples = [
            Example(os.path.abspath(item), label)
            for label, paths in items.items()
            for item in paths
        ]
        self.inspect([example.source for example in examples])
        return examples

    def read_table(
        self,
        path: str | Path,
        second: str | None = None,
        *,
        columns: Sequence[str] = (),
        on_error: OnError = "stop",
    ) -> list[Example]:
        """Read a table of items and texts, one example for each text.

        The file is TSV, CSV or JSON lines as for `read_examples`; the source is the path of an
        item, relative to the folder of the file. An item may occur several times, and in JSON lines
        have a list of texts. Examples whose item does not exist are skipped and counted. Use
        `merge_references` for one example for each item.

        Args:
            path: The file, or `-` for standard input.
            second: Not supported; both columns are in one file.
            columns: Content of each column, as for `read_examples`; one source is the item.
            on_error: As for `read_examples`.
        """
        self.check_is_table(path)
        if second is not None:
            raise DataError(
                f"{self.name.capitalize()}s and their {self.text}s belong in one file, but there "
                f"is a second one, {second}. Leave it out."
            )
        examples = expand_references(read_examples(path, columns=columns, on_error=on_error))
        if several := [one.source for one in examples if not isinstance(one.source, str)]:
            raise DataError(
                f"{file_name(path)} must name one {self.name} for each {self.text}, but a source "
                f"is {several[0]}. Name one column 'source' and the others '-'."
            )
        first = examples[0].source.casefold(), examples[0].target.casefold()
        if all(word in names for word, names in zip(first, self.headings, strict=True)):
            examples = examples[1:]
        paths = {one.source: resolve(one.source, path, self.numbered) for one in examples}
        missing = {source: item for source, item in paths.items() if not self.exists(item)}
        if len(missing) == len(paths):
            shown = "".join(f" First: {item}." for item in [*missing.values()][:1])
            raise DataError(
                f"{file_name(path)} names no {self.name} that exists.{shown} Paths start at the "
                "folder of the file."
            )
        if missing:
            items, name = list(missing.values()), file_name(path)
            _warn("skipped %s in %s that cannot be found", items, noun=self.name, path=name)
        self.inspect([item for source, item in paths.items() if source not in missing])
        return [
            replace(one, source=paths[one.source]) for one in examples if one.source not in missing
        ]

    def read_labelled(
        self, path: str, second: str | None = None, *, on_error: OnError = "stop"
    ) -> list[Example]:
        """Read a folder with one subfolder for each label, or a table of items and labels."""
        if Path(path).is_dir():
            return self.read_label_folders(path)
        return self.read_table(path, second, on_error=on_error)

    def list_references(self, path: str) -> list[str]:
        """Return the references of an item, of a folder or archive of items, or of a list of paths.

        Args:
            path: An item, a part of one, a numbered item, a folder (searched recursively, in
                alphabetical order), a `.zip` file, or a text file with a path on each line (`-`
                for standard input), or in the first column. These paths are relative to its folder.
        """
        root = Path(path)
        if self.split_numbered(path) or find_archive(path) or self.split_span(path):
            return [path]
        if path != STANDARD_INPUT and self._is_item_or_other(root):
            return [path]
        if root.is_dir():
            references = [str(item) for item in self._items_in(root)]
            if self.is_folder is not None and not references:
                return [path]  # may be a faulty item itself: decoding reports the error
        elif root.suffix.lower() == ".zip" and root.is_file():
            names = (name for name in members(path) if Path(name).suffix.lower() in self.suffixes)
            references = [f"{path}/{name}" for name in sorted(names)]
        else:
            lines = map(str.strip, read_sources(path))
            references = [resolve(line, path, self.numbered) for line in lines if line]
        if not references:
            raise DataError(f"{file_name(path)} holds no {self.name}.")
        return references

    def check_is_table(self, path: str | Path) -> None:
        """Raise `DataError` if the path of a table is a folder, an item or an archive."""
        file = Path(path)
        line = f"on each line {with_article(self.name)}, a tab and its {self.text}"
        if file.is_dir():
            raise DataError(
                f"{file} is a folder, but {self.text}s belong in a file: {line}. "
                f"A folder of {self.name}s for each label needs a recipe for classification."
            )
        if file.suffix.lower() in self.suffixes | {".zip"}:
            what = "an archive" if file.suffix.lower() == ".zip" else with_article(self.name)
            raise DataError(
                f"{file} is {what}, but {self.name}s to learn from belong in a file: {line}; "
                f"or {self.name}s lie in a folder for each label."
            )

    def check_formats(self, references: Collection[str]) -> None:
        """Raise `DataError` if many files need a missing package, or conversion.

        A few of them are skipped later; but a model of the few that are left would be another one
        than was asked for. If all need it, decoding raises the error.
        """
        distinct = dict.fromkeys(references)
        reasons = list(filter(None, map(self._why_not_read, distinct)))
        if MAX_SKIPPED * len(distinct) < len(reasons) < len(distinct):
            raise DataError(
                f"{len(reasons):,} of {len(distinct):,} {self.name}s have a format that is "
                f"not read; `--on-error skip` leaves them out. First: {reasons[0]}"
            )

    def _why_not_read(self, reference: str) -> str:
        path = self._file(reference)
        row = self.formats.by_suffix(path)
        # The suffix is compared first, so that only files in doubt are opened.
        return (
            "" if row is None or row.is_read else self.formats.why_not_read(path, read_head(path))
        )

    def report_skipped(self, reasons: Collection[str], *, num_kept: int, num_given: int) -> None:
        """Log the number of skipped examples, if any; raise `DataError` if none is left.

        Args:
            reasons: Error messages of unreadable files.
            num_kept: Number of examples that can be read.
            num_given: Number of all examples.
        """
        if not reasons:
            return
        first = next(iter(reasons))
        if not num_kept:
            raise DataError(f"No {self.name} can be read. First: {first}")
        logger.warning(
            f"skipped {num_given - num_kept:,} of {num_given:,} examples whose {self.name} cannot "
            f"be read (first: {first})"
        )

    def _file(self, reference: str) -> str:
        return (self.split_span(reference) or (reference,))[0]

    def _is_item(self, path: Path) -> bool:
        if path.name.startswith("."):
            return False
        if path.is_dir():
            return self.is_folder is not None and self.is_folder(path)
        return path.suffix.lower() in self.suffixes and path.is_file()

    def _is_item_or_other(self, path: Path) -> bool:
        """Return whether a path is an item; raise `DataError` if it is one of another medium."""
        if self._is_item(path):
            return True
        head = read_head(path)
        if self.formats.by_signature(head) or self.has_signature(path):
            return True
        if identify(path, head):
            raise self.formats.mismatch(str(path), head)
        return False

    def _items_in(self, folder: Path) -> list[Path]:
        """Return the items in a folder and, unless folders may be items, below it."""
        paths = folder.rglob("*") if self.is_folder is None else folder.iterdir()
        return sorted(path for path in paths if self._is_item(path))


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """Decoder of the items of one medium to arrays."""

    medium: Medium
    """Medium of the items."""
    settings: Any
    """Settings of decoding; part of the cache's key."""
    read: Callable[[str], Array]
    """Function that decodes one file, or raises a `DataError`."""
    read_numbered: Callable[[str, tuple[str, ...]], Iterable[Array]]
    """Function that returns numbered items, from the name of their data set and their numbers."""
    row: tuple[int, ...] = ()
    """Shape of a row of an array; empty if arrays are not cached."""
    dtype: str = "|u1"
    """Data type of the values in numpy's notation."""
    has_workers: bool = False
    """Whether many files are decoded in worker processes; `read` is pickled for them."""


def _warn(message: str, items: list[str], *, noun: str, path: str | Path) -> None:
    """Log a warning with the number of items in a file or folder, and the first item."""
    num = f"1 {noun}" if len(items) == 1 else f"{len(items):,} {noun}s"
    logger.warning(f"{message} (first: %s)", num, path, items[0])
