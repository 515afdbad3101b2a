"""Descriptions of tasks and results for the Python prompt and, as HTML, for notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.metrics.result import Result
from regard.plots.html import join, paragraph, table
from regard.plots.inputs import Markup, label

MAX_CHARACTERS = 60
"""Maximum length of a text in a description."""


def shorten(text: str) -> str:
    """Return a text that fits into one line of a description."""
    return label(text, MAX_CHARACTERS)


def count(num: int, noun: str) -> str:
    """Return a number with its noun: `1 layer`, `2 layers`."""
    return f"{num:,} {noun}{'' if num == 1 else 's'}"


def describe_task(task: Any) -> dict[str, str]:
    """Return the task, the model, the inputs and outputs, the size and the device, by name."""
    kinds = " → ".join(_model_kinds(getattr(task.recipe, "model", None)))
    fields = ", ".join(_describe_field(name, field) for name, field in task.fields.items())
    facts = {
        "task": task.recipe.task,
        "model": kinds,
        "fields": fields,
        "size": count(task.num_parameters, "parameter"),
        "device": str(task.device),
    }
    return {name: value for name, value in facts.items() if value}


def _model_kinds(model: Any) -> Iterator[str]:
    for part in (model, getattr(model, "encoder", None), getattr(model, "decoder", None)):
        if kind := getattr(part, "kind", ""):
            yield kind


def _describe_field(name: str, field: Any) -> str:
    labels = getattr(field, "names", None)
    if labels is not None:
        return count(len(labels), "label")
    spec = getattr(field, "spec", "")
    vocab_size = getattr(spec, "vocab_size", None)
    return str(spec) if vocab_size is None else f"{vocab_size:,} {name} tokens"


def facts_html(title: str, facts: Mapping[str, object]) -> Markup:
    """Render names and values as a table of two columns below a title."""
    return join(paragraph(title), table(["", ""], list(facts.items())))


def results_html(title: str, results: Sequence[Result]) -> Markup:
    """Render the results of metrics as a table below a title."""
    rows = [
        [one.name, f"{one.value:#.4g}", _interval(one), one.signature.replace("|", " | ")]
        for one in results
    ]
    head = ["metric", "value", "95 % interval", "signature"]
    return join(paragraph(title), table(head, rows)) if rows else paragraph(title)


def _interval(result: Result) -> str:
    if result.interval is None:
        return "–"
    low, high = result.interval
    return f"{low:#.4g} – {high:#.4g}"
