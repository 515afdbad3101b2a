"""What a person asks of training: which data, which recipe, where to."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from regard.core.config import from_dict, override
from regard.core.device import find_device
from regard.core.errors import CheckpointError, ConfigError
from regard.core.logging import logger
from regard.data.modality import detect_modality, read_any_pairs
from regard.data.splits import Splits
from regard.data.text.lines import STANDARD_INPUT
from regard.runs import folder as runs
from regard.runs.auto_recipe import choose
from regard.runs.recipes import load_recipe
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.metrics import check_metric
from regard.tasks.reading import read_pairs
from regard.tasks.recipe import BaseRecipe
from regard.tasks.table import task_class, to_recipe
from regard.training.checkpoint import find_training


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person asks of training."""

    data: tuple[str, ...]
    """A data set's name, a file of pairs, or two line-aligned files."""
    valid: tuple[str, ...] = ()
    """Validation data, likewise; split off the training data if not given."""
    test: tuple[str, ...] = ()
    """Test data, likewise."""
    recipe: str | BaseRecipe | None = None
    """A recipe's name, a TOML file or the recipe itself; chosen by data and machine if not given.
    Only the recipe itself can hold settings of modalities and encoders from outside the package."""
    metric: str | None = None
    """What is measured first, and decides which weights are best; the recipe says if not given."""
    settings: tuple[str, ...] = ()
    """Changes to the recipe, such as `train.max_epochs=3`."""
    out: Path = field(default_factory=lambda: Path("runs/latest"))
    """The run folder."""
    device: str = "auto"
    """Where to train."""
    is_resumed: bool = False
    """Go on with what is in the run folder."""
    is_forced: bool = False
    """Replace what is in the run folder."""

    def check_folder(self) -> None:
        """Raise before anything is done if the run folder cannot be used as asked."""
        is_used = (self.out / runs.CONFIG).exists()
        if self.is_resumed and not is_used:
            raise CheckpointError(f"{self.out} holds no run to go on with. Leave out --resume.")
        if is_used and not (self.is_resumed or self.is_forced):
            raise ConfigError(
                f"{self.out} already holds a run. Go on with it (--resume), replace it (--force) "
                "or name another folder (--out)."
            )
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"`--out` must be a folder, but {self.out} is a file.")

    def going_on(self) -> "Request":
        """Ask for the same as far as it is not trained yet, whatever an interruption left."""
        if not (self.out / runs.CONFIG).exists():
            return self
        try:
            find_training(self.out)
        except CheckpointError:
            return replace(self, is_forced=True)
        return replace(self, is_resumed=True, settings=())

    def resolve(self) -> tuple[BaseRecipe, Splits]:
        """Read the data and settle the recipe; without one, choose and say why."""
        if self.metric is not None:
            check_metric(self.metric, "--metric")
        named = self._find_recipe()
        if named is not None:
            recipe = self._with_metric(named)
            return recipe, self._read(recipe)
        how = self._how_to_read()
        read = partial(read_any_pairs, columns=how.columns)
        splits = read_pairs(self.data, self.valid, self.test, config=how, read=read)
        choice = choose(splits.train, find_device(self.device), metric=self.metric)
        logger.info("Recipe: %s, because %s.", choice.recipe, "; ".join(choice.reasons))
        recipe = load_recipe(choice.recipe, self.settings, defaults=choice.settings)
        recipe = self._with_metric(recipe)
        if detect_modality(splits.train).name == "text":
            return recipe, splits
        if STANDARD_INPUT in (*self.data, *self.valid, *self.test):
            raise ConfigError(
                "Standard input can be read only once, and it took that to see that it names "
                f"images or recordings. Name the recipe: `--recipe {choice.recipe}`."
            )
        # Images and recordings are read anew, as the recipe takes them.
        return recipe, self._read(recipe)

    def _find_recipe(self) -> BaseRecipe | None:
        """Return the recipe that is given, named or resumed, with its changes."""
        if isinstance(self.recipe, BaseRecipe):
            if self.settings:
                raise ConfigError(
                    "`settings` change recipes by name, but `recipe` is an object. Change it with "
                    "`dataclasses.replace`."
                )
            return self.recipe
        if self.is_resumed:
            saved = runs.read_config(self.out)["recipe"]
            return to_recipe(override(saved, self.settings))
        return None if self.recipe is None else load_recipe(self.recipe, self.settings)

    def _with_metric(self, recipe: BaseRecipe) -> BaseRecipe:
        if self.metric is None:
            return recipe
        if not isinstance(recipe, Recipe):
            raise ConfigError(
                "`--metric` is for models that write their answer, but the recipe is for the task "
                f"'{recipe.task}'. Leave it out."
            )
        others = [name for name in recipe.metrics if name != self.metric]
        # Of several candidates no greedy answer can be the judge.
        judge = "accuracy" if self.metric.startswith("accuracy@") else self.metric
        validation = replace(recipe.validation, metric=judge)
        return replace(recipe, metrics=(self.metric, *others), validation=validation)

    def _how_to_read(self) -> DataConfig:
        """Return what decides how data is read before there is a recipe to ask."""
        known = ("data.seed=", "data.columns=")
        asked = override({}, [word for word in self.settings if word.startswith(known)])
        return from_dict(DataConfig, asked.get("data", {}), "data")

    def _read(self, recipe: BaseRecipe) -> Splits:
        """Read the data as the recipe's task reads it."""
        return task_class(recipe).read(self.data, self.valid, self.test, config=recipe.data)
