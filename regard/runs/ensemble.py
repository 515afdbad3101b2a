"""Several runs that answer as one: which folders are meant, and whether they fit together."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.data.image.field import ImageField
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.field import TOKENIZER
from regard.models.ensemble import Ensemble
from regard.models.heads.ctc import NoCtcConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor

TARGET_FILES = (TOKENIZER.format("target"),)


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

    Its settings are those of the first. Decoders write together; CTC is not asked.

    Args:
        runs: Each run by its folder.
    """
    members = {folder: _check_task(folder, run) for folder, run in runs.items()}
    first, *others = members
    lead = members[first]
    for other in others:
        _check_fields(first, other, lead.recipe.data.source)
    search = replace(lead.recipe.search, ctc_weight=0.0)
    model = replace(lead.recipe.model, ctc=NoCtcConfig())
    return Predictor(
        replace(lead.recipe, search=search, model=model),
        Ensemble([member.model for member in members.values()]),
        lead.fields,
        device=lead.device,
    )


def _check_task(folder: Path, run: Task[Any]) -> Predictor:
    if type(run) is not Predictor:
        raise ConfigError(
            f"An ensemble needs runs for the task 'generation', but {folder} is one for "
            f"'{run.recipe.task}'. Leave it out, or open it alone."
        )
    if run.recipe.model.ctc_weight == 1:
        raise ConfigError(
            f"An ensemble needs runs whose decoder writes, but {folder} has `model.ctc.weight` 1. "
            "Leave it out, or open it alone."
        )
    return run


def _check_fields(first: Path, other: Path, config: SourceConfig) -> None:
    """Raise if two runs read or write other tokens, cut text otherwise, or see images otherwise."""
    differing = [
        side
        for side, names in (("source", modality_of(config).files), ("target", TARGET_FILES))
        for name in names
        if _content(first / name) != _content(other / name)
    ]
    if differing:
        is_text = modality_of(config).name == "text"
        what = "vocabularies" if is_text else "fields"
        raise ConfigError(
            f"An ensemble needs runs with the same {what}, but {first} and {other} have different "
            f"{' and '.join(differing)} {what}. Train them with the same data and data settings."
        )


def _content(path: Path) -> Any:
    """Return what a file holds, but of images not what happens to them in training only."""
    if not path.exists():
        return None
    if not path.match(ImageField.file.format("*")):
        return path.read_bytes()
    value = read_json(path)
    return {**value, "config": {**value["config"], "augmentation": None}}
