"""Files of one medium: folders by label, files of captions, lists of paths, archives; decoders."""

import os
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.core.tables import with_article
from regard.data.archives import exists, find_archive, members
from regard.data.example import Example
from regard.data.splits import expand_references
from regard.data.text.lines import STANDARD_INPUT, file_name, read_lines
from regard.data.text.readers import read_examples

Array = NDArray[Any]


def split_numbered(reference: str, names: Container[str]) -> tuple[str, str] | None:
    """Return data set and number of an item without a file, such as `digits/5`; None for others.

    A file of the same name is found under `./digits/5`.
    """
    name, _, number = reference.partition("/")
    return (name, number) if name in names and number[-1:].isdecimal() else None


def resolve(name: str, path: str | Path, numbered: Container[str]) -> str:
    """Return a reference in the file `path` as an absolute path; paths start at its folder."""
    folder = Path() if str(path) == STANDARD_INPUT else Path(path).parent
    return name if split_numbered(name, numbered) else os.path.abspath(folder / name)


@dataclass(frozen=True, kw_only=True)
class Medium:
    """How files of one medium are recognised, and what messages call them."""

    name: str
    """One item, such as "image"."""
    text: str
    """What a file says of an item, such as "caption"."""
    suffixes: frozenset[str]
    """What the names of files end in."""
    numbered: Container[str]
    """Names of the data sets whose items have numbers instead of files."""
    headings: tuple[Collection[str], Collection[str]]
    """What the two columns of a file may be called in its first line."""
    has_signature: Callable[[Path], bool] = lambda path: False
    """Whether a file without the right suffix is of this medium by its first bytes."""
    split_span: Callable[[str], tuple[str, float, float] | None] = lambda reference: None
    """Splits the reference of a part of an item into file, begin and end."""
    is_folder: Callable[[Path], bool] | None = None
    """Whether a folder is one item, where folders may be."""
    hint: str = ""
    """What else to know of folders for labels."""

    def split_numbered(self, reference: str) -> tuple[str, str] | None:
        """Return data set and number of an item without a file; None for others."""
        return split_numbered(reference, self.numbered)

    def is_name(self, reference: object) -> bool:
        """Whether something is the reference of an item, by its name alone."""
        if not isinstance(reference, str):
            return False
        suffix = Path(self._file(reference)).suffix.lower()
        return suffix in self.suffixes or self.split_numbered(reference) is not None

    def exists(self, reference: str) -> bool:
        """Whether there is a file, or a folder that may be one item, under a reference."""
        path = self._file(reference)
        is_folder = self.is_folder is not None and Path(path).is_dir()
        return self.split_numbered(reference) is not None or exists(path) or is_folder

    def contains_items(self, folder: Path) -> bool:
        """Whether there is an item in a folder or below it."""
        return any(self._is_item(path) for path in folder.rglob("*"))

    def read_label_folders(self, path: str | Path) -> list[Example]:
        """Read a folder with a folder for each label, in which the items with this label lie."""
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
        if without := [entry for entry in entries if entry.is_file() and self._is_item(entry)]:
            names = [entry.name for entry in without]
            _warn(
                "skipped %s in %s that lie in no label's folder", names, noun=self.name, place=root
            )
        if empty := [label for label, found in items.items() if not found]:
            _warn(f"left out %s in %s without any {self.name}", empty, noun="label", place=root)
        return [
            Example(os.path.abspath(item), label)
            for label, found in items.items()
            for item in found
        ]

    def read_table(
        self, path: str | Path, second: str | None = None, *, columns: Sequence[str] = ()
    ) -> list[Example]:
        """Read a file of items and texts, one example for each text.

        It is TSV, CSV or JSON lines as for `read_examples`, with the item as the source: a path
        that starts at the folder of the file. An item may come several times, and in JSON lines
        have a list of texts. Where an item does not exist, the example is skipped and counted.
        Use `merge_references` for one example for each item.

        Args:
            path: The file, or `-` for standard input.
            second: There is no second file, since both columns stand in one.
            columns: What stands in each column, as for `read_examples`; one of them is the item.
        """
        self.check_is_table(path)
        if second is not None:
            raise DataError(
                f"{self.name.capitalize()}s and their {self.text}s stand in one file, but there is "
                f"a second one, {second}. Leave it out."
            )
        examples = expand_references(read_examples(path, columns=columns))
        if several := [one.source for one in examples if not isinstance(one.source, str)]:
            raise DataError(
                f"{file_name(path)} must name one {self.name} for each {self.text}, but a source "
                f"is {several[0]}. Name one column 'source' and the others '-'."
            )
        first = examples[0].source.casefold(), examples[0].target.casefold()
        if all(word in names for word, names in zip(first, self.headings, strict=True)):
            examples = examples[1:]
        found = {one.source: resolve(one.source, path, self.numbered) for one in examples}
        missing = {source: place for source, place in found.items() if not self.exists(place)}
        if len(missing) == len(found):
            shown = "".join(f" First: {place}." for place in [*missing.values()][:1])
            raise DataError(
                f"{file_name(path)} names no {self.name} that exists.{shown} Paths start at the "
                "folder of the file."
            )
        if missing:
            places = list(missing.values())
            name = file_name(path)
            _warn("skipped %s in %s that cannot be found", places, noun=self.name, place=name)
        return [
            replace(one, source=found[one.source]) for one in examples if one.source not in missing
        ]

    def read_labelled(self, path: str, second: str | None = None) -> list[Example]:
        """Read a folder with one for each label, or a file with an item and its label a line."""
        return (
            self.read_label_folders(path) if Path(path).is_dir() else self.read_table(path, second)
        )

    def list_references(self, path: str) -> list[str]:
        """Return the references of an item, of a folder or archive of items, or of a list of paths.

        Args:
            path: An item, a part of one, a numbered item, a folder (with all below it, in
                alphabetical order), a `.zip` file, or a text file with a path on each line (`-`
                for standard input). These paths start at the folder of the list.
        """
        place = Path(path)
        if self.split_numbered(path) or find_archive(path) or self.split_span(path):
            return [path]
        if path != STANDARD_INPUT and (self._is_item(place) or self.has_signature(place)):
            return [path]
        if place.is_dir():
            found = [str(item) for item in self._items_in(place)]
            if self.is_folder is not None and not found:
                return [path]  # it may be an item itself: decoding says what it lacks
        elif place.suffix.lower() == ".zip" and place.is_file():
            names = (name for name in members(path) if Path(name).suffix.lower() in self.suffixes)
            found = [f"{path}/{name}" for name in sorted(names)]
        else:
            lines = map(str.strip, read_lines(path))
            found = [resolve(line, path, self.numbered) for line in lines if line]
        if not found:
            raise DataError(f"{file_name(path)} holds no {self.name}.")
        return found

    def check_is_table(self, path: str | Path) -> None:
        """Raise if what should name items is a folder of items, one item or an archive."""
        place = Path(path)
        line = f"on each line {with_article(self.name)}, a tab and its {self.text}"
        if place.is_dir():
            raise DataError(
                f"{place} is a folder, but {self.text}s stand in a file: {line}. "
                f"A folder of {self.name}s for each label needs a recipe for classification."
            )
        if place.suffix.lower() in self.suffixes | {".zip"}:
            what = "an archive" if place.suffix.lower() == ".zip" else with_article(self.name)
            raise DataError(
                f"{place} is {what}, but {self.name}s to learn from stand in a file: {line}; "
                f"or {self.name}s lie in a folder for each label."
            )

    def report_skipped(self, reasons: Collection[str], *, num_kept: int, num_given: int) -> None:
        """Log how many examples are skipped, if any; where none is left, that is an error.

        Args:
            reasons: Why files cannot be read, a sentence each.
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

    def _items_in(self, folder: Path) -> list[Path]:
        """Return the items in a folder and, where an item is no folder itself, below it."""
        paths = folder.rglob("*") if self.is_folder is None else folder.iterdir()
        return sorted(path for path in paths if self._is_item(path))


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """How items of one medium become arrays."""

    medium: Medium
    """How their references are recognised, and what messages call them."""
    settings: Any
    """What they are decoded by; part of the cache's key."""
    read: Callable[[str], Array]
    """Decodes one file, or raises a `DataError`."""
    read_numbered: Callable[[str, tuple[str, ...]], Iterable[Array]]
    """Returns items without files, from the name of their data set and their numbers."""
    row: tuple[int, ...] = ()
    """The shape of a row of an array; empty where nothing is cached."""
    dtype: str = "|u1"
    """Type of the values, as numpy writes it."""
    has_workers: bool = False
    """Whether many files are decoded in worker processes; `read` is sent to them."""


def _warn(message: str, items: list[str], *, noun: str, place: str | Path) -> None:
    """Log a warning of how many items there are in a place, and of the first."""
    num = f"1 {noun}" if len(items) == 1 else f"{len(items):,} {noun}s"
    logger.warning(f"{message} (first: %s)", num, place, items[0])
