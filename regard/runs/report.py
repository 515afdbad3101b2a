"""A run as one page: how good it is, how it learned, what it writes and where it looks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.core.files import read_json, read_json_lines, write_text
from regard.data.example import Example
from regard.interpret.probe_report import representation_sections
from regard.interpret.visualize import attention_svg
from regard.metrics.result import Group
from regard.plots import curves
from regard.plots.figure import to_svg
from regard.plots.grid import Tile, sheet
from regard.plots.html import Section, cards, facts, figure, join, paragraph, report, table
from regard.plots.inputs import check_image, resize_image
from regard.runs.folder import JOURNAL, METRICS, REPORT
from regard.tasks.evaluation import Evaluation
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import AttentionMap

MOST_ERRORS = 15
"""Kinds of errors that are shown."""

NOTHING = "∅"

Looked = list[tuple[Example, AttentionMap]]
"""The first examples that have an answer, with it, and where the model looked for it."""

_BETWEEN_WORDS = (
    "Each row is a piece of the output, each column a piece of the source; the darker, the "
    "more the model looked there while it wrote."
)
_OVER_IMAGES = (
    "Above each piece of the output stands the image; the brighter, the more the model looked "
    "there while it wrote. Each piece has a scale of its own, which ends at its greatest weight."
)

_OVER_SOUND = (
    "Each picture shows the sound's frequencies over time, with the stretches where each piece of "
    "the output is heard; below them, the weights these are taken from."
)
_NOTES = {"sentences": _BETWEEN_WORDS, "images": _OVER_IMAGES, "recordings": _OVER_SOUND}
"""What is said of maps over each kind of source."""


def write_report(
    folder: Path,
    predictor: Predictor,
    evaluation: Evaluation,
    *,
    title: str,
    num_samples: int = 12,
    num_maps: int = 4,
) -> Path:
    """Write `report.html` into a run folder, and return its path.

    Args:
        folder: The run folder, with its metrics and journal.
        predictor: The model of the run.
        evaluation: What was measured on its test set.
        title: The heading of the page.
        num_samples: Sources shown with their answers: the first of the test set.
        num_maps: How many of them are shown with their attention.
    """
    metrics = read_json(folder / METRICS)
    journal = read_json_lines(folder / JOURNAL)
    metric = predictor.recipe.validation.metric
    looked = _look(predictor, evaluation, num_maps)
    has_images = any(found.image is not None for _, found in looked)
    has_sound = any(found.recording is not None for _, found in looked)
    sources = "images" if has_images else "recordings" if has_sound else "sentences"
    sections = [
        Section("", _summary(metrics, evaluation, sources)),
        Section("Learning", figure(to_svg(curves.loss_curve(journal, score=metric)))),
        Section(
            "Samples",
            _image_samples(_look(predictor, evaluation, num_samples))
            if has_images
            else _samples(evaluation, num_samples),
        ),
        *_maps(looked, _NOTES[sources]),
        *_groups("by source length", evaluation.by_length),
        *_groups("by phenomenon", evaluation.by_tag),
        *_errors(evaluation),
        *representation_sections(predictor, evaluation.sources),
        Section("How it was made", _making(metrics, evaluation)),
    ]
    path = folder / REPORT
    write_text(path, str(report(title, sections)))
    return path


def _summary(metrics: dict[str, Any], evaluation: Evaluation, sources: str) -> Any:
    training = metrics["training"]
    values = {result.name: f"{result.value:.4g}" for result in evaluation.results.values()}
    values["parameters"] = f"{metrics['parameters']:,}"
    values["training"] = f"{training['seconds']:.0f} s"
    values["target tokens/s"] = f"{training['tokens_per_second']:,.0f}"
    values[f"test {sources}"] = f"{len(evaluation.outputs):,}"
    return cards(values)


def _samples(evaluation: Evaluation, num: int) -> Any:
    rows = list(zip(evaluation.sources, evaluation.references, evaluation.outputs, strict=True))
    note = paragraph(f"The first {min(num, len(rows))} sentences of the test set, unpicked.")
    return join(note, table(["Source", "Reference", "Output"], rows[:num]))


def _image_samples(looked: Looked) -> Any:
    tiles = [
        Tile(resize_image(check_image(found.still)), pair.target, f"right: {pair.references[0]}")
        for pair, found in looked
        if found.still is not None
    ]
    note = f"The first {len(tiles)} images of the test set that were answered, unpicked."
    return join(paragraph(note), figure(to_svg(sheet(tiles))))


def _look(predictor: Predictor, evaluation: Evaluation, num: int) -> Looked:
    texts = zip(evaluation.sources, evaluation.outputs, evaluation.references, strict=True)
    answered = [
        Example(source, output, references=(reference,))
        for source, output, reference in texts
        if output
    ][:num]
    return list(zip(answered, predictor.attend(answered), strict=True))


def _maps(looked: Looked, note: str) -> list[Section]:
    figures = [
        figure(attention_svg(found), f"{pair.source} → {pair.target}")
        for pair, found in looked
        if found.weights.shape[0]
    ]
    return [Section("Attention", join(paragraph(note), *figures))] if figures else []


def _groups(title: str, groups: Sequence[Group]) -> list[Section]:
    if not groups:
        return []
    shown = [next(iter(group.results.values())) for group in groups]
    values = {
        f"{group.name} ({group.count:,})": result.value
        for group, result in zip(groups, shown, strict=True)
    }
    name = shown[0].name
    return [Section(f"{name} {title}", figure(to_svg(curves.bars(values, x_label=name))))]


def _errors(evaluation: Evaluation) -> list[Section]:
    if not evaluation.edits:
        return []
    rows = [
        (edit.right or NOTHING, edit.written or NOTHING, edit.count)
        for edit in evaluation.edits[:MOST_ERRORS]
    ]
    return [Section("Most frequent errors", table(["Right", "Written", "Times"], rows))]


def _making(metrics: dict[str, Any], evaluation: Evaluation) -> Any:
    names = ("command", "commit", "hardware", "seed", "regard", "torch")
    values: dict[str, object] = {name: metrics[name] for name in names if metrics[name] != ""}
    for result in evaluation.results.values():
        values[result.name] = result.signature
    return facts(values)
