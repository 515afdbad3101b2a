"""Recipes: built-in and user-defined TOML files, with overrides."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from regard.core.config import override, read_toml
from regard.core.errors import ConfigError
from regard.core.tables import did_you_mean
from regard.data.example import require_list
from regard.tasks.table import to_recipe


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes."""
    folder = resources.files("regard") / "recipes"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def recipe_path(name: str) -> Path:
    """Return the path of a recipe, given as a name or as a path to a TOML file."""
    if name.endswith(".toml") or "/" in name:
        return Path(name)
    names = recipe_names()
    if name not in names:
        quoted = ", ".join(f"'{known}'" for known in names)
        raise ConfigError(
            f"`recipe` must be a TOML file or one of {quoted}, but is '{name}'."
            f"{did_you_mean(name, names)}"
        )
    return Path(str(resources.files("regard") / "recipes" / f"{name}.toml"))


def load_recipe(
    name: str, overrides: Sequence[str] = (), *, defaults: dict[str, Any] | None = None
) -> Any:
    """Read a recipe and apply overrides such as `train.max_steps=200`.

    Args:
        name: A recipe's name, or a path to a TOML file.
        overrides: Overrides by the user, applied last.
        defaults: Settings chosen from the data, as dotted keys and values, applied first.
    """
    require_list(overrides, "overrides")
    values = read_toml(recipe_path(name))
    chosen = [f"{key}={_literal(value)}" for key, value in (defaults or {}).items()]
    return to_recipe(override(override(values, chosen), overrides))


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
