"""Shell completion of runs, data sets, recipes and settings, without importing torch."""

import json
import tomllib
from collections.abc import Iterator
from glob import escape, iglob
from importlib import resources
from pathlib import Path
from typing import Any

from typer import Context

SETTINGS = Path(__file__).with_name("settings.json")
"""Names of all settings by class, written by `tests/architecture/setting_names.py`."""

Names = Iterator[str]


def complete_run(incomplete: str) -> Names:
    """Yield run folders, up to two folders deep; of an ensemble, of its last member."""
    *members, last = incomplete.split(",")
    for pattern in ("*/config.json", "*/*/config.json"):
        for path in sorted(iglob(escape(last) + pattern)):
            yield ",".join([*members, path.removesuffix("/config.json")])


def complete_recipe(incomplete: str) -> Names:
    """Yield names of built-in recipes and TOML files."""
    names = (path.name for path in _recipe_folder().iterdir() if path.name.endswith(".toml"))
    yield from sorted(name.removesuffix(".toml") for name in names)
    yield from (path for path in _files(incomplete) if path.endswith(("/", ".toml")))


def complete_experiment() -> Names:
    """Yield the names of the experiments of `regard reproduce`."""
    from regard.studies.reproduce.catalog import experiments

    yield from experiments()


def complete_data(incomplete: str) -> Names:
    """Yield names of built-in data sets and files."""
    from regard.data.datasets.catalog import LOADERS

    yield from LOADERS
    yield from _files(incomplete)


def complete_data_and_settings(ctx: Context, incomplete: str) -> Names:
    """Yield data sets, files and settings of the recipe."""
    settings = list(complete_settings(ctx, incomplete))
    yield from settings or complete_data(incomplete)


def complete_data_and_search(ctx: Context, incomplete: str) -> Names:
    """Yield data sets, files and search settings."""
    settings = list(complete_search(ctx, incomplete))
    yield from settings or complete_data(incomplete)


def complete_settings(ctx: Context, incomplete: str) -> Names:
    """Yield settings of the named recipe, or of the default one, as `section.key=`."""
    words = _words(ctx)
    settings = dict(list_settings(ctx.params.get("recipe"), words))
    return _complete_override(settings, words, incomplete)


def complete_search(ctx: Context, incomplete: str) -> Names:
    """Yield search settings as `search.key=`."""
    settings = dict(list_settings(None, []))
    search = {name: settings[name] for name in settings if name.startswith("search.")}
    return _complete_override(search, _words(ctx), incomplete)


def _words(ctx: Context) -> list[str]:
    """Return the arguments given so far."""
    return [word for value in ctx.params.values() if isinstance(value, list) for word in value]


def _complete_override(settings: dict[str, list[str]], words: list[str], incomplete: str) -> Names:
    """Yield names of settings, or values of one.

    The only setting that begins with a text is followed by its default, so that shells add no space
    after the name.
    """
    key, equals, _ = incomplete.partition("=")
    if equals:
        yield from (f"{key}={value}" for value in settings.get(key, ()))
        return
    # Bash splits an argument at its equals sign and completes the last part.
    key = next((word for word in reversed(words) if word != "="), "")
    if key in settings:
        yield from settings[key]
        return
    matches = [name for name in settings if incomplete and name.startswith(incomplete)]
    yield from (f"{name}=" for name in matches)
    if len(matches) == 1:
        yield from (f"{matches[0]}={value}" for value in settings[matches[0]][:1])


def list_settings(recipe: str | None, overrides: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the settings of a recipe with their possible values, the default first.

    Args:
        recipe: A recipe's name or file; the default recipe of translation if not given.
        overrides: Arguments of the command; those of a `kind` change which settings there are.
    """
    values = _read_recipe(recipe)
    for argument in overrides:
        key, equals, value = argument.partition("=")
        *sections, name = key.split(".")
        if equals and name == "kind":
            table = values
            for section in sections:
                table = table.setdefault(section, {})
            table["kind"] = value
    table = json.loads(SETTINGS.read_text(encoding="utf-8"))
    task = table["tasks"].get(values.get("task", "generation"), "Recipe")
    yield from _walk(table["classes"], task, values, prefix="")


def _walk(
    classes: dict[str, Any], cls: str, values: dict[str, Any], *, prefix: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the settings of a class: values of a setting, or a class by each kind of a section."""
    for field, content in classes[cls].items():
        if isinstance(content, list):
            given = [values[field]] if field in values else []
            shown = [json.dumps(one) if isinstance(one, bool) else str(one) for one in given]
            yield f"{prefix}{field}", list(dict.fromkeys([*shown, *content]))
            continue
        inner = values.get(field, {})
        kind = inner.get("kind", next(iter(content)))
        chosen = content.get(kind, next(iter(content.values())))
        for name, allowed in _walk(classes, chosen, inner, prefix=f"{prefix}{field}."):
            is_kind = name == f"{prefix}{field}.kind"
            yield name, list(dict.fromkeys([*allowed, *content])) if is_kind else allowed


def _read_recipe(recipe: str | None) -> dict[str, Any]:
    path = Path(recipe or "")
    try:
        if path.suffix != ".toml":
            path = Path(str(_recipe_folder() / f"{recipe}.toml"))
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # No recipe is named, or one that does not exist yet.
        return {}


def _recipe_folder() -> Any:
    return resources.files("regard") / "recipes"


def _files(incomplete: str) -> Names:
    """Yield files and folders that begin with a text."""
    for path in sorted(iglob(escape(incomplete) + "*")):
        yield f"{path}/" if Path(path).is_dir() else path
