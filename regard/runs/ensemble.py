"""Ensembles of runs: parse lists of folders, check that runs are compatible, and combine them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError
from regard.core.files import read_json
from regard.core.records import read_bytes
from regard.data.image.field import ImageField
from regard.data.modality import SourceConfig, modality_of
from regard.data.text.field import TOKENIZER
from regard.data.text.tokenizer_file import MAX_BYTES
from regard.models.ensemble import Ensemble
from regard.models.heads.ctc import NoCtcConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor

TARGET_FILES = (TOKENIZER.format("target"),)


def split_folders(folders: str | Path) -> list[Path]:
    """Split a comma-separated list of folders.

    An existing folder whose name contains a comma is not split.
    """
    single = Path(folders)
    if single.is_dir() or "," not in str(folders):
        return [single]
    names = [name.strip() for name in str(folders).split(",")]
    for number, name in enumerate(names):
        if not name:
            raise ConfigError(
                f"'{folders}' must be run folders joined by commas, but number {number + 1} has "
                "no name. Leave out the comma, or name one more."
            )
    paths = [Path(name) for name in names]
    resolved = [path.resolve() for path in paths]
    for number, path in enumerate(resolved):
        if path in resolved[:number]:
            raise ConfigError(f"{names[number]} is given twice. Name each run once.")
    return paths


def build_ensemble(runs: Mapping[Path, Task[Any]]) -> Predictor:
    """Combine several loaded runs into one predictor.

    The settings are those of the first run. Predicted distributions are averaged; CTC is not used.

    Args:
        runs: Each run by its folder.
    """
    members = {folder: _check_task(folder, run) for folder, run in runs.items()}
    first_folder, *other_folders = members
    first = members[first_folder]
    for other in other_folders:
        _check_fields(first_folder, other, first.recipe.data.source)
    search = replace(first.recipe.search, ctc_weight=0.0)
    model = replace(first.recipe.model, ctc=NoCtcConfig())
    return Predictor(
        replace(first.recipe, search=search, model=model),
        Ensemble([member.model for member in members.values()]),
        first.fields,
        device=first.device,
    )


def _check_task(folder: Path, run: Task[Any]) -> Predictor:
    if type(run) is not Predictor:
        raise ConfigError(
            f"An ensemble needs runs for the task 'generation', but {folder} is one for "
            f"'{run.recipe.task}'. Leave it out, or load it alone."
        )
    if run.recipe.model.ctc_weight == 1:
        raise ConfigError(
            f"An ensemble needs runs with a decoder, but {folder} has `model.ctc.weight` 1. "
            "Leave it out, or load it alone."
        )
    return run


def _check_fields(first: Path, other: Path, config: SourceConfig) -> None:
    """Raise if two runs have different vocabularies, tokenisers or image preprocessing."""
    differing = [
        side
        for side, names in (("source", modality_of(config).files), ("target", TARGET_FILES))
        for name in names
        if _content(first / name) != _content(other / name)
    ]
    if differing:
        is_text = modality_of(config).name == "text"
        noun = "vocabularies" if is_text else "fields"
        raise ConfigError(
            f"An ensemble needs runs with the same {noun}, but {first} and {other} have different "
            f"{' and '.join(differing)} {noun}. Train them with the same data and data settings."
        )


def _content(path: Path) -> Any:
    """Return the content of a field's file, without the augmentation of images."""
    if not path.exists():
        return None
    if not path.match(ImageField.file.format("*")):
        return read_bytes(path, max_bytes=MAX_BYTES)
    value = read_json(path)
    return {**value, "config": {**value["config"], "augmentation": None}}
