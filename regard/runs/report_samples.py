"""Samples in the report of a run: test examples with their predictions, as texts or images."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regard.data.example import Example
from regard.data.modality import MODALITIES
from regard.data.text.field import as_text
from regard.metrics.vision.regions import parse_box, parse_cells
from regard.plots.figure import to_svg
from regard.plots.grid import COLUMNS, Box, Tile, contact_sheet, sheet
from regard.plots.html import Section, figure, join, paragraph, table
from regard.plots.inputs import Pixels, check_image, label, resize_image
from regard.plots.overlay import segmentation
from regard.tasks.base import Attends, Generates, GeneratesImages, Task
from regard.tasks.evaluation import Evaluation
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import AttentionMap
from regard.tasks.reading import find_modality

MAX_CHARACTERS = 400
"""Maximum length of a sample; longer ones are truncated in tables and have no attention plot."""

MAX_TOKENS = 60
"""Maximum number of tokens of a source or a target in an attention plot."""

AttendedExamples = list[tuple[Example, AttentionMap]]
"""Examples with a prediction as target, and their attention weights."""


def attend_short(task: Task[Any], predicted: Sequence[Example], num: int) -> AttendedExamples:
    """Return the attention weights of the first examples whose plots are not too large.

    Args:
        task: The run; if it has no attention weights, or its sources are of a modality from outside
            the package, the list is empty.
        predicted: Test examples with their predictions as targets.
        num: Maximum number of examples.
    """
    is_known = find_modality(task.recipe.data).name in MODALITIES
    if not isinstance(task, Attends) or not is_known:
        return []
    short = [
        example
        for example in predicted
        if len(as_text(example.source)) + len(example.target) <= 2 * MAX_CHARACTERS
    ][:num]
    attended = zip(short, task.attend(short), strict=True) if short else ()
    return [(example, attention) for example, attention in attended if _is_small(task, attention)]


def _is_small(task: Task[Any], attention: AttentionMap) -> bool:
    if attention.image is not None or attention.recording is not None:
        return True
    num_rows, num_columns = attention.weights.shape[-2:]
    # A generated target without text has only the end token.
    has_text = not isinstance(task, Predictor) or num_rows > 1
    return has_text and max(num_rows, num_columns) <= MAX_TOKENS


def sample_sections(
    task: Task[Any],
    evaluation: Evaluation,
    predicted: Sequence[Example],
    *,
    has_images: bool,
    num: int,
) -> list[Section]:
    """Show the first test examples: as images, as texts, or as continuations of texts.

    Args:
        task: The run.
        evaluation: Its evaluation on the test set.
        predicted: Test examples with their predictions as targets and one reference each.
        has_images: Whether predictions are shown on images: boxes, masks or labels.
        num: Maximum number of examples; a third of them where each takes several images.
    """
    few = predicted[: num // 3]
    if isinstance(task, GeneratesImages):
        return [Section("Samples", _generated_images(task, few))] if few else []
    if has_images:
        attended = attend_short(task, few if task.recipe.task == "segmentation" else predicted, num)
        images = [(example, one.still) for example, one in attended if one.still is not None]
        return [Section("Samples", _image_samples(task, images))]
    if evaluation.outputs:
        return [Section("Samples", _text_samples(evaluation, num))]
    return [Section("Samples", _continuations(task, few))] if isinstance(task, Generates) else []


def shorten(text: str) -> str:
    """Return a text that fits into a cell of a table."""
    return label(text, MAX_CHARACTERS)


def _text_samples(evaluation: Evaluation, num: int) -> Any:
    rows = list(zip(evaluation.sources, evaluation.references, evaluation.outputs, strict=True))
    note = paragraph(f"The first {min(num, len(rows))} examples of the test set, not selected.")
    shown = [[shorten(text) for text in row] for row in rows[:num]]
    return join(note, table(["Source", "Reference", "Output"], shown))


def _continuations(task: Generates[Any], examples: Sequence[Example]) -> Any:
    """Show the first half of the words of each text, and its continuation by the model."""
    prompts = [_first_half(as_text(example.source)) for example in examples]
    outputs = task.translate(prompts)
    rows = [[prompt, shorten(output)] for prompt, output in zip(prompts, outputs, strict=True)]
    note = f"The beginnings of the first {len(rows)} texts of the test set, continued."
    return join(paragraph(note), table(["Text", "Continued"], rows))


def _first_half(text: str) -> str:
    words = text[:MAX_CHARACTERS].split()
    return " ".join(words[: (len(words) + 1) // 2])


def _generated_images(task: GeneratesImages, examples: Sequence[Example]) -> Any:
    rows = [task.image_grid(example.source, example.references[0]) for example in examples]
    tiles = [
        Tile(resize_image(check_image(one.image)), one.caption, one.note)
        for images in rows
        for one in images
    ]
    note = f"The first {len(rows)} images of the test set, one per row, not selected."
    return join(paragraph(note), figure(to_svg(sheet(tiles, columns=len(rows[0])))))


def _image_samples(task: Task[Any], images: Sequence[tuple[Example, Pixels]]) -> Any:
    tiles, columns = _TILES.get(task.recipe.task, _captions)(images)
    note = f"The first {len(images)} images of the test set with a prediction, not selected."
    return join(paragraph(note), figure(to_svg(sheet(tiles, columns=columns))))


def _captions(images: Sequence[tuple[Example, Pixels]]) -> tuple[list[Tile], int]:
    """Return images with their output and reference, below the text of the source if any."""
    tiles = []
    for example, image in images:
        *texts, _ = example.source if isinstance(example.source, tuple) else ("",)
        caption = " → ".join([*texts, example.target])
        note = f"reference: {example.references[0]}"
        tiles.append(Tile(resize_image(check_image(image)), caption, note))
    return tiles, COLUMNS


def _labels(images: Sequence[tuple[Example, Pixels]]) -> tuple[list[Tile], int]:
    """Return images with marks for correct and wrong labels."""
    outputs = [example.target for example, _ in images]
    labels = [example.references[0] for example, _ in images]
    return contact_sheet([image for _, image in images], outputs, labels), COLUMNS


def _boxes(images: Sequence[tuple[Example, Pixels]]) -> tuple[list[Tile], int]:
    """Return images with the predicted and the true box of a phrase."""
    tiles = []
    for example, image in images:
        texts = {"predicted": example.target, "true": example.references[0]}
        boxes = tuple(Box(*parse_box(text), name) for name, text in texts.items())
        caption = as_text(example.source[:1]) if isinstance(example.source, tuple) else ""
        tiles.append(Tile(resize_image(check_image(image)), caption, boxes=boxes))
    return tiles, COLUMNS


def _masks(images: Sequence[tuple[Example, Pixels]]) -> tuple[list[Tile], int]:
    """Return images with their predicted and true labels, one colour per label."""
    names = sorted({letter for one, _ in images for letter in one.target + one.references[0]})
    tiles = []
    for example, image in images:
        cells = [parse_cells(text) for text in (example.target, example.references[0])]
        tiles += segmentation(image, *(np.searchsorted(names, one) for one in cells))
    return tiles, 3


_TILES: dict[str, Callable[[Sequence[tuple[Example, Pixels]]], tuple[list[Tile], int]]] = {
    "classification": _labels,
    "grounding": _boxes,
    "segmentation": _masks,
}
"""Images of test examples and their number per row, by task; captions for all others."""
