"""Numbered images of built-in data sets, which are not stored one per file."""

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
from regard.data.datasets.loading import find_package, missing_files
from regard.data.image.pillow import open_with_pillow
from regard.data.media import split_numbered
from regard.data.text.lines import read_bytes, read_lines

Pixels = NDArray[np.uint8]

ImageLoader = Callable[[Sequence[str]], Pixels]
"""Function from arguments such as `train/17` to pixels (B, Y, X, C)."""

FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")
"""Folder of the Debian package `dataset-fashion-mnist`."""

CLOTHES = tuple(
    "T-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,ankle boot".split(",")
)
THINGS = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
DIGITS = tuple("0123456789")

IDX_FILES = tuple(
    f"{part}-{content}-ubyte"
    for part in ("train", "t10k")
    for content in ("images-idx3", "labels-idx1")
)
"""Files of MNIST and Fashion-MNIST, without `.gz`."""


@dataclass(frozen=True)
class Collection:
    """Images of one size with their labels."""

    pixels: Pixels
    """(B, Y, X, C)."""
    labels: tuple[str, ...]
    """Label of each image."""


def split_reference(reference: str) -> tuple[str, str] | None:
    """Return name and argument of a numbered image; None for other references."""
    return split_numbered(reference, NUMBERED_IMAGES)


def to_image(pixels: Pixels) -> Image.Image:
    """Convert pixels (Y, X, C) to a Pillow image."""
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def read_collection(name: str, part: str) -> Collection:
    """Return all images of one part of a data set, read once.

    Args:
        name: One of `COLLECTIONS`.
        part: `train` or `test`, or empty if the data set has no parts.
    """
    parts, read = COLLECTIONS[name]
    if part not in parts:
        raise DataError(
            f"The images of '{name}' are called {one_of(f'{name}/{p}/0' for p in parts)} and so "
            f"on, but one is called '{name}/{part}/…'.{did_you_mean(part, parts)}"
        )
    return read(part)


def load_images(name: str, arguments: Sequence[str]) -> Pixels:
    """Return some images of a data set, (B, Y, X, C)."""
    splits = [argument.rpartition("/") for argument in arguments]
    parts = {
        part: read_collection(name, part).pixels for part in dict.fromkeys(s[0] for s in splits)
    }
    images: list[Pixels] = []
    for part, _, number in splits:
        if int(number) >= len(parts[part]):
            raise DataError(
                f"There is no image {int(number):,} in '{name}': they are numbered from 0 to "
                f"{len(parts[part]) - 1:,}."
            )
        images.append(parts[part][int(number)])
    return np.stack(images)


def _read_fashion_mnist(part: str) -> Collection:
    for folder in (local_folder("fashion-mnist"), FASHION_FOLDER):
        if _find_idx(folder, "train-images-idx3-ubyte") is not None:
            return _read_mnist_like(folder, part, CLOTHES)
    raise missing_files("fashion-mnist", *(f"fashion-mnist/{name}.gz" for name in IDX_FILES))


def _read_mnist(part: str) -> Collection:
    if _find_idx(folder := local_folder("mnist"), "train-images-idx3-ubyte") is None:
        raise missing_files("mnist", *(f"mnist/{name}.gz" for name in IDX_FILES))
    return _read_mnist_like(folder, part, DIGITS)


@lru_cache(maxsize=4)
def _read_mnist_like(folder: Path, part: str, names: tuple[str, ...]) -> Collection:
    prefix = {"train": "train", "test": "t10k"}[part]
    images = _read_idx(folder, f"{prefix}-images-idx3-ubyte", num_axes=3)
    labels = _read_idx(folder, f"{prefix}-labels-idx1-ubyte", num_axes=1)
    return _label(images[..., None], labels, names, folder=folder)


def _find_idx(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / f"{name}.gz", folder / name) if p.is_file()), None)


def _read_idx(folder: Path, name: str, *, num_axes: int) -> Pixels:
    """Read an idx file (LeCun et al. 1998): two zeros, type, number of axes, sizes, values."""
    path = _find_idx(folder, name) or folder / f"{name}.gz"
    data = read_bytes(path)
    start = 4 + 4 * num_axes
    shape = np.frombuffer(data[4:start], ">u4").tolist()
    if data[:4] != bytes((0, 0, 8, num_axes)) or len(data) != start + np.prod(shape):
        raise DataError(f"{path} is not a whole idx file of {num_axes} axes. Fetch it again.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _read_cifar10(part: str) -> Collection:
    folder = local_folder("cifar10")
    batches = tuple(f"data_batch_{number}" for number in range(1, 6))
    names = batches if part == "train" else ("test_batch",)
    if (folder / "test_batch.bin").is_file():
        return _read_cifar_binary(folder, names)
    if not (folder / "test_batch.png").is_file():
        raise missing_files("cifar10", "cifar10/test_batch.bin or cifar10/test_batch.png")
    return _read_cifar_sprites(folder, names, f"{part}_lables.json")


@lru_cache(maxsize=2)
def _read_cifar_binary(folder: Path, names: tuple[str, ...]) -> Collection:
    """Read rows of a label and 32 × 32 values of red, green and blue (Krizhevsky 2009)."""
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
    """Read large images in which every row of pixels is one image."""
    rows: list[Pixels] = []
    for path in (folder / f"{name}.png" for name in names):
        try:
            with open_with_pillow(path) as image:
                rows.append(np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3))
        except (OSError, SyntaxError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}.") from None
    numbers = np.array(json.loads(read_bytes(folder / labels)), np.uint8)
    return _label(np.concatenate(rows), numbers, THINGS, folder=folder)


@lru_cache(maxsize=1)
def _read_digits(part: str) -> Collection:
    """Read the 1,797 digits of scikit-learn, 8 × 8 pixels with 17 grey levels."""
    folder = find_package("digits", "sklearn") / "datasets" / "data"
    lines = read_lines(folder / "digits.csv.gz")
    table = np.array([line.split(",") for line in lines if line], np.float64)
    pixels = (table[:, :-1] * (255 / 16)).round().astype(np.uint8).reshape(-1, 8, 8, 1)
    return _label(pixels, table[:, -1].astype(np.uint8), DIGITS, folder=folder)


def _label(pixels: Pixels, numbers: Pixels, names: tuple[str, ...], *, folder: Path) -> Collection:
    if len(pixels) != len(numbers) or numbers.max(initial=0) >= len(names):
        raise DataError(
            f"{folder} holds {len(pixels):,} images and {len(numbers):,} labels up to "
            f"{numbers.max(initial=0)}, but must hold a label below {len(names)} for each."
        )
    return Collection(pixels, tuple(names[number] for number in numbers))


SCENES = "regard.data.datasets.synthetic.scenes"
RENDERED = ("scenes", "pairs", "shapes")
"""Data sets whose images are rendered; their module is imported on first use."""

COLLECTIONS: dict[str, tuple[tuple[str, ...], Callable[[str], Collection]]] = {
    "fashion-mnist": (("train", "test"), _read_fashion_mnist),
    "mnist": (("train", "test"), _read_mnist),
    "cifar10": (("train", "test"), _read_cifar10),
    "digits": (("",), _read_digits),
}
"""Parts and readers of the data sets that are read completely."""

NUMBERED_IMAGES: dict[str, ImageLoader] = {
    **{name: partial(load_images, name) for name in COLLECTIONS},
    **{kind: partial(on_demand(f"{SCENES}:render_numbered"), kind) for kind in RENDERED},
}
"""Functions that load or render numbered images, by the prefix of their references."""
