"""HTML report of a run: scores, training curves, samples, attention weights and errors."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.core.checksums import check_file, write_listed_text
from regard.core.errors import CheckpointError
from regard.core.files import read_record
from regard.data.example import Example
from regard.data.text.field import as_text
from regard.interpret.probe_report import representation_sections
from regard.metrics.result import Group
from regard.plots import curves
from regard.plots.figure import to_svg
from regard.plots.heatmap import matrices
from regard.plots.html import Section, cards, facts, figure, join, paragraph, report, table
from regard.plots.inputs import label
from regard.runs.folder import (
    METRICS,
    PREDICTIONS,
    REPORT,
    TRAINING_LOG,
    read_metrics,
    read_test_set,
)
from regard.runs.report_samples import (
    AttendedExamples,
    attend_short,
    sample_sections,
    shorten,
)
from regard.runs.saved.config import read_config
from regard.tasks.attention_plots import attention_svg
from regard.tasks.base import Generates, Task
from regard.tasks.evaluation import Evaluation
from regard.tasks.prediction import AttentionMap
from regard.training.loggers.display import spell_metric
from regard.training.logs import read_log

MAX_ERRORS = 15
"""Maximum number of rows in the table of errors."""

MAX_LABELS = 40
"""Maximum number of labels in the plot of the confusion matrix."""

MAX_RESAMPLED = 200
"""Number of test examples that are evaluated again if the saved predictions have no sources."""

EMPTY = "∅"
"""Missing side of an insertion or a deletion."""

_TEXT_NOTE = (
    "Attention weights. Each row is a token of the output, each column a token of the source; "
    "darker cells have larger weights."
)
_SELF_NOTE = (
    "Self-attention weights, averaged over layers and heads. Each row is a token, each column a "
    "token that it attends to; darker cells have larger weights."
)
_IMAGE_NOTE = (
    "Attention weights over the image for each token or label of the output; brighter regions have "
    "larger weights. Each plot has its own scale, which ends at its largest weight."
)
_AUDIO_NOTE = (
    "Each plot shows the frequencies of the recording over time, with the segment that is aligned "
    "to each token of the output; below, the weights from which the segments are computed."
)
_AUDIO_LABEL_NOTE = (
    "Each plot shows the frequencies of the recording over time; below, the weight of each moment "
    "for the label."
)


def write_report(
    folder: Path,
    task: Task[Any],
    evaluation: Evaluation,
    *,
    examples: Sequence[Example],
    path: Path | None = None,
    num_samples: int = 12,
    num_maps: int = 4,
) -> Path:
    """Write the report of a run as one HTML page, and return its path.

    Args:
        folder: The run folder, with its metrics and training log.
        task: The model of the run.
        evaluation: Evaluation on the test set.
        examples: The test set.
        path: The file to write; `report.html` in the run folder if not given.
        num_samples: Number of test examples shown with their predictions, from the first on.
        num_maps: Number of test examples shown with their attention weights.
    """
    metrics = read_metrics(folder)
    predicted = _with_predictions(examples, evaluation)
    attended = attend_short(task, predicted, num_maps)
    has_images = any(attention.still is not None for _, attention in attended)
    sections = [
        Section("", _summary(metrics, evaluation, task=task, attended=attended)),
        *_training_curves(folder, task),
        *sample_sections(task, evaluation, predicted, has_images=has_images, num=num_samples),
        *_maps(attended),
        *_groups("by source length", evaluation.by_length),
        *_groups("by phenomenon", evaluation.by_tag),
        *_confusion(evaluation),
        *_errors(evaluation),
        *representation_sections(task, [as_text(example.source) for example in examples]),
        Section("Provenance", _provenance(metrics, evaluation)),
    ]
    path = path or folder / REPORT
    write_listed_text(path, str(report(_title(folder), sections)))
    return path


def read_evaluation(folder: Path, task: Task[Any]) -> tuple[Evaluation, list[Example]]:
    """Read the evaluation of a finished run from its folder, with the test set.

    Args:
        folder: The run folder.
        task: The run itself.
    """
    if not (folder / METRICS).exists():
        raise CheckpointError(
            f"{folder} has no {METRICS}: it was not trained to the end here. Resume training "
            "(`regard train … --resume`)."
        )
    examples = read_test_set(folder)
    for name in (METRICS, PREDICTIONS):
        check_file(folder / name)
    outputs = read_record(folder / PREDICTIONS, list[str])
    sources = [as_text(example.source) for example in examples]
    references = [example.target for example in examples]
    if len(outputs) != len(examples):
        # Texts with masked tokens are made by the evaluation and are not saved.
        resampled = task.evaluate(examples[:MAX_RESAMPLED])
        sources, outputs, references = resampled.sources, resampled.outputs, resampled.references
    saved = Evaluation.from_dict(read_metrics(folder)["test"])
    return replace(saved, sources=sources, outputs=outputs, references=references), examples


def _title(folder: Path) -> str:
    name, data = folder.resolve().name, " ".join(read_config(folder)["about"].get("data", ()))
    return name if data in ("", name) else f"{name}: {data}"


def _with_predictions(examples: Sequence[Example], evaluation: Evaluation) -> list[Example]:
    """Return test examples with the predictions as targets; unchanged if there are none."""
    if len(evaluation.outputs) != len(examples):
        return [example for example in examples if as_text(example.source).strip()]
    triples = zip(examples, evaluation.outputs, evaluation.references, strict=True)
    return [
        replace(example, target=output, references=(reference,))
        for example, output, reference in triples
        if output
    ]


def _summary(
    metrics: dict[str, Any], evaluation: Evaluation, *, task: Task[Any], attended: AttendedExamples
) -> Any:
    training = metrics["training"]
    values = {result.name: f"{result.value:.4g}" for result in evaluation.results.values()}
    values["parameters"] = f"{metrics['parameters']:,}"
    values["training"] = f"{training['seconds']:.0f} s"
    if isinstance(task, Generates):
        values["target tokens/s"] = f"{training['tokens_per_second']:,.0f}"
    if evaluation.outputs:
        has_images = any(attention.image is not None for _, attention in attended)
        has_audio = any(attention.recording is not None for _, attention in attended)
        kind = "images" if has_images else "recordings" if has_audio else "examples"
        values[f"test {kind}"] = f"{metrics['test']['num_examples']:,}"
    return cards(values)


def _training_curves(folder: Path, task: Task[Any]) -> list[Section]:
    log = [row for row in read_log(folder / TRAINING_LOG) if "loss" in row]
    if not log:
        return []
    # Not every recipe has a validation metric beside the loss.
    metric = getattr(getattr(task.recipe, "validation", None), "metric", "loss")
    score = "" if metric == "loss" else metric
    plot = curves.loss_curve(log, score=score, label=spell_metric(score))
    return [Section("Training curves", figure(to_svg(plot)))]


def _maps(attended: AttendedExamples) -> list[Section]:
    shown = [(example, one) for example, one in attended if one.weights.shape[0]]
    if not shown:
        return []
    first = shown[0][1]
    figures = [
        figure(attention_svg(attention), _map_caption(example, attention))
        for example, attention in shown
    ]
    is_attention = first.kind == "attention"
    title = "Attention" if is_attention else first.kind[0].upper() + first.kind[1:]
    note = _map_note(first)
    note = note if is_attention else note.replace("Attention weights", f"Weights ({first.kind})")
    return [Section(title, join(paragraph(note), *figures))]


def _map_note(attention: AttentionMap) -> str:
    if attention.recording is not None:
        return _AUDIO_NOTE if len(attention.target) > 1 else _AUDIO_LABEL_NOTE
    if attention.image is not None:
        return _IMAGE_NOTE
    return _SELF_NOTE if attention.source == attention.target else _TEXT_NOTE


def _map_caption(example: Example, attention: AttentionMap) -> str:
    source = as_text(example.source).strip()
    if attention.source == attention.target or not example.target:
        return shorten(source)
    return f"{source} → {shorten(example.target)}"


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


def _confusion(evaluation: Evaluation) -> list[Section]:
    """Show the confusion matrix, unless there are many labels, and the most frequent errors."""
    counts = evaluation.confusion
    labels = sorted({*counts, *(name for row in counts.values() for name in row)})
    parts = []
    if 1 < len(labels) <= MAX_LABELS:
        shares = [
            [
                counts.get(true, {}).get(name, 0) / max(1, sum(counts.get(true, {}).values()))
                for name in labels
            ]
            for true in labels
        ]
        plot = matrices({"": shares}, x_label="predicted", y_label="true")
        names = [label(name) for name in labels]
        plot.axes[0].set_xticks(range(len(labels)), names, rotation=90)
        plot.axes[0].set_yticks(range(len(labels)), names)
        note = "Share of the predicted labels among the examples of each true label."
        parts += [paragraph(note), figure(to_svg(plot))]
    errors = [
        (true, name, count)
        for true, row in counts.items()
        for name, count in row.items()
        if true != name and count
    ]
    if errors:
        errors.sort(key=lambda error: -error[2])
        parts.append(table(["Label", "Prediction", "Count"], errors[:MAX_ERRORS]))
    return [Section("Confusion of labels", join(*parts))] if parts else []


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
