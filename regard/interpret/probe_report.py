"""What a run's encoder makes of texts, as a page or in its report: a map of them, and probes."""

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
"""Sentences on the map; more would hide each other."""

MAX_PROBED = 500
"""Sentences that are probed: enough to see which layer knows what, in a few seconds."""

_MAP = (
    "Each point is a sentence: the vector that the encoder sums it up in, on the "
    "two principal components that tell most of the differences between them ({share:.0f} % of "
    "the variance). The lighter, the longer the sentence."
)
_PROBES = (
    "What a weighted sum can read off the states of each layer. Length: the share of the variance "
    "of the number of tokens that the mean state foretells. Word order: whether two neighbouring "
    "words stand as they should or were swapped, from their mean state; guessing gives 50 %. "
    "Position: the same share for the place of a single token. Fresh: an encoder of the same kind "
    "that has not learned, so that only what is above it was learned. Probes learned from "
    "{learned} sentences and were tested on {tested} others."
)


def representation_sections(task: Task[Any], sources: Sequence[str]) -> list[Section]:
    """Return the map and the probes; nothing where a run does not read text layer by layer.

    Args:
        task: The run.
        sources: The texts of its test set.
    """
    distinct = list(dict.fromkeys(text for text in sources if text.strip()))
    if len(distinct) < 2 * MIN_TEXTS:
        return []
    try:
        check_layerwise(task)
    except RegardError as error:
        logger.debug("The report shows no layers: %s", error)
        return []
    return _sections(task, distinct, probe(task, distinct, most=MAX_PROBED))


def write_page(
    path: Path, task: Task[Any], texts: Sequence[Text], *, found: ProbeResults, title: str
) -> None:
    """Write the map of texts and what probes found as a page of their own.

    Args:
        path: The file to write.
        task: The run.
        texts: Any texts; each distinct one counts once.
        found: What `probe` found in them.
        title: The heading of the page.
    """
    distinct = list(dict.fromkeys(line for line in map(as_text, texts) if line.strip()))
    write_text(path, str(report(title, _sections(task, distinct, found))))


def _sections(task: Task[Any], texts: Sequence[str], found: ProbeResults) -> list[Section]:
    return [
        Section("Sentences as points", _map(task, texts[:MAX_POINTS])),
        Section("What each layer knows", _curves(found)),
    ]


def _map(task: Task[Any], texts: Sequence[str]) -> Any:
    points, share = project(embed(task, texts))
    lengths = [float(len(text.split())) for text in texts]
    drawn = shaded([(float(x), float(y)) for x, y in points], lengths, value_label="words")
    note = _MAP.format(share=100 * share)
    return join(paragraph(note), figure(to_svg(drawn)))


def _curves(found: ProbeResults) -> Any:
    """Draw shares from 0 to 1, so that small differences stay small; all numbers stand below."""
    sides = {"": found.layers, ", fresh": found.control}
    scales = {LENGTH: 1.0, POSITION: 1.0, ORDER: 0.01}
    series = {
        f"{name.removesuffix(' %')}{side}": [
            (layer, scale * numbers[name]) for layer, numbers in enumerate(own)
        ]
        for name, scale in scales.items()
        for side, own in sides.items()
    }
    drawn = curves.lines(series, x_label="layer (0: embeddings)", y_label="R², or share right")
    drawn.axes[0].set_xticks(range(len(found.layers)))
    drawn.axes[0].set_ylim(0.0, 1.02)
    head = ["", *(f"{name}{side}" for name in PROBES for side in sides)]
    rows = [[name, *(_shown(value) for value in values)] for name, values in _by_layer(found)]
    note = _PROBES.format(learned=found.num_learned, tested=found.num_tested)
    return join(paragraph(note), figure(to_svg(drawn)), table(head, rows))


def table_rows(found: ProbeResults) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table that a terminal shows."""
    head = ["", *(column for name in PROBES for column in (name, "fresh"))]
    rows = [
        [name, *("–" if math.isnan(value) else f"{value:.2f}" for value in values)]
        for name, values in _by_layer(found)
    ]
    return head, rows


def _by_layer(found: ProbeResults) -> Iterator[tuple[str, list[float]]]:
    """Yield each layer with its measures, each for the trained and for the fresh encoder."""
    for name, trained, fresh in zip(found.names, found.layers, found.control, strict=True):
        yield name, [values[measure] for measure in PROBES for values in (trained, fresh)]


def _shown(value: float) -> float | str:
    return "–" if math.isnan(value) else value
