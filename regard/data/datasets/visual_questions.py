"""easy-VQA: short questions about small images of one shape each (Zhou 2019)."""

import json
import random
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.loading import build_splits, check_argument, find_package
from regard.data.datasets.synthetic.scenes.questions import question_only_accuracy
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.lines import read_bytes

NUM_VALID_IMAGES = 400
"""Training images whose questions are held out for validation."""

COLOURS = frozenset(("black", "blue", "brown", "gray", "green", "red", "teal", "yellow"))
SHAPES = frozenset(("circle", "rectangle", "triangle"))


def load_easy_vqa(argument: str, seed: int) -> Splits:
    """Load the questions in their official split; a source is a question and an image.

    Some training images with all their questions are held out for validation. A question is
    tagged with the attribute it asks for, and with `negated` if it contains a negation.
    """
    check_argument(argument, "easy-vqa")
    folder = find_package("easy-vqa", "easy_vqa") / "data"
    official_train, test = (_read_split(folder, split) for split in ("train", "test"))
    images = list(dict.fromkeys(example.source[1] for example in official_train))
    random.Random(seed).shuffle(images)
    held_out = set(images[:NUM_VALID_IMAGES])
    train = [example for example in official_train if example.source[1] not in held_out]
    valid = [example for example in official_train if example.source[1] in held_out]
    accuracy = question_only_accuracy(train, test)
    return build_splits(
        (train, valid, test),
        f"easy-VQA, official test set, validation held out by image with seed {seed}, "
        f"{accuracy:.1f} % accuracy from the question alone",
    )


def _read_split(folder: Path, split: str) -> list[Example]:
    path = folder / split / "questions.json"
    try:
        rows = json.loads(read_bytes(path))
        return [
            Example(
                (text, f"{folder / split}/images/{int(number)}.png"),
                answer,
                tags=_tags(text, answer),
            )
            for text, answer, number in rows
        ]
    except (ValueError, TypeError):
        raise DataError(
            f"{path} must be a list of questions, each with an answer and the number of its "
            "image, but is not. Install the package `easy-vqa` again."
        ) from None


def _tags(text: str, answer: str) -> tuple[str, ...]:
    if answer in COLOURS:
        return ("colour",)
    if answer in SHAPES:
        return ("shape",)
    return ("yes or no", "negated") if " not " in f" {text} " or " no " in text else ("yes or no",)
