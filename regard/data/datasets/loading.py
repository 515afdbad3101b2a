"""Helpers of the loaders of built-in data sets: arguments, folders, packages, splits, notes."""

import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from regard.core.errors import DataError
from regard.core.tables import did_you_mean, one_of
from regard.data.datasets.catalog import DATASETS
from regard.data.datasets.download import describe_local, local_folder
from regard.data.example import Example
from regard.data.splits import Splits

Sample = TypeVar("Sample")

Parts = tuple[list[Example], list[Example], list[Example]]
"""Training, validation and test examples."""


def check_argument(argument: str, name: str, *known: str) -> None:
    """Raise `DataError` unless the argument of a data set is empty or one of `known`."""
    if not argument or argument in known:
        return
    if not known:
        raise DataError(f"'{name}' takes no argument, but has ':{argument}'.")
    raise DataError(
        f"The argument of '{name}:' must be {one_of(known)}, but is '{argument}'."
        f"{did_you_mean(argument, known)}"
    )


def parse_argument(argument: str, name: str, known: Iterable[str]) -> tuple[str, int]:
    """Return the kind of a data set and the number of training examples (0 = not given).

    Args:
        argument: Text after the name and colon: empty, a kind, a number, or both with a comma.
        name: Name of the data set, for messages.
        known: The kinds, including the empty one.
    """
    kind, comma, number = argument.rpartition(",")
    if argument in known:
        return argument, 0
    is_number = re.fullmatch(r"[1-9]\d{0,6}", number, re.ASCII)
    if kind not in known or (comma and not kind) or not is_number:
        kinds = list(filter(None, known))
        raise DataError(
            f"The argument of '{name}:' must be {one_of(kinds)}, a number of training examples, or "
            f"both, as in '{name}:{kinds[0]},2000', but is '{argument}'."
        )
    return kind, int(number)


def parse_number(argument: str, name: str, default: int, *, hint: str = "") -> int:
    """Return the number of training pairs given as the argument of a data set.

    Args:
        argument: A number, with or without thousands separators; may be empty.
        name: Name of the data set, for messages.
        default: Number to use if the argument is empty.
        hint: Other accepted forms, for messages.
    """
    if not argument:
        return default
    # Thousands separators are allowed, but '5000,10' is not a number.
    is_number = re.fullmatch(r"\d+|\d{1,3}([,_]\d{3})+", argument, re.ASCII)
    number = int(re.sub(r"[,_]", "", argument)) if is_number else 0
    if number < 1:
        raise DataError(
            f"The argument of '{name}:' must be the number of training pairs, as in "
            f"'{name}:{default}'{hint}, but is '{argument}'."
        )
    return number


def parse_reference(reference: str, kinds: Collection[str], what: str) -> tuple[str, int, int]:
    """Return kind, seed and number of a generated item such as `scenes/0/17`.

    Args:
        reference: Reference of the item.
        kinds: Accepted kinds.
        what: Description of the item, for messages.
    """
    match = re.fullmatch(r"(\w+)/(\d{1,9})/(\d{1,9})", reference, re.ASCII)
    if match is None or match[1] not in kinds:
        forms = " or ".join(f"'{kind}/SEED/NUMBER'" for kind in kinds)
        raise DataError(f"{what} must have the form {forms}, but is '{reference}'.")
    return match[1], int(match[2]), int(match[3])


def find_folder(name: str, *files: str) -> Path:
    """Return the folder of a data set in `REGARD_DATA`.

    Args:
        name: Name of the data set and of its folder.
        files: Files that the folder must contain.
    """
    folder = local_folder(name)
    if not all((folder / file).is_file() for file in files):
        raise missing_files(name, *(f"{name}/{file}" for file in files))
    return folder


def missing_files(name: str, *files: str) -> DataError:
    """Return the error for a data set that is not in `REGARD_DATA`.

    Args:
        name: Name of the data set.
        files: Files that are needed, relative to `REGARD_DATA`.
    """
    return DataError(
        f"The data set '{name}' is not downloaded automatically. Set `REGARD_DATA` to "
        f"{describe_local(files)}. Origin: {DATASETS[name].origin}."
    )


def find_package(name: str, package: str) -> Path:
    """Return the folder of the installed package with a data set, without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise missing_package(name)
    return Path(spec.submodule_search_locations[0])


def missing_package(name: str) -> DataError:
    """Return the error for a data set whose package is not installed."""
    return DataError(
        f"The data set '{name}' needs a package. Install it: `pip install 'regard[data]'`."
    )


def assign_part(text: str, valid: int, test: int) -> int:
    """Assign a text to a split by its checksum: 0 = training, 1 = validation, 2 = test.

    The split does not depend on the seed or on the number of examples.

    Args:
        text: Text that determines the split.
        valid: Percentage of texts for validation.
        test: Percentage of texts for the test.
    """
    bucket = zlib.crc32(text.encode()) % 100
    return 2 if bucket < test else 1 if bucket < test + valid else 0


def fill_parts(
    samples: Iterator[Sample],
    write: Callable[[Sample], list[Example]],
    wanted: tuple[int, int, int],
    *,
    key: Callable[[Sample], str],
    shares: tuple[int, int] = (8, 8),
) -> Parts:
    """Fill training, validation and test split with samples.

    The size of one split does not change the examples of the others.

    Args:
        samples: Infinite iterator over samples.
        write: Function that returns the examples of a sample.
        wanted: Number of examples per split.
        key: Function that returns the text by which a sample is assigned to a split.
        shares: Percentages of samples for validation and for the test.
    """
    parts: Parts = ([], [], [])
    while any(len(part) < num for part, num in zip(parts, wanted, strict=True)):
        sample = next(samples)
        number = assign_part(key(sample), *shares)
        if len(parts[number]) < wanted[number]:
            parts[number].extend(write(sample))
    for part, num in zip(parts, wanted, strict=True):
        del part[num:]
    return parts


def split_off(examples: list[Example], num: int) -> Parts:
    """Hold out the first `num` examples for validation and the next `num` for the test.

    The held-out examples do not depend on the number of training examples.
    """
    return examples[2 * num :], examples[:num], examples[num : 2 * num]


def build_splits(parts: Iterable[list[Example]], origin: str, more: str = "") -> Splits:
    """Return the splits with a note of their origin and sizes."""
    train, valid, test = parts
    sizes = f"{len(train):,} train, {len(valid):,} valid, {len(test):,} test"
    return Splits(train, valid, test, f"{origin}: {sizes}{more}")
