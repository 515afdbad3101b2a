"""Finished runs with the same test set, for comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.core.checksums import check_file
from regard.core.config import flatten, to_dict
from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import read_record
from regard.data.example import Example
from regard.runs.folder import (
    METRICS,
    PREDICTIONS,
    TEST,
    read_metrics,
    read_test_set,
)
from regard.runs.saved.config import read_config
from regard.tasks.generation.recipe import Recipe
from regard.tasks.table import to_recipe


@dataclass(frozen=True)
class FinishedRun:
    """A finished run."""

    name: str
    """Name in the comparison."""
    folder: Path
    """The run folder."""
    decoder: str
    """Kind of the decoder."""
    settings: dict[str, Any]
    """All settings of its recipe by their dotted names."""
    metrics: dict[str, Any]
    """Content of `metrics.json`: provenance, training cost and scores."""
    examples: list[Example]
    """The test set."""
    outputs: list[str]
    """Outputs for the test set."""

    @property
    def references(self) -> list[list[str]]:
        """References of each test example."""
        return [[example.target, *example.references] for example in self.examples]


def read_finished_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Read two or more run folders; raise an error if they cannot be compared.

    Tags and alignments of the test set are those of the first run.
    """
    if len(folders) < 2:
        raise ConfigError(
            f"A comparison needs at least two run folders, but has {len(folders)}. "
            "Name one more; the first is the baseline."
        )
    finished_runs = [
        _read(folder, name) for folder, name in zip(folders, _names(folders), strict=True)
    ]
    first, *others = finished_runs
    for other in others:
        _check_same_test(first, other)
    # Equal but for tags, such as those of a file without any: the groups must be the same.
    return [first, *(replace(other, examples=first.examples) for other in others)]


def _read(folder: Path, name: str) -> FinishedRun:
    config = read_config(folder)
    recipe = to_recipe(config["recipe"])
    if type(recipe) is not Recipe:
        raise ConfigError(
            "Only runs for the task 'generation' can be compared, but "
            f"{folder} is one for '{recipe.task}'. Its metrics are in {METRICS}."
        )
    if not (folder / METRICS).exists():
        raise CheckpointError(
            f"{folder} is not finished: {METRICS} is missing. Resume training "
            "(`regard train … --resume`)."
        )
    for file in (TEST, METRICS, PREDICTIONS):
        check_file(folder / file)
    examples = read_test_set(folder)
    outputs = read_record(folder / PREDICTIONS, list[str])
    if len(outputs) != len(examples):
        raise CheckpointError(
            f"{folder} has {len(outputs):,} predictions for {len(examples):,} test sentences. "
            "Its files are inconsistent; train it again."
        )
    return FinishedRun(
        name=name,
        folder=folder,
        decoder=recipe.model.decoder.kind,
        settings=dict(flatten(to_dict(recipe))),
        metrics=read_metrics(folder),
        examples=examples,
        outputs=outputs,
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Name each run by the last part of its path, or by the full path if that is ambiguous."""
    resolved = [folder.resolve() for folder in folders]
    for number, path in enumerate(resolved):
        if path in resolved[:number]:
            raise ConfigError(f"{folders[number]} is given twice. Name each run once.")
    short = [path.name for path in resolved]
    return [
        name if short.count(name) == 1 else str(folder)
        for name, folder in zip(short, folders, strict=True)
    ]


def _check_same_test(first: FinishedRun, other: FinishedRun) -> None:
    advice = "Runs can be compared on one test set only: train them on the same data."
    for number, (ours, theirs) in enumerate(zip(first.examples, other.examples, strict=False)):
        for name, expected, actual in (
            ("source", ours.source, theirs.source),
            ("reference", ours.target, theirs.target),
            ("further references", ours.references, theirs.references),
        ):
            if expected != actual:
                raise DataError(
                    f"{first.folder} and {other.folder} were tested on different sentences: the "
                    f"{name} of sentence {number + 1:,} is {expected!r} in the first, but "
                    f"{actual!r} in the second. {advice}"
                )
    if len(first.examples) != len(other.examples):
        raise DataError(
            f"{first.folder} was tested on {len(first.examples):,} sentences, but {other.folder} "
            f"on {len(other.examples):,}. {advice}"
        )
