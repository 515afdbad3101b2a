"""Layouts: how a kind of Hugging Face checkpoint names the settings and weights of a model."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.tasks.base import Task

Config = dict[str, Any]
"""The values of a checkpoint's `config.json`."""


@dataclass(frozen=True, kw_only=True)
class Layout(ABC):
    """Names of settings and weights in one kind of Hugging Face checkpoint (layouts.toml)."""

    model_type: str
    """Its name in `config.json`."""
    architecture: str
    """The class of `transformers` that loads what we write."""
    task: str
    """The task of the run."""
    kinds: Mapping[str, str]
    """Parts of our model → the kind that each must have."""
    defaults: Mapping[str, Any]
    """Options that a `config.json` may leave out, and their default values."""
    required: Mapping[str, Sequence[Any]]
    """Options that change the computation, and the values that we support."""
    written: Mapping[str, Any]
    """Options with the same value in every checkpoint that we write."""
    settings: Mapping[str, str]
    """Settings of our encoder → options."""
    dropouts: Sequence[str]
    """Further options that are written with the encoder's dropout."""
    prefix: str
    """Beginning of the names of weights, which a checkpoint without a head leaves out."""
    names: Mapping[str, str]
    """Parts of our names of weights → parts of theirs, replaced in this order."""
    head_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Beginnings of our names of the head's weights → theirs; the first is what we write."""
    unused: str
    """Pattern of weights that a checkpoint may hold and that we do not use."""
    head: str = ""
    """Beginning of the names of weights that a checkpoint may lack altogether; empty = none."""
    head_role: str = "tells hidden tokens"
    """What those weights are for."""
    parts: Sequence[str]
    """The parts of our model that are written; others are left out."""
    allows_pickle: bool = False
    """Whether weights may be read from a pickle; only its tensors are read."""

    def complete(self, given: Mapping[str, Any]) -> Config:
        """Fill in the defaults of a `config.json`, or list all options that we do not support."""
        config = {**self.defaults, **given}
        faults = other_values(config, self.required)
        if config.get("quantization_config"):
            faults.append("`quantization_config` must be absent: quantised weights are not read")
        if faults:
            raise ConfigError(
                f"This '{self.model_type}' model cannot be imported: {'; '.join(faults)}."
            )
        return config

    @abstractmethod
    def read_vocabularies(self, folder: Path, config: Config) -> dict[str, Any]:
        """Read the checkpoint's vocabularies, by the name of the file that a run keeps each in."""

    def save_vocabularies(self, vocabularies: dict[str, Any], folder: Path) -> None:
        """Write what `read_vocabularies` returned into a run folder."""
        for name, vocabulary in vocabularies.items():
            vocabulary.save(folder / name)

    @abstractmethod
    def to_recipe(self, config: Config, vocabularies: dict[str, Any]) -> dict[str, Any]:
        """Return our recipe of the model, as plain values."""

    def encoder_settings(self, config: Config) -> dict[str, Any]:
        """Return the settings of our encoder that a `config.json` gives."""
        return {setting: config[option] for setting, option in self.settings.items()}

    def checkpoint_names(self, name: str, config: Config) -> tuple[str, ...]:
        """Return the names that our weight may have in a checkpoint; we write the first."""
        for ours, theirs in self.head_names.items():
            if name.startswith(ours):
                return tuple(beginning + name.removeprefix(ours) for beginning in theirs)
        bare = self.rename(name)
        return (self.prefix + bare, bare)

    def rename(self, name: str) -> str:
        """Replace the parts of our name of a weight."""
        for ours, theirs in self.names.items():
            name = name.replace(ours, theirs)
        return name

    def import_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert a weight of a checkpoint to ours, which has this name."""
        return tensor

    def export_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert our weight of this name to a checkpoint's."""
        return tensor

    def export_weights(self, task: Task[Any], config: Config) -> dict[str, Tensor]:
        """Return the weights of a task under their names in a checkpoint."""
        return {
            self.checkpoint_names(name, config)[0]: self.export_weight(name, tensor, config)
            for name, tensor in task.model.named_parameters()
            if name.split(".")[0] in self.parts
        }

    def absent(self, name: str, like: Tensor) -> Tensor | None:
        """Return the value of a weight that a checkpoint may leave out; None if it may not."""
        return None

    def unsupported(self, task: Task[Any]) -> list[str]:
        """List all settings of a task that cannot be written in this layout."""
        found = {f"model.{part}.kind": getattr(task.recipe.model, part).kind for part in self.kinds}
        required = {f"model.{part}.kind": [kind] for part, kind in self.kinds.items()}
        return other_values(found, required) or self.unsupported_values(task)

    @abstractmethod
    def unsupported_values(self, task: Task[Any]) -> list[str]:
        """List the same of a task whose parts have the right kinds."""

    def to_config(self, task: Task[Any]) -> Config:
        """Return the `config.json` of a task that this layout supports."""
        encoder = task.recipe.model.encoder
        return {
            "model_type": self.model_type,
            "architectures": [self.architecture],
            **self.written,
            **{option: getattr(encoder, setting) for setting, option in self.settings.items()},
            **dict.fromkeys(self.dropouts, encoder.dropout),
        }

    @abstractmethod
    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write the files that turn text or images into inputs."""

    @abstractmethod
    def difference(self, task: Task[Any], theirs: Any) -> float:
        """Return the largest difference between the logits of the two models for one input."""


def other_values(found: Mapping[str, Any], supported: Mapping[str, Sequence[Any]]) -> list[str]:
    """List the options or settings whose values are not supported; absent ones are.

    Args:
        found: The values by name.
        supported: The supported values by name.
    """
    return [
        f"`{name}` must be {' or '.join(map(_write, values))}, but is {_write(found[name])}"
        for name, values in supported.items()
        if found.get(name, values[0]) not in values
    ]


def _write(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


SIZES = ("dim", "num_layers", "num_heads", "feed_forward_dim", "max_length", "dropout")
"""Settings of a transformer that every layout supports with any value."""


def unsupported_settings(settings: Any, changes: Mapping[str, Any], *, section: str) -> list[str]:
    """List the settings that a layout does not support, with the value that each must have.

    Args:
        settings: The settings of an encoder or a decoder.
        changes: Required values that are not the defaults; sizes are free.
        section: The section of the recipe.
    """
    defaults = type(settings)()
    names = [one.name for one in fields(settings) if one.name not in SIZES]
    wanted = {name: [changes.get(name, getattr(defaults, name))] for name in names}
    found = {f"{section}.{name}": getattr(settings, name) for name in names}
    return other_values(found, {f"{section}.{name}": values for name, values in wanted.items()})


def example_tokens(max_length: int, *, vocab_size: int, pad: int) -> tuple[Tensor, Tensor]:
    """Return token ids and mask, (2, L) each, of two texts of which the second is padded."""
    length = min(8, max_length)
    ids = torch.arange(2 * length).view(2, length) % vocab_size
    mask = torch.arange(length) < torch.tensor([[length], [(length + 1) // 2]])
    return ids.masked_fill(~mask, pad), mask
