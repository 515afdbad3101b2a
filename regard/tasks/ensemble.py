"""Several runs that answer as one: which folders are meant, and whether they fit together."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError
from regard.models.ensemble import Ensemble
from regard.tasks.predictor import SOURCE, TARGET, Predictor
from regard.tasks.task import Task


def split_folders(folders: str | Path) -> list[Path]:
    """Return the folders that a text names, joined by commas.

    A folder with a comma in its own name is that one folder.
    """
    whole = Path(folders)
    if whole.is_dir() or "," not in str(folders):
        return [whole]
    names = [name.strip() for name in str(folders).split(",")]
    for number, name in enumerate(names):
        if not name:
            raise ConfigError(
                f"'{folders}' must be run folders joined by commas, but number {number + 1} has "
                "no name. Leave out the comma, or name one more."
            )
    paths = [Path(name) for name in names]
    places = [path.resolve() for path in paths]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise ConfigError(f"{names[number]} is given twice. Name each run once.")
    return paths


def assemble(runs: Mapping[Path, Task[Any]]) -> Predictor:
    """Make of several opened runs a predictor that writes with all of them.

    Its settings are those of the first.

    Args:
        runs: Each run by its folder.
    """
    members = {folder: _check_task(folder, run) for folder, run in runs.items()}
    first, *others = members
    for other in others:
        _check_vocabularies(first, other)
    lead = members[first]
    return Predictor(
        lead.recipe,
        Ensemble([member.model for member in members.values()]),
        source=lead.source.tokenizer,
        target=lead.target.tokenizer,
        device=lead.device,
    )


def _check_task(folder: Path, run: Task[Any]) -> Predictor:
    if run.recipe.task != "generation":
        raise ConfigError(
            f"An ensemble needs runs for the task 'generation', but {folder} is one for "
            f"'{run.recipe.task}'. Leave it out, or open it alone."
        )
    assert isinstance(run, Predictor)
    return run


def _check_vocabularies(first: Path, other: Path) -> None:
    """Raise if two runs read or write other tokens, or cut text into them otherwise."""
    differing = [
        side
        for side, name in (("source", SOURCE), ("target", TARGET))
        if (first / name).read_bytes() != (other / name).read_bytes()
    ]
    if differing:
        raise ConfigError(
            f"An ensemble needs runs with the same vocabularies, but {first} and {other} have "
            f"different {' and '.join(differing)} vocabularies. Train them with the same data and "
            "data settings."
        )
