"""A layout: how another house writes down a model that we have, too."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from regard.core.errors import ConfigError
from regard.tasks.base import Task


class Layout(ABC):
    """What a kind of Hugging Face folder holds, and what we call it.

    Both directions go by our names: a weight of ours knows how it is spelled there.
    """

    model_type: ClassVar[str]
    """How `config.json` calls it."""
    architecture: ClassVar[str]
    """The class of `transformers` that loads what we write."""
    task: ClassVar[str]
    """What our run is for."""
    defaults: ClassVar[Mapping[str, Any]]
    """Options that a `config.json` may leave out, and what they mean then."""
    required: ClassVar[Mapping[str, tuple[Any, ...]]]
    """Options that change the mathematics, and the values whose mathematics is ours."""
    unused: ClassVar[str]
    """Pattern of weights that a folder may hold and we have no use for."""
    head: ClassVar[str] = ""
    """How the names of weights begin that a folder may lack altogether; empty = none."""
    head_role: ClassVar[str] = "tells hidden tokens"
    """What those weights are for."""
    parts: ClassVar[tuple[str, ...]]
    """The parts of our model that it has a place for; others are left out."""
    allows_pickle: ClassVar[bool] = False
    """Whether such folders may hold a pickle; only its tensors are read."""

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Fill up what a `config.json` leaves out, or list all in it that we cannot do."""
        config = {**self.defaults, **given}
        faults = [
            f"`{name}` must be {_any_of(values)}, but is {_write(config[name])}"
            for name, values in self.required.items()
            if config.get(name, values[0]) not in values
        ]
        if config.get("quantization_config"):
            faults.append("`quantization_config` must be absent: quantised weights are not read")
        if faults:
            raise ConfigError(
                f"This '{self.model_type}' model cannot be imported: {'; '.join(faults)}."
            )
        return config

    @abstractmethod
    def read_vocabularies(self, folder: Path, config: dict[str, Any]) -> dict[str, Any]:
        """Read the folder's vocabularies, by the name of the file that a run keeps each in."""

    def save_vocabularies(self, vocabularies: dict[str, Any], folder: Path) -> None:
        """Write what `read_vocabularies` returned into a run folder."""
        for name, vocabulary in vocabularies.items():
            vocabulary.save(folder / name)

    @abstractmethod
    def to_recipe(self, config: dict[str, Any], vocabularies: dict[str, Any]) -> dict[str, Any]:
        """Return our recipe of the model, as plain values."""

    @abstractmethod
    def spellings(self, name: str, config: dict[str, Any]) -> tuple[str, ...]:
        """Return what our weight may be called there; the first is what we write."""

    def to_ours(self, name: str, tensor: Tensor, config: dict[str, Any]) -> Tensor:
        """Turn a weight of theirs into ours, which we call by this name."""
        return tensor

    def absent(self, name: str, like: Tensor) -> Tensor | None:
        """Return what a weight is if the folder has none; nothing if it must have one."""
        return None

    @abstractmethod
    def misfits(self, task: Task[Any]) -> list[str]:
        """List all that keeps a task of ours from being written in this layout."""

    @abstractmethod
    def to_config(self, task: Task[Any]) -> dict[str, Any]:
        """Return the `config.json` of a task that fits."""

    @abstractmethod
    def to_theirs(self, task: Task[Any], config: dict[str, Any]) -> dict[str, Tensor]:
        """Return the weights of a task that fits, under their names."""

    @abstractmethod
    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write what cuts text into tokens, or brings images into one form."""

    @abstractmethod
    def difference(self, task: Task[Any], theirs: Any) -> float:
        """Return how far apart the two models' answers to one and the same input are at most."""


def _any_of(values: tuple[Any, ...]) -> str:
    return " or ".join(_write(value) for value in values)


def _write(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


SIZES = ("dim", "num_layers", "num_heads", "feed_forward_dim", "max_length", "dropout")
"""Settings of a transformer that every layout leaves open."""


def misfits_of(settings: Any, changes: Mapping[str, Any], *, place: str) -> list[str]:
    """Say for each setting that is not as a layout needs it what it must be, and what it is.

    Args:
        settings: What one side of a transformer was told.
        changes: What a layout needs other than the defaults; sizes are open.
        place: Where the settings stand in a recipe.
    """
    defaults = type(settings)()
    names = [field.name for field in fields(settings) if field.name not in SIZES]
    wanted = {**{name: getattr(defaults, name) for name in names}, **changes}
    return [
        f"`{place}.{name}` must be {_write(value)}, but is {_write(getattr(settings, name))}"
        for name, value in wanted.items()
        if getattr(settings, name) != value
    ]


def rename(name: str, table: Mapping[str, str]) -> str:
    """Replace parts of a dotted name, in the table's order."""
    for ours, theirs in table.items():
        name = name.replace(ours, theirs)
    return name
