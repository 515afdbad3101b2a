"""Built-in data sets of images with labels or captions."""

from collections import Counter
from typing import TypeVar

import numpy as np

from regard.core.errors import DataError
from regard.data.datasets.loading import build_splits, find_folder, split_off
from regard.data.example import Example
from regard.data.image.builtin import read_collection
from regard.data.splits import Splits, merge_references
from regard.data.text.lines import read_lines

Item = TypeVar("Item")

NUM_VALID = 5_000
"""Training images held out for validation."""

NUM_DIGITS_HELD_OUT = 250
"""Number of validation images, and of test images, of `digits`."""


def load_images(name: str, argument: str, seed: int) -> Splits:
    """Load labelled images with their official test split; some training images are held out.

    Args:
        name: `fashion-mnist`, `mnist` or `cifar10`.
        argument: Number of training images, balanced over labels as far as possible; all if
            empty. A smaller number selects a subset of a larger one.
        seed: Seed of the validation split and of the order.
    """
    train, test = (_examples(name, split) for split in ("train", "test"))
    train = _shuffle(train, seed)
    valid, train = train[:NUM_VALID], train[NUM_VALID:]
    parts = _stratify(train, argument, name), valid, test
    return build_splits(parts, f"{name}, official test split, validation held out with seed {seed}")


def load_digits(argument: str, seed: int) -> Splits:
    """Load the digits of scikit-learn, with equally many validation and test images."""
    examples = _shuffle(_examples("digits", ""), seed)
    train, valid, test = split_off(examples, NUM_DIGITS_HELD_OUT)
    return build_splits((_stratify(train, argument, "digits"), valid, test), f"digits, seed {seed}")


def load_flickr8k(argument: str, seed: int) -> Splits:
    """Load Flickr8k: one training example per caption, one held-out example per photo."""
    folder = find_folder("flickr8k", "captions.tsv.gz", "images_96.zip")
    splits: dict[str, list[Example]] = {"train": [], "dev": [], "test": [], "extra": []}
    for line in read_lines(folder / "captions.tsv.gz"):
        image, _, split, caption = line.split("\t")
        splits[split].append(Example(f"{folder}/images_96.zip/{image}", caption))
    train = splits["train"]
    if argument:
        photos = _shuffle(list(dict.fromkeys(example.source for example in train)), seed)
        chosen = set(photos[: _number(argument, "flickr8k", len(photos))])
        train = [example for example in train if example.source in chosen]
    valid, test = merge_references(splits["dev"]), merge_references(splits["test"])
    return build_splits((train, valid, test), f"Flickr8k, official split of {folder}")


def _examples(name: str, split: str) -> list[Example]:
    prefix = f"{name}/{split}".rstrip("/")
    labels = read_collection(name, split).labels
    return [Example(f"{prefix}/{number}", label) for number, label in enumerate(labels)]


def _shuffle(items: list[Item], seed: int) -> list[Item]:
    return [items[row] for row in np.random.default_rng(seed).permutation(len(items))]


def _stratify(examples: list[Example], argument: str, name: str) -> list[Example]:
    """Return a subset balanced over labels: the first of each label, then the second, and so on."""
    if not argument:
        return examples
    num = _number(argument, name, len(examples))
    counts: Counter[str] = Counter()
    ranks: list[int] = []
    for example in examples:
        ranks.append(counts[example.target])
        counts[example.target] += 1
    order = np.argsort(ranks, kind="stable")
    return [examples[row] for row in order[:num]]


def _number(argument: str, name: str, maximum: int) -> int:
    digits = argument.replace(",", "").replace("_", "")
    number = int(digits) if digits.isdecimal() else 0
    if not 1 <= number <= maximum:
        raise DataError(
            f"The argument of '{name}:' must be the number of training images, from 1 to "
            f"{maximum:,}, but is '{argument}'."
        )
    return number
