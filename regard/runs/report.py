"""HTML report of a run: scores, training curves, samples, attention weights and errors."""

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
from regard.runs.folder import METRICS, REPORT, TRAINING_LOG
from regard.tasks.evaluation import Evaluation
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import AttentionMap

MAX_ERRORS = 15
"""Maximum number of rows in the table of errors."""

EMPTY = "∅"
"""Missing side of an insertion or a deletion."""

AttendedExamples = list[tuple[Example, AttentionMap]]
"""Examples with a prediction as target, and their attention weights."""

_TEXT_NOTE = (
    "Attention weights. Each row is a token of the output, each column a token of the source; "
    "darker cells have larger weights."
)
_IMAGE_NOTE = (
    "Attention weights over the image for each token of the output; brighter regions have larger "
    "weights. Each token has its own scale, which ends at its largest weight."
)

_AUDIO_NOTE = (
    "Each plot shows the frequencies of the recording over time, with the segment that is aligned "
    "to each token of the output; below, the weights from which the segments are computed."
)
_NOTES = {"sentences": _TEXT_NOTE, "images": _IMAGE_NOTE, "recordings": _AUDIO_NOTE}
"""Explanation of attention plots by kind of source."""


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
        folder: The run folder, with its metrics and training log.
        predictor: The model of the run.
        evaluation: Evaluation on the test set.
        title: Heading of the page.
        num_samples: Number of test examples shown with their predictions, from the first on.
        num_maps: Number of test examples shown with their attention weights.
    """
    metrics = read_json(folder / METRICS)
    log = read_json_lines(folder / TRAINING_LOG)
    metric = predictor.recipe.validation.metric
    attended = _attend(predictor, evaluation, num_maps)
    has_images = any(attention.image is not None for _, attention in attended)
    has_audio = any(attention.recording is not None for _, attention in attended)
    sources = "images" if has_images else "recordings" if has_audio else "sentences"
    sections = [
        Section("", _summary(metrics, evaluation, sources)),
        Section("Training curves", figure(to_svg(curves.loss_curve(log, score=metric)))),
        Section(
            "Samples",
            _image_samples(_attend(predictor, evaluation, num_samples))
            if has_images
            else _samples(evaluation, num_samples),
        ),
        *_maps(attended, _NOTES[sources]),
        *_groups("by source length", evaluation.by_length),
        *_groups("by phenomenon", evaluation.by_tag),
        *_errors(evaluation),
        *representation_sections(predictor, evaluation.sources),
        Section("Provenance", _provenance(metrics, evaluation)),
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
    note = paragraph(f"The first {min(num, len(rows))} examples of the test set, not selected.")
    return join(note, table(["Source", "Reference", "Output"], rows[:num]))


def _image_samples(attended: AttendedExamples) -> Any:
    tiles = [
        Tile(
            resize_image(check_image(attention.still)),
            example.target,
            f"reference: {example.references[0]}",
        )
        for example, attention in attended
        if attention.still is not None
    ]
    note = f"The first {len(tiles)} images of the test set with a prediction, not selected."
    return join(paragraph(note), figure(to_svg(sheet(tiles))))


def _attend(predictor: Predictor, evaluation: Evaluation, num: int) -> AttendedExamples:
    texts = zip(evaluation.sources, evaluation.outputs, evaluation.references, strict=True)
    examples = [
        Example(source, output, references=(reference,))
        for source, output, reference in texts
        if output
    ][:num]
    return list(zip(examples, predictor.attend(examples), strict=True))


def _maps(attended: AttendedExamples, note: str) -> list[Section]:
    figures = [
        figure(attention_svg(attention), f"{example.source} → {example.target}")
        for example, attention in attended
        if attention.weights.shape[0]
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
        (edit.right or EMPTY, edit.written or EMPTY, edit.count)
        for edit in evaluation.edits[:MAX_ERRORS]
    ]
    return [Section("Most frequent errors", table(["Reference", "Output", "Count"], rows))]


def _provenance(metrics: dict[str, Any], evaluation: Evaluation) -> Any:
    names = ("command", "commit", "hardware", "seed", "regard", "torch")
    values: dict[str, object] = {name: metrics[name] for name in names if metrics[name] != ""}
    for result in evaluation.results.values():
        values[result.name] = result.signature
    return facts(values)
