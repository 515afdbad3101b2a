"""Explanation of a recipe or a run: its header and all settings with their descriptions."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from regard.core import config
from regard.core.errors import ConfigError
from regard.runs.recipes import load_recipe, recipe_path
from regard.runs.saved.config import read_config
from regard.tasks.table import override_recipe, to_recipe


def explain(name: str, overrides: Sequence[str] = ()) -> str:
    """Return a recipe as TOML with its header and a description of each setting.

    Args:
        name: A recipe's name, a TOML file or a run folder.
        overrides: Overrides of its settings.
    """
    if not name or "=" in name:
        raise ConfigError(
            "`regard explain` needs the name of a recipe, a TOML file or a run folder before any "
            "overrides. `regard recipes` lists the recipes."
        )
    if Path(name).is_dir():
        saved = read_config(Path(name))
        data = " ".join(saved["about"].get("data", ())) or "unknown data"
        header = [f"# Settings of the run {name}, trained on {data}."]
        recipe = to_recipe(override_recipe(saved["recipe"], overrides))
    else:
        recipe = load_recipe(name, overrides)
        text = recipe_path(name).read_text(encoding="utf-8")
        header = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    return "\n".join([*header, "", config.explain(recipe)])
