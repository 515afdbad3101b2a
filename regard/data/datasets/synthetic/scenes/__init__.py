"""Rendered scenes of coloured shapes: images whose every pixel is known.

They need no download. A scene depends on its seed and its number alone; its
reference is `scenes/SEED/NUMBER`, and that of a single shape `shapes/SEED/NUMBER`. A scene belongs
to the training, the validation or the test part by what is said of it, so that no seed and no size
ever moves it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from regard.data.datasets.loading import fill_parts, parse_argument, parse_reference, with_sizes
from regard.data.datasets.synthetic.scenes import captions, rendering
from regard.data.datasets.synthetic.scenes.questions import guess_by_question, questions
from regard.data.datasets.synthetic.scenes.things import Scene, scene, shape_scene
from regard.data.example import Example
from regard.data.splits import Splits

NUM_TRAIN, NUM_HELD_OUT = 6_000, 500
NUM_CAPTIONED = 48_000
"""Whole captions take more of them than labels and boxes."""
GRID = 16
"""Rows, and columns, of the cells that `scenes:regions` has labels for."""

KINDS: dict[str, Callable[[int, int], Scene]] = {"scenes": scene, "shapes": shape_scene}
"""What can be rendered, by the first word of a reference."""


def find_scene(reference: str) -> Scene:
    """Return the scene of a reference such as `scenes/0/17`."""
    kind, seed, number = parse_reference(reference, KINDS, "A scene")
    return KINDS[kind](seed, number)


def render(reference: str) -> Image.Image:
    """Render the scene of a reference."""
    return Image.fromarray(rendering.render_scene(find_scene(reference)))


def render_numbered(kind: str, arguments: Sequence[str]) -> NDArray[np.uint8]:
    """Render scenes or shapes by what follows the first word of their references, (B, Y, X, 3)."""
    pixels = np.empty((len(arguments), rendering.SIZE, rendering.SIZE, 3), np.uint8)
    for row, argument in enumerate(arguments):
        pixels[row] = rendering.render_scene(find_scene(f"{kind}/{argument}"))
    return pixels


def word_regions(reference: str, *, size: int) -> list[NDArray[np.bool_] | None]:
    """Return where the things are that each word of a scene's caption names; None for no thing.

    Args:
        reference: The scene.
        size: Rows, and columns, of each region.
    """
    found = find_scene(reference)
    masks = rendering.thing_masks(found, size=size)
    return [
        np.logical_or.reduce(masks[list(word.things)]) if word.things else None
        for word in captions.caption_words(found)
    ]


def load_scenes(argument: str, seed: int) -> Splits:
    """Return scenes with captions, labels of their regions, boxes of phrases, or questions.

    Args:
        argument: Nothing, `regions`, `boxes`, `translation`, `translation-text` or `questions`;
            and a number of training examples, as in `2000` or `regions,2000`.
        seed: Other scenes.
    """
    kind, num_train = parse_argument(argument, "scenes", TARGETS)
    num_train = num_train or (NUM_TRAIN if kind else NUM_CAPTIONED)
    samples = (scene(seed, number) for number in count())
    note = f"scenes of seed {seed}, no caption is shared"
    wanted = (num_train, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(samples, TARGETS[kind], wanted, key=KEYS.get(kind, captions.caption))
    splits = with_sizes(parts, note)
    if kind != "questions":
        return splits
    guessed = guess_by_question(splits.train, splits.test)
    note = f"{splits.note}; {guessed:.1f} % guessed right by the question alone"
    return replace(splits, note=note)


def load_shapes(argument: str, seed: int) -> Splits:
    """Return pictures of single shapes with their labels.

    Args:
        argument: Nothing for shapes as labels, `colours` for colour and shape; and a number of
            training examples, as in `2000` or `colours,2000`.
        seed: Other pictures.
    """
    kind, num_train = parse_argument(argument, "shapes", ("", "colours"))

    def label(found: Scene) -> list[Example]:
        (thing,) = found.things
        name = f"{thing.colour} {thing.shape}" if kind else thing.shape
        look = "noisy" if found.background.noise else "plain"
        return [Example(reference(found), name, tags=(thing.size, look))]

    reference = partial(_reference, kind="shapes")
    samples = (shape_scene(seed, number) for number in count())
    wanted = (num_train or NUM_TRAIN, NUM_HELD_OUT, NUM_HELD_OUT)
    parts = fill_parts(samples, label, wanted, key=reference)
    return with_sizes(parts, f"shapes of seed {seed}, no picture is shared")


def _reference(found: Scene, kind: str = "scenes") -> str:
    return f"{kind}/{found.seed}/{found.number}"


def _pair(
    source: Callable[[Scene], Any], target: Callable[[Scene], str]
) -> Callable[[Scene], list[Example]]:
    """Return what writes one example of a scene."""
    return lambda found: [Example(source(found), target(found), tags=captions.tags(found))]


def _boxed(found: Scene) -> list[Example]:
    return [
        Example(
            (phrase.text, _reference(found)),
            captions.format_box(found.things[phrase.thing].box),
            tags=(f"by {phrase.kind}", found.things[phrase.thing].size, *captions.tags(found)),
        )
        for phrase in captions.phrases(found)
    ]


def _asked(found: Scene) -> list[Example]:
    return [
        Example((question.text, _reference(found)), question.answer, tags=(question.kind,))
        for question in questions(found)
    ]


TARGETS: dict[str, Callable[[Scene], list[Example]]] = {
    "": _pair(_reference, captions.caption),
    "regions": _pair(_reference, partial(rendering.cell_labels, grid=GRID)),
    "boxes": _boxed,
    "translation": _pair(
        lambda found: (captions.english_caption(found), _reference(found)), captions.german_caption
    ),
    "translation-text": _pair(captions.english_caption, captions.german_caption),
    "questions": _asked,
}
"""What a scene's examples are, by what stands after `scenes:`."""

KEYS: dict[str, Callable[[Scene], str]] = {
    "translation": captions.english_caption,
    "translation-text": captions.english_caption,
}
"""What decides to which part a scene belongs, where it is not its caption."""
