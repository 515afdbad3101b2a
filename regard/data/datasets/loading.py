"""What loaders of built-in data sets share: arguments, folders, packages, parts and notes."""

import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from regard.core.errors import DataError
from regard.core.tables import near, one_of
from regard.data.datasets.download import local_folder
from regard.data.example import Example
from regard.data.splits import Splits

Sample = TypeVar("Sample")

Parts = tuple[list[Example], list[Example], list[Example]]
"""Training, validation and test examples."""


def check_argument(argument: str, name: str, *known: str) -> None:
    """Refuse what follows a data set's name and colon, unless it is known or empty."""
    if not argument or argument in known:
        return
    if not known:
        raise DataError(f"'{name}' takes nothing after its name, but has ':{argument}'.")
    raise DataError(
        f"What follows '{name}:' must be {one_of(known)}, but is '{argument}'."
        f"{near(argument, known)}"
    )


def parse_argument(argument: str, name: str, known: Iterable[str]) -> tuple[str, int]:
    """Return the kind of a data set, and the number of training examples; 0 = not given.

    Args:
        argument: What follows a data set's name: nothing, a kind, a number, or both with a comma.
        name: The data set's, to be named in a message.
        known: The kinds, among them the empty one.
    """
    kind, comma, number = argument.rpartition(",")
    if argument in known:
        return argument, 0
    is_number = re.fullmatch(r"[1-9]\d{0,6}", number, re.ASCII)
    if kind not in known or (comma and not kind) or not is_number:
        words = [word for word in known if word]
        raise DataError(
            f"What follows '{name}:' must be {one_of(words)}, a number of training examples, or "
            f"both, as in '{name}:{words[0]},2000', but is '{argument}'."
        )
    return kind, int(number)


def parse_number(argument: str, name: str, default: int, *, hint: str = "") -> int:
    """Return the number of training pairs that follows a data set's name.

    Args:
        argument: A number, thousands marked or not, or nothing.
        name: The data set's, to be named in a message.
        default: The number if there is none.
        hint: What else may follow, for the message.
    """
    if not argument:
        return default
    # Thousands may be marked, but '5000,10' is no number.
    is_number = re.fullmatch(r"\d+|\d{1,3}([,_]\d{3})+", argument, re.ASCII)
    number = int(re.sub(r"[,_]", "", argument)) if is_number else 0
    if number < 1:
        raise DataError(
            f"What follows '{name}:' must be the number of training pairs, as in "
            f"'{name}:{default}'{hint}, but is '{argument}'."
        )
    return number


def parse_reference(reference: str, kinds: Collection[str], what: str) -> tuple[str, int, int]:
    """Return kind, seed and number of a generated item such as `scenes/0/17`.

    Args:
        reference: Of the item.
        kinds: What it may begin with.
        what: What the item is, to be named in a message.
    """
    found = re.fullmatch(r"(\w+)/(\d{1,9})/(\d{1,9})", reference, re.ASCII)
    if found is None or found[1] not in kinds:
        forms = " or ".join(f"'{kind}/SEED/NUMBER'" for kind in kinds)
        raise DataError(f"{what} must look like {forms}, but is '{reference}'.")
    return found[1], int(found[2]), int(found[3])


def find_folder(name: str, first: str) -> Path:
    """Return the folder of a data set that is not downloaded; `first` is a file in it."""
    folder = local_folder(name)
    if not (folder / first).is_file():
        raise DataError(
            f"The data set '{name}' is read from the folder '{name}' in `REGARD_DATA`, but "
            f"{folder / first} does not exist. Set `REGARD_DATA` to the folder that holds it."
        )
    return folder


def find_package(name: str, package: str) -> Path:
    """Return the folder of the installed package that holds a data set; it is not imported."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise needs_package(name)
    return Path(found.submodule_search_locations[0])


def needs_package(name: str) -> DataError:
    """Return the error of a data set whose package is not installed."""
    return DataError(
        f"The data set '{name}' needs a package. Install it: `pip install regard[data]`."
    )


def part_of(text: str, valid: int, test: int) -> int:
    """Return the part of a text by its checksum: 0 = training, 1 = validation, 2 = test.

    Args:
        text: What decides; no seed and no size ever moves it.
        valid: Hundredths of all texts that are for validation.
        test: Hundredths that are for the test.
    """
    lot = zlib.crc32(text.encode()) % 100
    return 2 if lot < test else 1 if lot < test + valid else 0


def fill_parts(
    samples: Iterator[Sample],
    write: Callable[[Sample], list[Example]],
    wanted: tuple[int, int, int],
    *,
    key: Callable[[Sample], str],
    shares: tuple[int, int] = (8, 8),
) -> Parts:
    """Sample until every part is full; the size of one does not change what is in another.

    Args:
        samples: Samples without an end.
        write: Writes the examples of a sample.
        wanted: The numbers of examples of the parts.
        key: Returns the text that decides to which part a sample belongs.
        shares: Hundredths of all samples that are for validation and for the test.
    """
    parts: Parts = ([], [], [])
    while any(len(part) < num for part, num in zip(parts, wanted, strict=True)):
        sample = next(samples)
        number = part_of(key(sample), *shares)
        if len(parts[number]) < wanted[number]:
            parts[number].extend(write(sample))
    for part, num in zip(parts, wanted, strict=True):
        del part[num:]
    return parts


def split_off(examples: list[Example], num: int) -> Parts:
    """Hold out the first `num` examples to validate and the next `num` for the test.

    Held out first, they stay the same whatever the number of training examples.
    """
    return examples[2 * num :], examples[:num], examples[num : 2 * num]


def with_sizes(parts: Iterable[list[Example]], origin: str, more: str = "") -> Splits:
    """Return training, validation and test examples with a note of their origin and sizes."""
    train, valid, test = parts
    sizes = f"{len(train):,} train, {len(valid):,} valid, {len(test):,} test"
    return Splits(train, valid, test, f"{origin}: {sizes}{more}")
