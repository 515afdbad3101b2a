"""Overrides `section.key=value` of settings, and the settings that a new kind takes over."""

import copy
import dataclasses
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_type_hints

from regard.core.config import (
    PerKind,
    class_of_kind,
    convert,
    limits,
    marks,
    settings_classes,
)
from regard.core.errors import ConfigError
from regard.core.logging import logger


def override(
    values: Mapping[str, Any], overrides: Iterable[str], cls: type | None = None
) -> dict[str, Any]:
    """Return a copy of `values` with overrides such as `train.max_steps=200`.

    With an override of a `kind`, settings that the new kind also has are kept if their value is
    valid there, and the others are dropped; one line is logged. Settings marked with `PerKind`,
    such as learning rates, are dropped.

    Args:
        values: Settings as plain values.
        overrides: Overrides `section.key=value`.
        cls: Settings class of `values`; without it, a new kind keeps nothing and logs nothing.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(values))
    pairs = [_parse_override(text) for text in overrides]
    given = {key for key, _ in pairs}
    # Kinds first, the outer before the inner, so that the order of the overrides does not matter.
    for key, value in sorted(pairs, key=lambda pair: _override_order(pair[0])):
        *sections, name = key.split(".")
        table = changed
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError(f"`{key}` is not a setting: `{section}` holds a single value.")
        if name == "kind" and table.get("kind", value) != value:
            prefix = key.removesuffix("kind")
            for other in given:
                if other.startswith(prefix):  # set below, so neither kept nor dropped
                    table.pop(other.removeprefix(prefix), None)
            new = class_of_kind(_classes_at(cls, changed, sections), value)
            _change_kind(table, f"{key}={value}", new)
        table[name] = value
    return changed


def _override_order(key: str) -> tuple[bool, int]:
    return key.rpartition(".")[2] != "kind", key.count(".")


def _parse_override(override: str) -> tuple[str, Any]:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f"'{override}' must have the form section.key=value.")
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key, text


def _classes_at(cls: Any, values: Mapping[str, Any], sections: Sequence[str]) -> list[Any]:
    """Return the alternative settings classes of a section; none if it does not exist."""
    found = settings_classes(cls)
    for section in sections:
        owner = found[0] if len(found) == 1 else class_of_kind(found, values.get("kind"))
        found = settings_classes(get_type_hints(owner).get(section)) if owner else []
        values = values.get(section, {})
    return found


def _change_kind(table: dict[str, Any], text: str, new: Any) -> None:
    """Drop the settings that a class does not take over; log those kept, changed and dropped.

    Changed are those that have another default in the class.

    Args:
        table: Settings of the previous kind, changed in place.
        text: The override, for the message.
        new: Settings class of the new kind; None if it is not known, which drops all.
    """
    old = {name: table[name] for name in table if name != "kind"}
    kept = [name for name in old if new and _is_taken_over(new, name, old[name])]
    dropped = [name for name in old if name not in kept]
    for name in dropped:
        del table[name]
    texts: dict[str, list[str]] = {"kept": [], "changed": [], "dropped": []}
    defaults = _defaults(new) if new else {}
    for name, value in old.items():
        setting = _assignment(name, value)
        if name in kept or (name in defaults and defaults[name] == value):
            texts["kept"].append(setting)
        elif name in defaults:
            texts["changed"].append(f"{setting} → {defaults[name]!r}")
        else:
            texts["dropped"].append(setting)
    parts = [f"{what} {', '.join(settings)}" for what, settings in texts.items() if settings]
    if new and parts:
        logger.info("%s: %s.", text, "; ".join(parts))


def _defaults(cls: Any) -> dict[str, Any]:
    """Return the defaults of a settings class, except for those of its sections."""
    fields = dataclasses.fields(cls)
    return {one.name: one.default for one in fields if one.default is not dataclasses.MISSING}


def _is_taken_over(cls: Any, name: str, value: Any) -> bool:
    """Return whether a setting of another class has the same meaning here and a valid value."""
    hints = get_type_hints(cls)
    is_own = any(other == name and isinstance(mark, PerKind) for other, mark in marks(cls))
    if name not in hints or is_own:
        return False
    try:
        converted = convert(hints[name], value, name)
        if name in limits(cls):
            limits(cls)[name].check(name, converted)
    except ConfigError:
        return False
    return True


def _assignment(name: str, value: Any) -> str:
    return name if isinstance(value, Mapping) else f"{name}={value!r}"
