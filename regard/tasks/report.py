"""A run as one page: how good it is, how it learned, what it writes and where it looks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.core.files import read_json, read_json_lines, write_text
from regard.data.examples import Example
from regard.metrics.grouping import Group
from regard.tasks import runs
from regard.tasks.evaluation import Evaluation
from regard.tasks.predictor import Predictor
from regard.visual import curves, heatmap
from regard.visual.picture import to_svg
from regard.visual.report import Section, cards, facts, figure, join, paragraph, report, table

MOST_ERRORS = 15
"""Kinds of errors that are shown."""

NOTHING = "∅"


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
        num_samples: Sentences shown with their translations: the first of the test set.
        num_maps: How many of them are shown with their attention.
    """
    metrics = read_json(folder / runs.METRICS)
    journal = read_json_lines(folder / runs.JOURNAL)
    metric = predictor.recipe.validation.metric
    sections = [
        Section("", _summary(metrics, evaluation)),
        Section("Learning", figure(to_svg(curves.loss_curve(journal, score=metric)))),
        Section("Samples", _samples(evaluation, num_samples)),
        *_maps(predictor, evaluation, num_maps),
        *_groups("by source length", evaluation.by_length),
        *_groups("by phenomenon", evaluation.by_tag),
        *_errors(evaluation),
        Section("How it was made", _making(metrics, evaluation)),
    ]
    path = folder / runs.REPORT
    write_text(path, str(report(title, sections)))
    return path


def _summary(metrics: dict[str, Any], evaluation: Evaluation) -> Any:
    training = metrics["training"]
    values = {result.name: f"{result.value:.4g}" for result in evaluation.results.values()}
    values["parameters"] = f"{metrics['parameters']:,}"
    values["training"] = f"{training['seconds']:.0f} s"
    values["target tokens/s"] = f"{training['tokens_per_second']:,.0f}"
    values["test sentences"] = f"{len(evaluation.outputs):,}"
    return cards(values)


def _samples(evaluation: Evaluation, num: int) -> Any:
    rows = list(zip(evaluation.sources, evaluation.references, evaluation.outputs, strict=True))
    note = paragraph(f"The first {min(num, len(rows))} sentences of the test set, unpicked.")
    return join(note, table(["Source", "Reference", "Output"], rows[:num]))


def _maps(predictor: Predictor, evaluation: Evaluation, num: int) -> list[Section]:
    pairs = [
        Example(source, output)
        for source, output in zip(evaluation.sources, evaluation.outputs, strict=True)
        if output
    ]
    found = predictor.attend(pairs[:num])
    figures = [
        figure(
            heatmap.svg(one.mean().numpy(), *one.labels),
            f"{pair.source} → {pair.target}",
        )
        for pair, one in zip(pairs, found, strict=False)
        if one.weights.shape[0]
    ]
    if not figures:
        return []
    note = paragraph(
        "Each row is a piece of the output, each column a piece of the source; the darker, the "
        "more the model looked there while it wrote."
    )
    return [Section("Attention", join(note, *figures))]


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
