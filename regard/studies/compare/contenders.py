"""Runs that can be compared: finished, and tested on the same sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.core.files import read_json
from regard.data.example import Example
from regard.data.text.readers import read_examples
from regard.runs.folder import METRICS, PREDICTIONS, TEST, read_config
from regard.tasks.generation.recipe import Recipe
from regard.tasks.table import to_recipe


@dataclass(frozen=True)
class Contender:
    """A finished run."""

    name: str
    """What it is called beside the others."""
    folder: Path
    """Its run folder."""
    decoder: str
    """The kind of its decoder."""
    metrics: dict[str, Any]
    """What training left about its making, cost and scores."""
    examples: list[Example]
    """The test set."""
    outputs: list[str]
    """What it answered."""

    @property
    def references(self) -> list[list[str]]:
        """For each sentence of the test set its right answers."""
        return [[example.target, *example.references] for example in self.examples]


def read_contenders(folders: Sequence[Path]) -> list[Contender]:
    """Read two or more run folders, or say why they cannot be compared."""
    if len(folders) < 2:
        raise ConfigError(
            f"A comparison needs at least two run folders, but has {len(folders)}. "
            "Name one more; the first is what the others are held against."
        )
    contenders = [
        _read(folder, name) for folder, name in zip(folders, _names(folders), strict=True)
    ]
    for other in contenders[1:]:
        _check_same_test(contenders[0], other)
    return contenders


def _read(folder: Path, name: str) -> Contender:
    config = read_config(folder)
    recipe = to_recipe(config["recipe"])
    if type(recipe) is not Recipe:
        raise ConfigError(
            f"Only runs that answer a source can be compared, but {folder} is one for the task "
            f"'{recipe.task}'. Its measures are in {METRICS}."
        )
    if not (folder / METRICS).exists():
        raise CheckpointError(
            f"{folder} was never measured: {METRICS} is missing. Train it to its end "
            "(`regard train … --resume`)."
        )
    examples = read_examples(folder / TEST)
    outputs: list[str] = read_json(folder / PREDICTIONS)
    if len(outputs) != len(examples):
        raise CheckpointError(
            f"{folder} has {len(outputs):,} predictions for {len(examples):,} test sentences. "
            "Its files do not belong together; train it again."
        )
    return Contender(
        name=name,
        folder=folder,
        decoder=config["recipe"]["model"]["decoder"]["kind"],
        metrics=read_json(folder / METRICS),
        examples=examples,
        outputs=outputs,
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Call each run by the last part of its path, or by all of it where that part is not enough."""
    places = [folder.resolve() for folder in folders]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ConfigError(f"{folders[number]} is given twice. Name each run once.")
    short = [place.name for place in places]
    return [
        name if short.count(name) == 1 else str(folder)
        for name, folder in zip(short, folders, strict=True)
    ]


def _check_same_test(first: Contender, other: Contender) -> None:
    advice = "Runs can be compared on one test set only: train them on the same data."
    for number, (ours, theirs) in enumerate(zip(first.examples, other.examples, strict=False)):
        for what, mine, yours in (
            ("source", ours.source, theirs.source),
            ("reference", ours.target, theirs.target),
            ("further references", ours.references, theirs.references),
        ):
            if mine != yours:
                raise DataError(
                    f"{first.folder} and {other.folder} were tested on different sentences: the "
                    f"{what} of sentence {number + 1:,} is {mine!r} in the first, but {yours!r} "
                    f"in the second. {advice}"
                )
    if len(first.examples) != len(other.examples):
        raise DataError(
            f"{first.folder} was tested on {len(first.examples):,} sentences, but {other.folder} "
            f"on {len(other.examples):,}. {advice}"
        )
