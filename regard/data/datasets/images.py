"""Built-in data sets of images with labels or captions."""

from collections import Counter
from typing import TypeVar

import numpy as np

from regard.core.errors import DataError
from regard.data.datasets.loading import find_folder, split_off, with_sizes
from regard.data.example import Example
from regard.data.image.builtin import read_collection
from regard.data.splits import Splits, merge_references
from regard.data.text.lines import read_lines

Item = TypeVar("Item")

NUM_VALID = 5_000
"""Training pictures that are held out for validation."""

NUM_DIGITS_HELD_OUT = 250
"""Validation pictures, and test pictures, of the small set of digits."""


def load_images(name: str, argument: str, seed: int) -> Splits:
    """Return labelled pictures with their official test side, some of the others held out.

    Args:
        name: `fashion-mnist`, `mnist` or `cifar10`.
        argument: The number of training pictures, equally many of each label as far as that goes;
            all if empty. Fewer are always among the more.
        seed: What is held out, and which come first.
    """
    train, test = (_examples(name, side) for side in ("train", "test"))
    train = _shuffle(train, seed)
    valid, train = train[:NUM_VALID], train[NUM_VALID:]
    parts = _stratify(train, argument, name), valid, test
    return with_sizes(parts, f"{name}, official test side, validation held out with seed {seed}")


def load_digits(argument: str, seed: int) -> Splits:
    """Return scikit-learn's digits, of which the same number is held out for both purposes."""
    examples = _shuffle(_examples("digits", ""), seed)
    train, valid, test = split_off(examples, NUM_DIGITS_HELD_OUT)
    return with_sizes((_stratify(train, argument, "digits"), valid, test), f"digits, seed {seed}")


def load_flickr8k(argument: str, seed: int) -> Splits:
    """Return the photos of Flickr8k: to learn from with one caption each time, else with all."""
    folder = find_folder("flickr8k", "captions.tsv.gz")
    find_folder("flickr8k", "images_96.zip")
    sides: dict[str, list[Example]] = {"train": [], "dev": [], "test": [], "extra": []}
    for line in read_lines(folder / "captions.tsv.gz"):
        image, _, side, caption = line.split("\t")
        sides[side].append(Example(f"{folder}/images_96.zip/{image}", caption))
    train = sides["train"]
    if argument:
        photos = _shuffle(list(dict.fromkeys(example.source for example in train)), seed)
        chosen = set(photos[: _number(argument, "flickr8k", len(photos))])
        train = [example for example in train if example.source in chosen]
    valid, test = merge_references(sides["dev"]), merge_references(sides["test"])
    return with_sizes((train, valid, test), f"Flickr8k, official split of {folder}")


def _examples(name: str, side: str) -> list[Example]:
    place = f"{name}/{side}".rstrip("/")
    labels = read_collection(name, side).labels
    return [Example(f"{place}/{number}", label) for number, label in enumerate(labels)]


def _shuffle(items: list[Item], seed: int) -> list[Item]:
    return [items[row] for row in np.random.default_rng(seed).permutation(len(items))]


def _stratify(examples: list[Example], argument: str, name: str) -> list[Example]:
    """Take the first of every label, then the second of every label, and so on."""
    if not argument:
        return examples
    num = _number(argument, name, len(examples))
    seen: Counter[str] = Counter()
    rounds: list[int] = []
    for example in examples:
        rounds.append(seen[example.target])
        seen[example.target] += 1
    order = np.argsort(rounds, kind="stable")
    return [examples[row] for row in order[:num]]


def _number(argument: str, name: str, most: int) -> int:
    digits = argument.replace(",", "").replace("_", "")
    number = int(digits) if digits.isdecimal() else 0
    if not 1 <= number <= most:
        raise DataError(
            f"What follows '{name}:' must be the number of training images, from 1 to {most:,}, "
            f"but is '{argument}'."
        )
    return number
