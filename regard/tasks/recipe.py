"""A recipe: everything that decides what a run does, in one settings object."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from regard.core.config import at_least, from_dict, override, read_toml
from regard.core.errors import ConfigError
from regard.core.tables import near, pick
from regard.data.batching import BatchConfig
from regard.data.tokenizers import TokenizerConfig
from regard.models.build import ModelConfig
from regard.search.beam import SearchConfig
from regard.training.settings import TrainConfig


@dataclass(frozen=True, kw_only=True)
class BaseDataConfig:
    """What every recipe says about data."""

    seed: int = 0
    """Seed of splits and generated data, apart from the model's, so that runs stay comparable."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How batches are cut."""


@dataclass(frozen=True, kw_only=True)
class BaseRecipe:
    """What every recipe says, whatever the task."""

    task: str = ""
    """What the model is for."""
    seed: int = 1
    """Seed of the weights, the order of the data and dropout."""
    start: str = ""
    """A run folder whose vocabularies and weights to begin with; empty = from nothing."""
    data: BaseDataConfig = field(default_factory=BaseDataConfig)
    """How text becomes batches."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How it is trained."""


@dataclass(frozen=True, kw_only=True)
class DataConfig(BaseDataConfig):
    """How pairs become batches."""

    source: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The source's tokeniser."""
    target: TokenizerConfig = field(default_factory=TokenizerConfig)
    """The target's tokeniser; a joint vocabulary takes the source's settings."""
    is_joint: bool = False
    """Train one tokeniser on both sides and share its vocabulary."""


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """What decides which weights are best."""

    metric: Literal["bleu", "loss"] = "bleu"
    """BLEU of greedy translations, or the loss."""
    max_examples: int = 500
    """Validation pairs that are translated; the loss is always taken over all."""

    def __post_init__(self) -> None:
        at_least("max_examples", self.max_examples, 1)


@dataclass(frozen=True, kw_only=True)
class Recipe(BaseRecipe):
    """An encoder–decoder that writes a target for a source."""

    task: Literal["generation"] = "generation"
    """What the model is for."""
    data: DataConfig = field(default_factory=DataConfig)
    """How pairs become batches."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model."""
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    """How the best weights are told."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """How targets are searched for."""

    def __post_init__(self) -> None:
        if self.model.ties == "all" and not self.data.is_joint:
            raise ConfigError(
                "`model.ties` 'all' needs one joint vocabulary, but `data.is_joint` is false. "
                "Set `data.is_joint` to true, or `model.ties` to 'output'."
            )


RECIPES: dict[str, type[BaseRecipe]] = {
    "generation": Recipe,
}
"""The recipes' classes by the name of their task."""


def to_recipe(values: dict[str, Any]) -> BaseRecipe:
    """Build a recipe from plain values; which kind, its `task` says."""
    return from_dict(pick(RECIPES, str(values.get("task", "generation")), "task"), values)


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    folder = resources.files("regard") / "recipes"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def recipe_path(name: str) -> Path:
    """Return the file of a recipe, given as a name or as a path to a TOML file."""
    if name.endswith(".toml") or "/" in name:
        return Path(name)
    names = recipe_names()
    if name not in names:
        known = ", ".join(f"'{known}'" for known in names)
        raise ConfigError(
            f"`--recipe` must be a TOML file or one of {known}, but is '{name}'.{near(name, names)}"
        )
    return Path(str(resources.files("regard") / "recipes" / f"{name}.toml"))


def load_recipe(
    name: str, words: Sequence[str] = (), *, defaults: dict[str, Any] | None = None
) -> Any:
    """Read a recipe and change it by words such as `train.max_steps=200`.

    Args:
        name: A recipe's name, or a path to a TOML file.
        words: Changes a person asked for; they come last.
        defaults: Changes the data asked for, as dotted keys and values.
    """
    values = read_toml(recipe_path(name))
    asked = [f"{key}={_literal(value)}" for key, value in (defaults or {}).items()]
    return to_recipe(override(override(values, asked), words))


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
