"""Rendered scenes of coloured shapes with captions, masks, boxes and questions.

A scene depends on its seed and number only. Its reference is `scenes/SEED/NUMBER`,
`pairs/SEED/NUMBER` for two objects on a grid, or `shapes/SEED/NUMBER` for a single shape. A scene
is assigned to the training, validation or test split by its caption, independently of the seed and
of the number of examples.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from regard.data.datasets.loading import build_splits, fill_parts, parse_argument, parse_reference
from regard.data.datasets.synthetic.scenes import captions, rendering
from regard.data.datasets.synthetic.scenes.objects import (
    Scene,
    sample_pair,
    sample_scene,
    sample_shape,
)
from regard.data.datasets.synthetic.scenes.questions import question_only_accuracy, sample_questions
from regard.data.example import Example
from regard.data.splits import Splits

NUM_TRAIN, NUM_HELD_OUT = 6_000, 500
NUM_CAPTIONED = 48_000
"""Default number of training scenes with captions, which need more examples than labels."""
GRID = 16
"""Number of rows and of columns of the grid of labels of `scenes:regions`."""

KINDS: dict[str, Callable[[int, int], Scene]] = {
    "scenes": sample_scene,
    "pairs": sample_pair,
    "shapes": sample_shape,
}
"""Samplers of scenes by the first part of a reference."""


def find_scene(reference: str) -> Scene:
    """Return the scene of a reference such as `scenes/0/17`."""
    kind, seed, number = parse_reference(reference, KINDS, "A scene")
    return KINDS[kind](seed, number)


def render(reference: str) -> Image.Image:
    """Render the scene of a reference."""
    return Image.fromarray(rendering.render_scene(find_scene(reference)))


def render_numbered(kind: str, arguments: Sequence[str]) -> NDArray[np.uint8]:
    """Render scenes or shapes by the part of their references after the kind, (B, Y, X, 3)."""
    pixels = np.empty((len(arguments), rendering.SIZE, rendering.SIZE, 3), np.uint8)
    for row, argument in enumerate(arguments):
        pixels[row] = rendering.render_scene(find_scene(f"{kind}/{argument}"))
    return pixels


def word_regions(reference: str, *, size: int) -> list[NDArray[np.bool_] | None]:
    """Return the mask of the objects named by each word of a caption; None if it names none.

    Args:
        reference: Reference of the scene.
        size: Number of rows and of columns of a mask.
    """
    scene = find_scene(reference)
    masks = rendering.object_masks(scene, size=size)
    return [
        np.logical_or.reduce(masks[list(word.object_indices)]) if word.object_indices else None
        for word in captions.caption_words(scene)
    ]


def load_scenes(argument: str, seed: int) -> Splits:
    """Generate scenes with captions, labels of regions, boxes of phrases, or questions.

    Args:
        argument: Empty, `regions`, `boxes`, `translation`, `translation-text`, `questions` or
            `pairs`; and a number of training examples, as in `2000` or `regions,2000`.
        seed: Seed of the scenes.
    """
    kind, num_train = parse_argument(argument, "scenes", TARGETS)
    num_train = num_train or (NUM_TRAIN if kind else NUM_CAPTIONED)
    sample = KINDS.get(kind, sample_scene)
    samples = (sample(seed, number) for number in count())
    note = f"scenes of seed {seed}, no caption is shared"
    wanted = (num_train, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(samples, TARGETS[kind], wanted, key=KEYS.get(kind, captions.caption))
    splits = build_splits(parts, note)
    if kind != "questions":
        return splits
    accuracy = question_only_accuracy(splits.train, splits.test)
    note = f"{splits.note}; {accuracy:.1f} % accuracy from the question alone"
    return replace(splits, note=note)


def load_shapes(argument: str, seed: int) -> Splits:
    """Generate images of single shapes with their labels.

    Args:
        argument: Empty for shapes as labels, `colours` for colour and shape; and a number of
            training examples, as in `2000` or `colours,2000`.
        seed: Seed of the images.
    """
    kind, num_train = parse_argument(argument, "shapes", ("", "colours"))

    def label(scene: Scene) -> list[Example]:
        (obj,) = scene.objects
        name = f"{obj.colour} {obj.shape}" if kind else obj.shape
        background = "noisy" if scene.background.noise else "plain"
        return [Example(reference(scene), name, tags=(obj.size, background))]

    reference = partial(_reference, kind="shapes")
    samples = (sample_shape(seed, number) for number in count())
    wanted = (num_train or NUM_TRAIN, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(samples, label, wanted, key=reference)
    return build_splits(parts, f"shapes of seed {seed}, no image is shared")


def _reference(scene: Scene, kind: str = "scenes") -> str:
    return f"{kind}/{scene.seed}/{scene.number}"


def _pair(
    source: Callable[[Scene], Any], target: Callable[[Scene], str]
) -> Callable[[Scene], list[Example]]:
    """Return a function that builds the example of a scene."""
    return lambda scene: [Example(source(scene), target(scene), tags=captions.tags(scene))]


def _box_examples(scene: Scene) -> list[Example]:
    return [
        Example(
            (phrase.text, _reference(scene)),
            captions.format_box(obj.box),
            tags=(f"by {phrase.kind}", obj.size, *captions.tags(scene)),
        )
        for phrase in captions.phrases(scene)
        for obj in (scene.objects[phrase.object_index],)
    ]


def _question_examples(scene: Scene) -> list[Example]:
    return [
        Example((question.text, _reference(scene)), question.answer, tags=(question.kind,))
        for question in sample_questions(scene)
    ]


TARGETS: dict[str, Callable[[Scene], list[Example]]] = {
    "": _pair(_reference, captions.caption),
    "regions": _pair(_reference, partial(rendering.cell_labels, grid=GRID)),
    "boxes": _box_examples,
    "translation": _pair(
        lambda scene: (captions.english_caption(scene), _reference(scene)), captions.german_caption
    ),
    "translation-text": _pair(captions.english_caption, captions.german_caption),
    "questions": _question_examples,
    "pairs": _pair(partial(_reference, kind="pairs"), captions.caption),
}
"""Functions that build the examples of a scene, by the argument of `scenes:`."""

KEYS: dict[str, Callable[[Scene], str]] = {
    "translation": captions.english_caption,
    "translation-text": captions.english_caption,
}
"""Functions that return the text by which a scene is assigned to a split, if not its caption."""
