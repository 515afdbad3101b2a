"""Training requests: data, recipe, overrides and run folder."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path

from regard.core.config import from_dict
from regard.core.device import find_device
from regard.core.errors import CheckpointError, ConfigError
from regard.core.logging import logger
from regard.core.overrides import override
from regard.data.datasets.catalog import is_builtin
from regard.data.modality import detect_modality, read_any_pairs
from regard.data.splits import Splits
from regard.data.text.lines import STANDARD_INPUT
from regard.runs.auto_recipe import choose_recipe
from regard.runs.auto_tokens import fit_tokens
from regard.runs.recipes import is_file, load_recipe
from regard.runs.saved.config import CONFIG, read_config
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.metrics import check_metric
from regard.tasks.reading import read_pairs, skip_errors
from regard.tasks.recipe import BaseRecipe
from regard.tasks.table import override_recipe, task_class, to_recipe
from regard.training.checkpoint import has_training


@dataclass(frozen=True, kw_only=True)
class Request:
    """Data, recipe, overrides and run folder of a training."""

    data: tuple[str, ...]
    """A data set's name, a file of pairs, or two line-aligned files. Here and below, a single name
    may be given as a string."""
    valid: tuple[str, ...] = ()
    """Validation data, likewise; split from the training data if not given."""
    test: tuple[str, ...] = ()
    """Test data, likewise; split from the training data if not given."""
    recipe: str | BaseRecipe | None = None
    """A recipe's name, a TOML file or a recipe object; chosen by data and device if not given.
    Only an object can hold settings of modalities and encoders from outside the package."""
    metric: str | None = None
    """First metric, also used to select the best checkpoint; the recipe's if not given."""
    settings: tuple[str, ...] = ()
    """Overrides of the recipe, such as `train.max_epochs=3`."""
    out: Path = field(default_factory=lambda: Path("runs/latest"))
    """The run folder."""
    device: str = "auto"
    """Device of the training."""
    is_resumed: bool = False
    """Whether to resume the run in the folder."""
    is_forced: bool = False
    """Whether to replace the run in the folder."""

    def __post_init__(self) -> None:
        # Otherwise a string would be read as a tuple of letters.
        for name in ("data", "valid", "test", "settings"):
            object.__setattr__(self, name, _as_strings(name, getattr(self, name)))
        object.__setattr__(self, "out", Path(self.out))

    def check_folder(self) -> None:
        """Raise if the run folder cannot be used as requested."""
        is_used = (self.out / CONFIG).exists()
        if self.is_resumed and not is_used:
            raise CheckpointError(f"{self.out} holds no run to resume. Leave out --resume.")
        if is_used and not (self.is_resumed or self.is_forced):
            raise ConfigError(
                f"{self.out} already holds a run. Resume it (--resume), replace it (--force) "
                "or name another folder (--out); in Python, set `is_resumed`, `is_forced` or `out`."
            )
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"`--out` must be a folder, but {self.out} is a file.")

    def resume_if_started(self) -> "Request":
        """Return a request that resumes the run in the folder, if there is one."""
        if not (self.out / CONFIG).exists():
            return self
        # The folder has the recipe with its settings; only objects have to be given again.
        recipe = self.recipe if isinstance(self.recipe, BaseRecipe) else None
        return replace(self, is_resumed=True, recipe=recipe, settings=())

    def restart_if_unsaved(self) -> "Request":
        """Return a request that starts anew if the run to resume has no checkpoint yet."""
        if not self.is_resumed or has_training(self.out):
            return self
        logger.info("%s was stopped before its first checkpoint. Training starts anew.", self.out)
        recipe = self.recipe or read_config(self.out)["about"].get("recipe")
        return replace(self, recipe=recipe, is_resumed=False, is_forced=True)

    def resolve(self) -> tuple[BaseRecipe, Splits]:
        """Return the recipe and the data; choose a recipe and log the reasons if none is given."""
        if self.metric is not None:
            check_metric(self.metric, "--metric")
        named = self._find_recipe()
        if named is not None:
            recipe = self._with_metric(named)
            splits = self._read(recipe)
            return self._fit_tokens(recipe, splits), splits
        config = self._data_config()
        read = skip_errors(partial(read_any_pairs, columns=config.columns), config)
        splits = read_pairs(self.data, self.valid, self.test, config=config, read=read)
        device = find_device(self.device)
        choice = choose_recipe(splits.train, device, metric=self.metric, overrides=self.settings)
        logger.info("Recipe: %s (%s).", choice.recipe, "; ".join(choice.reasons))
        if choice.outlook and not any(one.startswith("train.max_") for one in self.settings):
            logger.info("%s", choice.outlook)
        recipe = load_recipe(choice.recipe, self.settings, defaults=choice.settings)
        recipe = self._with_metric(recipe)
        if detect_modality(splits.train).name == "text":
            return recipe, splits
        if STANDARD_INPUT in (*self.data, *self.valid, *self.test):
            raise ConfigError(
                "Standard input can be read only once, and was read to detect that it lists "
                f"images or recordings. Name the recipe: `--recipe {choice.recipe}`."
            )
        # Images and recordings are read again, with the data settings of the recipe.
        splits = self._read(recipe)
        return self._fit_tokens(recipe, splits), splits

    @property
    def fits_tokens(self) -> bool:
        """Whether tokens are changed to fit the data: files, with a recipe of the package."""
        is_own = isinstance(self.recipe, BaseRecipe) or (self.recipe and is_file(self.recipe))
        is_file_data = len(self.data) > 1 or not is_builtin(self.data[0])
        return is_file_data and not is_own and not self.is_resumed

    def _fit_tokens(self, recipe: BaseRecipe, splits: Splits) -> BaseRecipe:
        # With `init_from`, the vocabularies are those of the other run.
        is_fitted = self.fits_tokens and not recipe.init_from
        if not is_fitted or not isinstance(recipe, Recipe) or recipe.task != "generation":
            return recipe
        return fit_tokens(recipe, splits, self.settings)

    def _find_recipe(self) -> BaseRecipe | None:
        """Return the given or resumed recipe with overrides, or None if it must be chosen."""
        if isinstance(self.recipe, BaseRecipe):
            if self.settings:
                raise ConfigError(
                    "`settings` override recipes by name, but `recipe` is an object. Use "
                    "`dataclasses.replace`."
                )
            return self.recipe
        if self.is_resumed:
            saved = read_config(self.out)
            self._check_resumed_recipe(saved["about"].get("recipe"))
            return to_recipe(override_recipe(saved["recipe"], self.settings))
        return None if self.recipe is None else load_recipe(self.recipe, self.settings)

    def _check_resumed_recipe(self, name: str | None) -> None:
        """Raise if a recipe is named that the resumed run was not started with."""
        if self.recipe in (None, name):
            return
        started = f"with '{name}'" if name else "without --recipe"
        raise ConfigError(
            f"`--recipe` cannot change when a run is resumed: {self.out} was started {started}, "
            f"but it is '{self.recipe}' now. Leave it out, or train again with --force."
        )

    def _with_metric(self, recipe: BaseRecipe) -> BaseRecipe:
        if self.metric is None:
            return recipe
        if not isinstance(recipe, Recipe):
            raise ConfigError(
                "`--metric` is for models that generate text, but the recipe is for the task "
                f"'{recipe.task}'. Leave it out."
            )
        others = [name for name in recipe.metrics if name != self.metric]
        # Validation decodes greedily, so accuracy@k, which needs k candidates, is not available.
        metric = "accuracy" if self.metric.startswith("accuracy@") else self.metric
        validation = replace(recipe.validation, metric=metric)
        return replace(recipe, metrics=(self.metric, *others), validation=validation)

    def _data_config(self) -> DataConfig:
        """Return the settings for reading data before a recipe is chosen."""
        keys = ("data.seed=", "data.columns=", "data.on_error=", "data.links=")
        given = override({}, [setting for setting in self.settings if setting.startswith(keys)])
        return from_dict(DataConfig, given.get("data", {}), "data")

    def _read(self, recipe: BaseRecipe) -> Splits:
        """Read the data with the reader of the recipe's task."""
        return task_class(recipe).read(self.data, self.valid, self.test, config=recipe.data)


def _as_strings(
    name: str, values: str | PathLike[str] | Iterable[str | PathLike[str]]
) -> tuple[str, ...]:
    """Return one value or several of a field, such as paths, as a tuple of strings."""
    found = (values,) if isinstance(values, str | PathLike) else values
    if not isinstance(found, Iterable):
        raise TypeError(
            f"`{name}` must be a string or several, but is {found!r} ({type(found).__name__})."
        )
    return tuple(map(str, found))
