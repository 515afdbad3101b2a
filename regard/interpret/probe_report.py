"""Plots of sentence embeddings and linear probes, as a page or as sections of a run's report."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.core.errors import RegardError
from regard.core.files import write_text
from regard.core.logging import logger
from regard.data.text.field import Text, as_text
from regard.interpret.embed import embed, project
from regard.interpret.probes import (
    LENGTH,
    MIN_TEXTS,
    ORDER,
    POSITION,
    PROBES,
    ProbeResults,
    check_layerwise,
    probe,
)
from regard.plots import curves
from regard.plots.figure import to_svg
from regard.plots.html import Section, figure, join, paragraph, report, table
from regard.plots.scatter import shaded
from regard.tasks.base import Task

MAX_POINTS = 500
"""Maximum number of sentences in the scatter plot, to limit overlap."""

MAX_PROBED = 500
"""Maximum number of sentences to probe, so that it takes a few seconds."""

MAX_CHARACTERS = 40_000
"""Maximum number of characters of all sentences in the report of a run, to limit its time."""

_EMBEDDINGS_NOTE = (
    "Each point is the vector of a sentence, projected on the first two principal components "
    "({share:.0f} % of the variance). Lighter points are longer sentences."
)
_PROBES_NOTE = (
    "Linear probes on the hidden states of each layer. Length: R² of the number of tokens, "
    "predicted from the mean state. Word order: accuracy of detecting that two neighbouring words "
    "were swapped, from the mean of their states; the chance level is 50 %. Position: R² of the "
    "position of a token, predicted from its state. Control: the same encoder with its initial "
    "weights, as a baseline. Probes are trained on {learned} sentences and tested on {tested} "
    "others."
)


def representation_sections(task: Task[Any], sources: Sequence[str]) -> list[Section]:
    """Return the sections of a run that reads text layer by layer; none for other runs.

    Args:
        task: The run.
        sources: The sources of its test set.
    """
    ends = itertools.accumulate(len(text) for text in sources)
    kept = [text for text, end in zip(sources, ends, strict=True) if end <= MAX_CHARACTERS]
    distinct = list(dict.fromkeys(text for text in kept if text.strip()))
    if len(distinct) < 2 * MIN_TEXTS:
        return []
    try:
        check_layerwise(task)
    except RegardError as error:
        logger.debug("The report has no probes: %s", error)
        return []
    return _sections(task, distinct, probe(task, distinct, max_texts=MAX_PROBED))


def write_page(
    path: Path, task: Task[Any], texts: Sequence[Text], *, results: ProbeResults, title: str
) -> None:
    """Write a page with the embeddings of texts and the results of probes.

    Args:
        path: The file to write.
        task: The run.
        texts: Texts; duplicates are dropped.
        results: The results of `probe` for these texts.
        title: The heading of the page.
    """
    distinct = list(dict.fromkeys(line for line in map(as_text, texts) if line.strip()))
    write_text(path, str(report(title, _sections(task, distinct, results))))


def _sections(task: Task[Any], texts: Sequence[str], results: ProbeResults) -> list[Section]:
    return [
        Section("Sentence embeddings", _plot_embeddings(task, texts[:MAX_POINTS])),
        Section("Linear probes by layer", _plot_probes(results)),
    ]


def _plot_embeddings(task: Task[Any], texts: Sequence[str]) -> Any:
    points, share = project(embed(task, texts))
    lengths = [float(len(text.split())) for text in texts]
    plot = shaded([(float(x), float(y)) for x, y in points], lengths, value_label="words")
    note = _EMBEDDINGS_NOTE.format(share=100 * share)
    return join(paragraph(note), figure(to_svg(plot)))


def _plot_probes(results: ProbeResults) -> Any:
    """Plot the results from 0 to 1, above a table of all numbers."""
    encoders = {"": results.layers, ", control": results.control}
    scales = {LENGTH: 1.0, POSITION: 1.0, ORDER: 0.01}
    series = {
        f"{name.removesuffix(' %')}{suffix}": [
            (layer, scale * scores[name]) for layer, scores in enumerate(layers)
        ]
        for name, scale in scales.items()
        for suffix, layers in encoders.items()
    }
    # Short texts have no neighbouring words to swap.
    series = {
        name: points
        for name, points in series.items()
        if any(math.isfinite(value) for _, value in points)
    }
    plot = curves.lines(series, x_label="layer (0: embeddings)", y_label="R² or accuracy")
    plot.axes[0].set_xticks(range(len(results.layers)))
    plot.axes[0].set_ylim(0.0, 1.02)
    head = ["", *(f"{name}{suffix}" for name in PROBES for suffix in encoders)]
    rows = [[name, *map(_cell, values)] for name, values in _by_layer(results)]
    note = _PROBES_NOTE.format(learned=results.num_learned, tested=results.num_tested)
    return join(paragraph(note), figure(to_svg(plot)), table(head, rows))


def table_rows(results: ProbeResults) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table for the terminal."""
    head = ["", *(column for name in PROBES for column in (name, "control"))]
    rows = [
        [name, *("–" if math.isnan(value) else f"{value:.2f}" for value in values)]
        for name, values in _by_layer(results)
    ]
    return head, rows


def _by_layer(results: ProbeResults) -> Iterator[tuple[str, list[float]]]:
    """Yield each layer with its scores, each for the trained and the untrained encoder."""
    for name, trained, control in zip(results.names, results.layers, results.control, strict=True):
        yield name, [scores[probe_name] for probe_name in PROBES for scores in (trained, control)]


def _cell(value: float) -> float | str:
    return "–" if math.isnan(value) else value
