"""What loaders of data sets with a name share: their argument, their folder, their note."""

from pathlib import Path

from regard.core.errors import DataError
from regard.core.tables import near, one_of
from regard.data.datasets.download import local_folder
from regard.data.example import Example
from regard.data.splits import Splits

Parts = tuple[list[Example], list[Example], list[Example]]
"""What is trained on, validated on and tested on."""


def check_argument(argument: str, name: str, *known: str) -> None:
    """Refuse what stands after a data set's name and colon, unless it is known or nothing."""
    if not argument or argument in known:
        return
    if not known:
        raise DataError(f"'{name}' takes nothing after its name, but has ':{argument}'.")
    raise DataError(
        f"What follows '{name}:' must be {one_of(known)}, but is '{argument}'."
        f"{near(argument, known)}"
    )


def find_folder(name: str, first: str) -> Path:
    """Return the folder of a data set that is not downloaded; `first` is a file in it."""
    folder = local_folder(name)
    if not (folder / first).is_file():
        raise DataError(
            f"The data set '{name}' is read from the folder '{name}' in `REGARD_DATA`, but "
            f"{folder / first} does not exist. Set `REGARD_DATA` to the folder that holds it."
        )
    return folder


def with_sizes(parts: Parts, origin: str) -> Splits:
    """Return parts as they are, with a note of their origin and sizes."""
    return Splits(*parts, f"{origin}: {sizes(parts)}")


def sizes(parts: Parts) -> str:
    """Say how many examples the parts have."""
    train, valid, test = map(len, parts)
    return f"{train:,} train, {valid:,} valid, {test:,} test"
