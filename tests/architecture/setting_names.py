"""Generate regard/cli/settings.json, the names of all settings for shell completion.

python tests/architecture/setting_names.py    # rewrites the file
"""

import dataclasses
import json
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from regard.cli.completion import SETTINGS
from regard.tasks.table import TASKS, recipe_class


def setting_names() -> str:
    """Return the recipe class of each task, and the settings of each class, as JSON."""
    classes: dict[str, dict[str, Any]] = {}
    tasks = {task: _add(recipe_class(task), classes) for task in TASKS}
    rows = (f"    {json.dumps(name)}: {json.dumps(classes[name])}" for name in sorted(classes))
    return (
        f'{{\n  "tasks": {json.dumps(tasks)},\n  "classes": {{\n' + ",\n".join(rows) + "\n  }\n}\n"
    )


def _add(cls: type, classes: dict[str, dict[str, Any]]) -> str:
    """Add a class and the classes of its sections, and return its name."""
    name = cls.__name__
    if name not in classes:
        classes[name] = {}
        hints, default = get_type_hints(cls), cls()
        for field in dataclasses.fields(cls):
            value = getattr(default, field.name)
            classes[name][field.name] = _content(hints[field.name], value, classes)
    return name


def _content(hint: Any, default: Any, classes: dict[str, dict[str, Any]]) -> Any:
    """Return the values of a setting, the default first, or the class of each kind of a section."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    sections = [member for member in members if dataclasses.is_dataclass(member)]
    if sections:
        # The default is the first kind.
        sections.sort(key=lambda cls: not isinstance(default, cls))
        return {kind: _add(cls, classes) for cls in sections for kind in _kinds(cls)}
    if bool in members:
        return [str(default).lower(), str(not default).lower()]
    if words := [
        word for member in members if get_origin(member) is Literal for word in get_args(member)
    ]:
        return list(dict.fromkeys([str(default), *map(str, words)]))
    has_text = default is not None and not isinstance(default, tuple) and str(default)
    return [str(default)] if has_text else []


def _kinds(cls: type) -> list[str]:
    hint = get_type_hints(cls).get("kind")
    return [str(kind) for kind in get_args(hint)] or [""]


if __name__ == "__main__":
    SETTINGS.write_text(setting_names(), encoding="utf-8")
