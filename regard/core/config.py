"""Settings as typed dataclasses; TOML and `section.key=value` are their handwriting.

A settings class is `@dataclass(frozen=True, kw_only=True)` with a one-line docstring under each
field, derived from `Config`, which checks the limits that stand in its annotations. Alternatives
are a union of such classes told apart by a field `kind`.
"""

import ast
import copy
import dataclasses
import functools
import inspect
import json
import textwrap
import tomllib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from regard.core.errors import ConfigError
from regard.core.tables import near, one_of

Settings = TypeVar("Settings")


# Limits are not compared by value, since `Annotated` would take the text of 0.0 for that of 0.
@dataclasses.dataclass(frozen=True, eq=False)
class AtLeast:
    """The least value of a setting, written in its annotation."""

    low: float

    def check(self, name: str, value: float) -> None:
        """Raise a `ConfigError` if the value is below the limit."""
        at_least(name, value, self.low)


@dataclasses.dataclass(frozen=True, eq=False)
class Within:
    """The range of a setting, both ends allowed, written in its annotation."""

    low: float
    high: float

    def check(self, name: str, value: float) -> None:
        """Raise a `ConfigError` if the value is outside the range."""
        within(name, value, low=self.low, high=self.high)


Positive = Annotated[int, AtLeast(1)]
NonNegative = Annotated[int, AtLeast(0)]
NonNegativeFloat = Annotated[float, AtLeast(0.0)]
UnitInterval = Annotated[float, Within(0.0, 1.0)]
DropoutRate = Annotated[float, Within(0.0, 0.99)]


class Config:
    """Base of all settings classes: checks the limits in the annotations of its fields.

    A subclass with further rules calls `super().__post_init__()` first. A field that a subclass
    declares again without a limit keeps the limit of its base class.
    """

    def __post_init__(self) -> None:
        """Raise a `ConfigError` if a setting is outside its limits."""
        cls: type = type(self)
        for name, limit in limits(cls).items():
            limit.check(name, getattr(self, name))


@functools.cache
def limits(cls: type) -> dict[str, AtLeast | Within]:
    """Return the limits in the annotations of a settings class, by the names of its fields."""
    return {
        name: limit
        for owner in reversed(cls.__mro__)
        for name, hint in get_type_hints(owner, include_extras=True).items()
        for limit in getattr(hint, "__metadata__", ())
    }


def from_dict(cls: type[Settings], values: Mapping[str, Any], place: str = "") -> Settings:
    """Build a settings object from plain values, naming the place of any fault.

    Args:
        cls: A settings dataclass.
        values: What a TOML or JSON file holds.
        place: The dotted place of `values` inside the whole, for messages.
    """
    hints = get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            known = ", ".join(f"'{name}'" for name in fields)
            raise ConfigError(
                f"`{_dotted(place, key)}` is not a setting.{near(key, fields)} Known here: {known}."
            )
    arguments = {
        key: _convert(hints[key], value, _dotted(place, key)) for key, value in values.items()
    }
    for name, field in fields.items():
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        if name not in arguments and not has_default:
            raise ConfigError(f"`{_dotted(place, name)}` must be given; it has no default.")
    try:
        return cls(**arguments)
    except ConfigError as error:
        message = str(error)
        if place and message.startswith("`"):
            message = f"`{place}.{message[1:]}"
        raise ConfigError(message) from None


def to_dict(settings: Any) -> dict[str, Any]:
    """Turn a settings object into plain values that JSON can hold; absent ones are left out."""
    return {
        field.name: _plain(getattr(settings, field.name))
        for field in dataclasses.fields(settings)
        if getattr(settings, field.name) is not None
    }


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or say where it is wrong."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None


def override(values: Mapping[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Return a copy of `values` changed by words such as `train.max_steps=200`.

    A word that changes a `kind` also drops the settings of the kind that was there before,
    because they belong to another class.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(values))
    pairs = [_parse_word(word) for word in words]
    # Kinds first, so that the order of the words does not matter.
    for key, value in sorted(pairs, key=lambda pair: not pair[0].endswith("kind")):
        *sections, name = key.split(".")
        table = changed
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError(f"`{key}` is not a setting: `{section}` holds a single value.")
        if name == "kind" and table.get("kind", value) != value:
            table.clear()
        table[name] = value
    return changed


def explain(settings: Any, place: str = "") -> str:
    """Write a settings object as TOML, each setting with its meaning and its choices."""
    hints = get_type_hints(type(settings))
    notes = field_docs(type(settings))
    lines: list[str] = []
    sections: list[str] = []
    # The kind comes first: what follows depends on it.
    for field in sorted(dataclasses.fields(settings), key=lambda field: field.name != "kind"):
        value = getattr(settings, field.name)
        inner = _dotted(place, field.name)
        if dataclasses.is_dataclass(value):
            note = _comment(notes.get(field.name, ""), hints[field.name])
            sections.append(f"\n{note}[{inner}]\n{explain(value, inner)}")
            continue
        lines.append(_comment(notes.get(field.name, ""), hints[field.name]).rstrip("\n"))
        shown = f"{field.name} = {_toml(value)}" if value is not None else f"# {field.name} ="
        lines.append(shown)
    return "\n".join(line for line in lines if line) + "\n" + "".join(sections)


def field_docs(cls: type) -> dict[str, str]:
    """Return the docstring written under each field of a settings class."""
    notes: dict[str, str] = {}
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
                notes[statement.target.id] = inspect.cleandoc(str(after.value.value))
    return notes


def at_least(name: str, value: float, least: float) -> None:
    """Raise a `ConfigError` if a setting is below its least value."""
    if not value >= least:  # Unlike `value < least`, this also catches NaN.
        raise ConfigError(f"`{name}` must be at least {least}, but is {value}.")


def within(name: str, value: float, *, low: float, high: float) -> None:
    """Raise a `ConfigError` if a setting is outside `low` … `high`, both allowed."""
    if not low <= value <= high:
        raise ConfigError(f"`{name}` must be between {low} and {high}, but is {value}.")


def _dotted(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _parse_word(word: str) -> tuple[str, Any]:
    key, equals, text = word.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f"'{word}' must have the form section.key=value.")
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key, text


def _convert(hint: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_union([a for a in arguments if a is not type(None)], value, place)
    if origin is Literal:
        return _convert_choice(arguments, value, place)
    if origin is tuple:
        return _convert_tuple(arguments, value, place)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise _wrong_type(place, "a table", value)
        return from_dict(hint, value, place)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise _wrong_type(place, hint.__name__, value)
    return value


def _convert_choice(choices: tuple[Any, ...], value: Any, place: str) -> Any:
    if value not in choices:
        guess = near(str(value), map(str, choices))
        raise ConfigError(
            f"`{place}` must be {one_of(map(str, choices))}, but is '{value}'.{guess}"
        )
    return value


def _convert_tuple(kinds: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong_type(place, "a list", value)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise ConfigError(f"`{place}` must have {len(kinds)} values, but has {len(value)}.")
    return tuple(
        _convert(kind, item, f"{place}[{number}]")
        for number, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _convert_union(choices: list[Any], value: Any, place: str) -> Any:
    if len(choices) == 1:
        return _convert(choices[0], value, place)
    if not isinstance(value, Mapping):
        raise _wrong_type(place, "a table with a `kind`", value)
    kinds = {kind: choice for choice in choices for kind in _kinds(choice)}
    # Where no kind is named, the class is meant that has several, since it has a usual one.
    several = [choice for choice in choices if len(_kinds(choice)) > 1]
    if "kind" not in value and len(several) == 1:
        return from_dict(several[0], value, place)
    kind = value.get("kind")
    if kind not in kinds:
        given = "is missing" if kind is None else f"is '{kind}'"
        raise ConfigError(
            f"`{place}.kind` must be {one_of(kinds)}, but {given}.{near(str(kind), kinds)}"
        )
    return from_dict(kinds[kind], value, place)


def _kinds(cls: Any) -> list[str]:
    return [str(kind) for kind in get_args(get_type_hints(cls)["kind"])]


def _wrong_type(place: str, wanted: str, value: Any) -> ConfigError:
    return ConfigError(f"`{place}` must be {wanted}, but is {value!r} ({type(value).__name__}).")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _comment(note: str, hint: Any) -> str:
    choices = _choices(hint)
    if len(choices) > 1:
        note = f"{note} One of: {', '.join(choices)}."
    return "".join(f"# {line}\n" for line in textwrap.wrap(" ".join(note.split()), 96))


def _choices(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(argument) for argument in get_args(hint)]
    if get_origin(hint) in (Union, types.UnionType):
        members = [a for a in get_args(hint) if dataclasses.is_dataclass(a)]
        return [kind for member in members for kind in _kinds(member)] if len(members) > 1 else []
    return []


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # What JSON escapes TOML can read; DEL is the one character that only TOML escapes.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
