"""Recipes: built-in and user-defined TOML files, with overrides."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from regard.core.config import read_toml
from regard.core.errors import ConfigError
from regard.core.overrides import override
from regard.core.tables import nearest_names
from regard.data.example import require_list
from regard.tasks.table import override_recipe, to_recipe


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes."""
    folder = resources.files("regard") / "recipes"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def is_file(name: str) -> bool:
    """Return whether a recipe is given as a path to a TOML file, not as a name."""
    return name.endswith(".toml") or "/" in name


def recipe_path(name: str) -> Path:
    """Return the path of a recipe, given as a name or as a path to a TOML file."""
    if is_file(name):
        return Path(name)
    names = recipe_names()
    if name not in names:
        raise ConfigError(
            f"`recipe` must be a TOML file or the name of a recipe, but is '{name}'. "
            f"{nearest_recipes(name)}"
        )
    return Path(str(resources.files("regard") / "recipes" / f"{name}.toml"))


def nearest_recipes(name: str) -> str:
    """Return the most similar recipe names and the command that lists all, for messages."""
    return nearest_names(name, recipe_names(), "regard recipes")


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
    # A kind set by the user also replaces the settings chosen for another kind.
    keys = (item.partition("=")[0] for item in overrides)
    given = tuple(key.removesuffix("kind") for key in keys if key.endswith(".kind"))
    chosen = [
        f"{key}={_literal(value)}"
        for key, value in (defaults or {}).items()
        if not key.startswith(given)
    ]
    try:
        return to_recipe(override_recipe(override(values, chosen), overrides))
    except ConfigError as error:
        if is_file(name):
            _check_file(name, values, error)
        raise


def _check_file(name: str, values: dict[str, Any], error: ConfigError) -> None:
    """Raise an error that names the TOML file if it is the cause, not an override."""
    try:
        to_recipe(values)
    except ConfigError as cause:
        if str(cause) == str(error):
            raise ConfigError(f"{name}: {error}") from None


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
