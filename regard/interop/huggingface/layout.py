"""Layouts: names of the settings and weights of a model in Hugging Face checkpoints."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.core.records import TYPE_NAMES, shown
from regard.tasks.base import Task

Config = dict[str, Any]
"""Values of a checkpoint's `config.json`."""


@dataclass(frozen=True, kw_only=True)
class Layout(ABC):
    """Names of settings and weights in one kind of Hugging Face checkpoint (layouts.toml)."""

    model_type: str
    """Value of `model_type` in `config.json`."""
    architecture: str
    """Class of `transformers` that loads exported checkpoints."""
    task: str
    """Task of the run."""
    kinds: Mapping[str, str]
    """Parts of the model of the run → required `kind` of each."""
    defaults: Mapping[str, Any]
    """Options that a `config.json` may leave out, and their default values."""
    required: Mapping[str, Sequence[Any]]
    """Options that change the computation, and their supported values."""
    written: Mapping[str, Any]
    """Options with the same value in every exported checkpoint."""
    settings: Mapping[str, str]
    """Settings of our encoder → options."""
    dropouts: Sequence[str]
    """Further options that are written with the encoder's dropout."""
    prefix: str
    """Prefix of the names of weights, absent in a checkpoint without a head."""
    names: Mapping[str, str]
    """Parts of the names of weights → parts of the checkpoint's, replaced in this order."""
    head_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Prefixes of our names of the head's weights → the checkpoint's; the first is written."""
    unused: str
    """Pattern of weights in checkpoints that are ignored."""
    head: str = ""
    """Prefix of the weights of the head, which a checkpoint may lack; empty for none."""
    head_role: str = "predicts masked tokens"
    """Purpose of the head, for a message."""
    parts: Sequence[str]
    """Parts of the model of the run that are exported; others are left out."""

    def complete(self, given: Mapping[str, Any]) -> Config:
        """Add defaults to a `config.json`; raise `ConfigError` with all unsupported options."""
        config = {**self.defaults, **given}
        faults = _list_wrong_types(config, self.defaults)
        faults += list_unsupported(config, self.required)
        if config.get("quantization_config"):
            faults.append("`quantization_config` must be absent: quantised weights are not read")
        if faults:
            raise ConfigError(
                f"This '{self.model_type}' model cannot be imported: {'; '.join(faults)}."
            )
        return config

    @abstractmethod
    def read_vocabularies(self, folder: Path, config: Config) -> dict[str, Any]:
        """Read the checkpoint's vocabularies, keyed by their file names in a run folder."""

    def save_vocabularies(self, vocabularies: dict[str, Any], folder: Path) -> None:
        """Write the result of `read_vocabularies` into a run folder."""
        for name, vocabulary in vocabularies.items():
            vocabulary.save(folder / name)

    @abstractmethod
    def to_recipe(self, config: Config, vocabularies: dict[str, Any]) -> dict[str, Any]:
        """Return the recipe of the model as a dictionary."""

    def encoder_settings(self, config: Config) -> dict[str, Any]:
        """Return the settings of our encoder from a `config.json`."""
        return {setting: config[option] for setting, option in self.settings.items()}

    def checkpoint_names(self, name: str, config: Config) -> tuple[str, ...]:
        """Return the possible names of a weight in a checkpoint; exports use the first."""
        for ours, theirs in self.head_names.items():
            if name.startswith(ours):
                return tuple(prefix + name.removeprefix(ours) for prefix in theirs)
        bare = self.rename(name)
        return (self.prefix + bare, bare)

    def rename(self, name: str) -> str:
        """Convert the name of a weight of the run to the checkpoint's."""
        for ours, theirs in self.names.items():
            name = name.replace(ours, theirs)
        return name

    def import_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert a checkpoint's weight to the weight `name` of the run."""
        return tensor

    def export_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert the weight `name` of the run to the checkpoint's."""
        return tensor

    def export_weights(self, task: Task[Any], config: Config) -> dict[str, Tensor]:
        """Return the weights of a task by their names in a checkpoint."""
        return {
            self.checkpoint_names(name, config)[0]: self.export_weight(name, tensor, config)
            for name, tensor in task.model.named_parameters()
            if name.split(".")[0] in self.parts
        }

    def default_weight(self, name: str, like: Tensor) -> Tensor | None:
        """Return the value of a weight that a checkpoint may omit; None if it is required."""
        return None

    def unsupported(self, task: Task[Any]) -> list[str]:
        """List all settings of a task that this layout does not support."""
        kinds = {f"model.{part}.kind": getattr(task.recipe.model, part).kind for part in self.kinds}
        required = {f"model.{part}.kind": [kind] for part, kind in self.kinds.items()}
        return list_unsupported(kinds, required) or self.unsupported_values(task)

    @abstractmethod
    def unsupported_values(self, task: Task[Any]) -> list[str]:
        """List all unsupported settings of a task whose parts have the required kinds."""

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
        """Write the files of tokenizers or image preprocessing."""

    @abstractmethod
    def max_difference(self, task: Task[Any], reference: Any) -> float:
        """Return the maximum absolute difference of the logits of the two models."""


def _list_wrong_types(config: Config, defaults: Mapping[str, Any]) -> list[str]:
    """List the options whose values have another type than their defaults."""
    faults = []
    for option, default in defaults.items():
        value, kind = config[option], type(default)
        is_right = isinstance(value, kind) and isinstance(value, bool) == isinstance(default, bool)
        if kind is float:
            is_right = type(value) in (int, float) and math.isfinite(value)
        elif kind is int and isinstance(value, list) and option in SIDES_OF_IMAGES:
            is_right = bool(value) and all(type(side) is int for side in value)
        if not is_right:
            faults.append(f"`{option}` must be {TYPE_NAMES[kind]}, but is {shown(value)}")
    return faults


def list_unsupported(
    actual: Mapping[str, Any], supported: Mapping[str, Sequence[Any]]
) -> list[str]:
    """List the options or settings with unsupported values; absent ones are supported.

    Args:
        actual: Values by name.
        supported: Supported values by name.
    """
    return [
        f"`{name}` must be {' or '.join(map(_write, values))}, but is {_write(actual[name])}"
        for name, values in supported.items()
        if actual.get(name, values[0]) not in values
    ]


def _write(value: Any) -> str:
    return f"'{value:.80}'" if isinstance(value, str) else shown(value).lower()


SIDES_OF_IMAGES = ("image_size", "patch_size")
"""Options that may be one number or one for each side."""

SIZES = ("dim", "num_layers", "num_heads", "feed_forward_dim", "max_length", "dropout")
"""Settings of a transformer that every layout supports with any value."""


def unsupported_settings(settings: Any, changes: Mapping[str, Any], *, section: str) -> list[str]:
    """List the settings that a layout does not support, with the value that each must have.

    Args:
        settings: Settings of an encoder or a decoder.
        changes: Required values that differ from the defaults; sizes may have any value.
        section: Section of the recipe.
    """
    defaults = type(settings)()
    names = [one.name for one in fields(settings) if one.name not in SIZES]
    required = {f"{section}.{name}": [changes.get(name, getattr(defaults, name))] for name in names}
    actual = {f"{section}.{name}": getattr(settings, name) for name in names}
    return list_unsupported(actual, required)


def example_tokens(max_length: int, *, vocab_size: int, pad: int) -> tuple[Tensor, Tensor]:
    """Return token ids and mask, (2, L) each, of two texts; the second is padded."""
    length = min(8, max_length)
    ids = torch.arange(2 * length).view(2, length) % vocab_size
    mask = torch.arange(length) < torch.tensor([[length], [(length + 1) // 2]])
    return ids.masked_fill(~mask, pad), mask
