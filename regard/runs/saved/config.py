"""Settings and provenance of a run: `config.json` of its folder."""

from pathlib import Path
from typing import Any, TypedDict

from regard.core.errors import CheckpointError
from regard.core.files import read_record
from regard.core.records import check_record, shown

CONFIG = "config.json"

FORMAT = 2
"""Version of the folder's layout; increased when older versions could not read it."""


class _About(TypedDict, total=False):
    """Provenance of a run, as far as it is used again."""

    data: list[str]
    valid: list[str]
    test: list[str]
    data_fingerprint: str
    batches_per_epoch: int
    model_type: str
    has_turns: bool
    recipe: str | None
    launch: str
    changes: list[dict[str, Any]]


class _Config(TypedDict):
    """Content of `config.json`."""

    recipe: dict[str, Any]
    about: _About


def read_config(folder: Path) -> dict[str, Any]:
    """Read a run's settings; raise `CheckpointError` if this is not a run folder."""
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder} is not a folder. Give a run folder made by `regard train`."
        )
    path = folder / CONFIG
    config = read_record(path, dict[str, Any])
    version = config.get("format")
    if version != FORMAT:
        is_older = isinstance(version, int) and version < FORMAT
        remedy = "Train again" if is_older else "Upgrade with `pip install -U regard`"
        raise CheckpointError(
            f"{folder} was saved in format {shown(version)}; this version reads format {FORMAT}. "
            f"{remedy}."
        )
    check_record(config, _Config, str(path))
    return config
