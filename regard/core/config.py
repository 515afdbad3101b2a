"""Settings as typed dataclasses, read from TOML.

A settings class is `@dataclass(frozen=True, kw_only=True)` with a docstring under each field,
derived from `Config`, which checks the limits in its annotations. Alternatives are a union of such
classes, distinguished by a field `kind`.
"""

import ast
import dataclasses
import functools
import inspect
import json
import math
import textwrap
import tomllib
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from regard.core.errors import ConfigError
from regard.core.files import check_regular
from regard.core.records import shown, shown_name
from regard.core.tables import did_you_mean, nearest, one_of

Settings = TypeVar("Settings")

MAX_INT = 2**63 - 1
"""Largest absolute value of an integer: that of torch."""

MAX_SUGGESTIONS = 3
"""Largest number of settings of the same name that a message suggests."""


# Limits are not compared by value, since `Annotated` would treat 0.0 and 0 as equal.
@dataclasses.dataclass(frozen=True, eq=False)
class AtLeast:
    """Minimum of a setting, for annotations."""

    low: float

    def check(self, name: str, value: float) -> None:
        """Raise `ConfigError` if the value is below the limit."""
        at_least(name, value, self.low)


@dataclasses.dataclass(frozen=True, eq=False)
class Within:
    """Range of a setting, both ends included, for annotations."""

    low: float
    high: float

    def check(self, name: str, value: float) -> None:
        """Raise `ConfigError` if the value is outside the range."""
        within(name, value, low=self.low, high=self.high)


@dataclasses.dataclass(frozen=True, eq=False)
class PerKind:
    """Marks a setting that another kind does not take over, since it has another scale there."""


Positive = Annotated[int, AtLeast(1)]
NonNegative = Annotated[int, AtLeast(0)]
NonNegativeFloat = Annotated[float, AtLeast(0.0)]
UnitInterval = Annotated[float, Within(0.0, 1.0)]
DropoutRate = Annotated[float, Within(0.0, 0.99)]


class Config:
    """Base class of settings: checks the limits in the annotations of its fields.

    A subclass with further checks calls `super().__post_init__()` first. A field that a subclass
    redeclares without a limit keeps the limit of its base class.
    """

    def __post_init__(self) -> None:
        """Raise `ConfigError` if a setting is outside its limits."""
        cls: type = type(self)
        for name, limit in limits(cls).items():
            limit.check(name, getattr(self, name))


@functools.cache
def limits(cls: type) -> dict[str, AtLeast | Within]:
    """Return the limits in the annotations of a settings class, by field name."""
    return {name: mark for name, mark in marks(cls) if isinstance(mark, AtLeast | Within)}


def marks(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield field names and the marks in their annotations, base classes first."""
    for owner in reversed(cls.__mro__):
        for name, hint in get_type_hints(owner, include_extras=True).items():
            for mark in getattr(hint, "__metadata__", ()):
                yield name, mark


def from_dict(cls: type[Settings], values: Mapping[str, Any], path: str = "") -> Settings:
    """Build a settings object from plain values. Errors name the path of the setting.

    Args:
        cls: A settings dataclass.
        values: Contents of a TOML or JSON file.
        path: Dotted path of `values` in the file, for messages.
    """
    hints = get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            key = shown_name(key)
            known = ", ".join(f"'{name}'" for name in fields)
            raise ConfigError(
                f"`{dotted(path, key)}` is not a setting.{_suggest(key, cls, values, path=path)} "
                f"Known here: {known}."
            )
    arguments = {
        key: convert(hints[key], value, dotted(path, key)) for key, value in values.items()
    }
    for name, field in fields.items():
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        if name not in arguments and not has_default:
            raise ConfigError(f"`{dotted(path, name)}` must be given; it has no default.")
    try:
        return cls(**arguments)
    except ConfigError as error:
        message = str(error)
        if path and message.startswith("`"):
            message = f"`{path}.{message[1:]}"
        raise ConfigError(message) from None


def to_dict(settings: Any) -> dict[str, Any]:
    """Convert a settings object to plain values for JSON. Settings that are None are omitted."""
    return {
        field.name: _plain(getattr(settings, field.name))
        for field in dataclasses.fields(settings)
        if getattr(settings, field.name) is not None
    }


def flatten(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted names and the values of plain settings, as `to_dict` returns them."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, dotted(path, name))
        else:
            yield dotted(path, name), value


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file. Raise `ConfigError` if it is missing or invalid."""
    check_regular(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None


def explain(settings: Any, path: str = "") -> str:
    """Format a settings object as TOML, with the documentation and choices of each setting."""
    hints = get_type_hints(type(settings))
    docs = field_docs(type(settings))
    lines: list[str] = []
    sections: list[str] = []
    # The kind comes first, since the other settings depend on it.
    for field in sorted(dataclasses.fields(settings), key=lambda field: field.name != "kind"):
        value = getattr(settings, field.name)
        inner = dotted(path, field.name)
        if dataclasses.is_dataclass(value):
            comment = _comment(docs.get(field.name, ""), hints[field.name])
            sections.append(f"\n{comment}[{inner}]\n{explain(value, inner)}")
            continue
        lines.append(_comment(docs.get(field.name, ""), hints[field.name]).rstrip("\n"))
        line = f"{field.name} = {_toml(value)}" if value is not None else f"# {field.name} ="
        lines.append(line)
    return "\n".join(line for line in lines if line) + "\n" + "".join(sections)


def field_docs(cls: type) -> dict[str, str]:
    """Return the docstring under each field of a settings class."""
    docs: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(owner):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(definition, ast.ClassDef)
        for statement, after in zip(definition.body, definition.body[1:], strict=False):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                docs[statement.target.id] = inspect.cleandoc(str(after.value.value))
    return docs


def at_least(name: str, value: float, low: float) -> None:
    """Raise `ConfigError` if a setting is below `low`."""
    if not value >= low:  # Unlike `value < low`, this also catches NaN.
        raise ConfigError(f"`{name}` must be at least {low}, but is {value}.")


def within(name: str, value: float, *, low: float, high: float) -> None:
    """Raise `ConfigError` if a setting is outside `low` … `high`, both included."""
    if not low <= value <= high:
        raise ConfigError(f"`{name}` must be between {low} and {high}, but is {value}.")


def dotted(path: str, name: str) -> str:
    """Return the dotted path of a setting in a section."""
    return f"{path}.{name}" if path else name


def convert(hint: Any, value: Any, path: str) -> Any:
    """Convert a plain value to the type of a setting, or raise `ConfigError`.

    Args:
        hint: Type of the setting.
        value: The plain value.
        path: Dotted path of the setting, for messages.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_union([a for a in arguments if a is not type(None)], value, path)
    if origin is Literal:
        return _convert_choice(arguments, value, path)
    if origin is tuple:
        return _convert_tuple(arguments, value, path)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise _wrong_type(path, "a table", value)
        return from_dict(hint, value, path)  # type: ignore[arg-type]
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise ConfigError(f"`{path}` must be at most {MAX_INT:,}, but is {shown(value)}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"`{path}` must be finite, but is {value}.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise _wrong_type(path, hint.__name__, value)
    return value


def _convert_choice(choices: tuple[Any, ...], value: Any, path: str) -> Any:
    if value not in choices:
        name = shown_name(str(value))
        suggestion = did_you_mean(name, map(str, choices))
        raise ConfigError(
            f"`{path}` must be {one_of(map(str, choices))}, but is '{name}'.{suggestion}"
        )
    return value


def _convert_tuple(kinds: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong_type(path, "a list", value)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise ConfigError(f"`{path}` must have {len(kinds)} values, but has {len(value)}.")
    return tuple(
        convert(kind, item, f"{path}[{number}]")
        for number, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _convert_union(choices: list[Any], value: Any, path: str) -> Any:
    if len(choices) == 1:
        return convert(choices[0], value, path)
    if not any(map(dataclasses.is_dataclass, choices)):
        return _convert_plain_or_word(choices, value, path)
    if not isinstance(value, Mapping):
        raise _wrong_type(path, "a table with a `kind`", value)
    kind = value.get("kind")
    member = class_of_kind(choices, kind)
    if member is None:
        kinds = [kind for choice in choices for kind in _kinds(choice)]
        name = shown_name(str(kind))
        given = "is missing" if kind is None else f"is '{name}'"
        raise ConfigError(
            f"`{path}.kind` must be {one_of(kinds)}, but {given}.{did_you_mean(name, kinds)}"
        )
    return from_dict(member, value, path)


def _convert_plain_or_word(choices: list[Any], value: Any, path: str) -> Any:
    """Convert a value to one of the words of a literal or to the other type, such as a number."""
    words = [word for choice in choices for word in get_args(choice)]
    if value in words:
        return value
    (plain,) = (choice for choice in choices if get_origin(choice) is not Literal)
    try:
        return convert(plain, value, path)
    except ConfigError:
        listed = " or ".join([plain.__name__, *(f"'{word}'" for word in words)])
        raise _wrong_type(path, listed, value) from None


def _kinds(cls: Any) -> list[str]:
    return [str(kind) for kind in get_args(get_type_hints(cls).get("kind"))]


def settings_classes(hint: Any) -> list[Any]:
    """Return the settings classes of a type: one, several alternatives, or none."""
    choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [choice for choice in choices if dataclasses.is_dataclass(choice)]


def class_of_kind(members: Sequence[Any], kind: Any) -> Any:
    """Return the settings class of a kind, or None."""
    # Without a kind, use the class that has several kinds, since it has a default.
    several = [member for member in members if len(_kinds(member)) > 1]
    if kind is None and len(several) == 1:
        return several[0]
    return next((member for member in members if kind in _kinds(member)), None)


def _suggest(key: str, cls: Any, values: Mapping[str, Any], *, path: str) -> str:
    """Return ` Did you mean …?` with a name of this section or full names of sections below."""
    paths: dict[str, list[str]] = {}
    for name, inner in _inner_settings(cls, values, path):
        paths.setdefault(name, []).append(inner)
    here = did_you_mean(key, [field.name for field in dataclasses.fields(cls)])
    if key not in paths and here:
        return here
    close = nearest(key, paths)
    if not close:
        return ""
    found = sorted(paths[close[0]], key=lambda inner: inner.count("."))[:MAX_SUGGESTIONS]
    return f" Did you mean {' or '.join(f'`{inner}`' for inner in found)}?"


def _inner_settings(cls: Any, values: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Yield names and dotted paths of the settings in all sections below a settings class."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        table = values.get(field.name)
        table = table if isinstance(table, Mapping) else {}
        members = settings_classes(hints[field.name])
        member = members[0] if len(members) == 1 else class_of_kind(members, table.get("kind"))
        if member is None and members and callable(field.default_factory):
            member = type(field.default_factory())
        if member is not None:
            section = dotted(path, field.name)
            for inner in dataclasses.fields(member):
                yield inner.name, f"{section}.{inner.name}"
            yield from _inner_settings(member, table, section)


def _wrong_type(path: str, wanted: str, value: Any) -> ConfigError:
    return ConfigError(
        f"`{path}` must be {wanted}, but is {shown(value)} ({type(value).__name__})."
    )


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _comment(doc: str, hint: Any) -> str:
    choices = _choices(hint)
    if len(choices) > 1:
        doc = f"{doc} One of: {', '.join(choices)}."
    return "".join(f"# {line}\n" for line in textwrap.wrap(" ".join(doc.split()), 96))


def _choices(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(argument) for argument in get_args(hint)]
    members = settings_classes(hint)
    return [kind for member in members for kind in _kinds(member)] if len(members) > 1 else []


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes are valid TOML. DEL is the only character that only TOML escapes.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
