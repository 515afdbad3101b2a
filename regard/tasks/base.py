"""`Task`, the base class of all tasks, and protocols for optional features of tasks."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload, runtime_checkable

import torch
from torch import Tensor, nn

from regard.core.device import find_dtype, seed_everything
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.splits import Splits
from regard.models.bottlenecks import restart_annealing
from regard.models.interfaces import Encoder
from regard.models.packing import SearchPrecision
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.batches import EncoderBatch
from regard.tasks.decoding.preparation import PrecisionSetting, find_packed
from regard.tasks.evaluation import Evaluation
from regard.tasks.notebook import describe_task, facts_html
from regard.tasks.prediction import AttentionMap, CaptionedImage, Prediction
from regard.tasks.recipe import BaseRecipe
from regard.training.loading import check_model, load_model
from regard.training.losses import Loss
from regard.training.plan import Batches
from regard.training.validation import Validation

AnyRecipe = TypeVar("AnyRecipe", bound=BaseRecipe)

Fields = dict[str, Any]
"""The fields of a task by name; each can be saved with `save(folder, name)`."""


@dataclass(frozen=True)
class WarmStart:
    """Recipe, fields and weights for fine-tuning from another run."""

    recipe: Any
    """The recipe, with the settings that come from the other run."""
    fields: Fields
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    """Initial weights by name; all others are initialised from the seed."""


class Task(ABC, Generic[AnyRecipe]):
    """A model with its fields: raw examples in, predictions out.

    Args:
        recipe: The settings.
        model: The model.
        fields: The fields by name; each becomes an attribute of that name.
        device: The device of the model.
    """

    recipe: AnyRecipe
    model: Any

    read: ClassVar[Callable[..., Splits]] = staticmethod(reading.read_pairs)
    """Reads `(data, valid, test, *, config)` into training, validation and test data."""
    read_split: ClassVar[Callable[..., list[Example]]] = staticmethod(reading.read_split)
    """Reads `(paths, split, *, config)`: a whole file, or one split of a built-in data set."""
    run_description: ClassVar[str] = ""
    """Description of runs of this task in messages, such as `of a language model`; set if
    `init_from` must be such a run."""
    throughput_unit: ClassVar[str] = "tok"
    """Unit of the throughput in the progress of training: tokens, or `examples`."""

    def __init__(
        self, recipe: AnyRecipe, model: nn.Module, fields: Fields, *, device: torch.device
    ) -> None:
        self.recipe = recipe
        self.model = model.to(device).eval()
        self.fields = fields
        self.device = device
        for name, value in fields.items():
            setattr(self, name, value)

    @classmethod
    @abstractmethod
    def fit_fields(cls, recipe: AnyRecipe, examples: Sequence[Example]) -> Fields:
        """Fit vocabularies, labels and the like to training examples."""

    @classmethod
    @abstractmethod
    def load_fields(cls, recipe: AnyRecipe, folder: Path) -> Fields:
        """Load the fields that `save` wrote."""

    @classmethod
    @abstractmethod
    def build_model(cls, recipe: AnyRecipe, fields: Fields) -> nn.Module:
        """Build the model for these fields."""

    @classmethod
    def require_same_task(cls, init_from: "Task[Any]") -> Self:
        """Return a run of this task, or raise a `ConfigError`."""
        if not isinstance(init_from, cls):
            raise ConfigError(
                f"`init_from` must be a run {cls.run_description}, but is one for the task "
                f"'{init_from.recipe.task}'."
            )
        return init_from

    @classmethod
    def warm_start(
        cls, recipe: AnyRecipe, init_from: "Task[Any]", examples: Sequence[Example]
    ) -> WarmStart:
        """Return the fields and weights of another run to start from; all of them by default."""
        start = cls.require_same_task(init_from)
        return WarmStart(recipe, start.fields, start.model.state_dict())

    @classmethod
    def from_scratch(cls, recipe: AnyRecipe, fields: Fields, *, device: torch.device) -> Self:
        """Build a task with initial weights, which depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        return cls(recipe, cls.build_model(recipe, fields), fields, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: AnyRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: "Task[Any] | None" = None,
    ) -> Self:
        """Fit the fields to training examples and build the model.

        Args:
            recipe: The settings.
            examples: The training data.
            device: The device of the model.
            init_from: A run whose fields, settings and weights to start from.
        """
        if init_from is None:
            return cls.from_scratch(recipe, cls.fit_fields(recipe, examples), device=device)
        start = cls.warm_start(recipe, init_from, examples)
        task = cls.from_scratch(start.recipe, start.fields, device=device)
        initial = task.model.state_dict()
        weights = {name: start.weights.get(name, value) for name, value in initial.items()}
        task.model.load_state_dict(weights)
        restart_annealing(task.model)
        return task

    @classmethod
    def open(cls, recipe: AnyRecipe, folder: Path, *, weights: Path, device: torch.device) -> Self:
        """Build the task from the fields in a run folder and a file of weights."""
        seed_everything(recipe.seed)
        fields = cls.load_fields(recipe, folder)
        model = load_model(partial(cls.build_model, recipe, fields), weights)
        return cls(recipe, model, fields, device=device)

    @classmethod
    def open_untrained(
        cls, recipe: AnyRecipe, folder: Path, *, checks: Sequence[Path] = (), device: torch.device
    ) -> Self:
        """Build the task from the fields in a run folder, with initial weights.

        Args:
            recipe: The settings.
            folder: The run folder.
            checks: Files of weights that must fit the model, which is then built.
            device: The device of the model.
        """
        fields = cls.load_fields(recipe, folder)
        for weights in checks:
            check_model(partial(cls.build_model, recipe, fields), weights)
        return cls.from_scratch(recipe, fields, device=device)

    def save(self, folder: Path) -> None:
        """Write the fields into a run folder."""
        for name, value in self.fields.items():
            value.save(folder, name)

    @abstractmethod
    def training_batches(self, examples: Sequence[Example]) -> Batches:
        """Return the training batches."""

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """Compute the loss of a batch; noise and label smoothing apply in training mode only."""

    def training_loss(self, examples: Sequence[Example]) -> Callable[[Any], Loss]:
        """Return the loss to train with; call it after `training_batches`.

        Args:
            examples: The training data.
        """
        return self.loss

    @abstractmethod
    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that validates the current weights."""

    @abstractmethod
    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Measure the model on a test set.

        Args:
            examples: Sources with their targets.
            num_bootstrap: Bootstrap samples of each confidence interval; 0 = no intervals.
        """

    @abstractmethod
    def predict(self, sources: Sequence[Any], *, num_best: int = 1) -> list[list[Prediction]]:
        """Return the best predictions of each source, in the order given.

        Args:
            sources: The raw sources.
            num_best: Number of predictions per source.
        """

    @overload
    def translate(self, sources: str) -> str: ...

    @overload
    def translate(self, sources: Sequence[Any]) -> list[str]: ...

    def translate(self, sources: Sequence[Any]) -> str | list[str]:
        """Return the text of the best prediction of each source; one text for a single string."""
        if isinstance(sources, str):
            return self.best_texts([sources])[0]
        if not isinstance(sources, Iterable):
            raise TypeError(
                f"`sources` must be a text or a list of texts, but is {sources!r} "
                f"({type(sources).__name__})."
            )
        return self.best_texts(sources)

    def best_texts(self, sources: Sequence[Any]) -> list[str]:
        """Return the text of the best prediction of each source."""
        return [best[0].text for best in self.predict(sources)]

    @property
    def label_names(self) -> Collection[str]:
        """Labels that the task predicts; none for other tasks."""
        return ()

    @property
    def num_parameters(self) -> int:
        """Number of parameters; shared parameters count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def smoothing(self) -> float:
        """Label smoothing of the loss: that of the recipe in training mode, else 0."""
        return self.recipe.train.label_smoothing if self.model.training else 0.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(describe_task(self).values())}>"

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, describe_task(self))

    def log_model(self, description: str) -> None:
        """Log the number of parameters and a description of inputs and outputs."""
        logger.info("Model: %s parameters, %s.", f"{self.num_parameters:,}", description)

    def mean_nll(self, batches: Iterable[Any]) -> float:
        """Return the mean negative log-likelihood per token of batches, in nats."""
        losses = [self.loss(batch) for batch in batches]
        return float(sum(loss.nll for loss in losses) / sum(loss.count for loss in losses))

    def autocast(self) -> torch.autocast:
        """Return an autocast context with the training precision of the recipe."""
        dtype = find_dtype(self.recipe.train.precision, self.device)
        return torch.autocast(self.device.type, dtype, enabled=dtype != torch.float32)


class Generates(Task[AnyRecipe]):
    """A task that generates targets by search."""

    find_precision: Callable[[Any], SearchPrecision] | None = None
    """Chooses the precision for `search.precision=auto`; set when a run folder is loaded."""

    @property
    def search(self) -> SearchConfig:
        """The search settings of the recipe."""
        recipe: Any = self.recipe
        search: SearchConfig = recipe.search
        return search

    def with_search(self, search: SearchConfig) -> Self:
        """Return the same task with other search settings."""
        changed = copy.copy(self)
        recipe: Any = self.recipe
        changed.recipe = replace(recipe, search=search)
        return changed

    def with_packed_model(self, precision: PrecisionSetting) -> Self:
        """Return the same task with weights packed for search in a precision."""
        changed = copy.copy(self)
        changed.model = find_packed(self, precision)
        return changed

    @abstractmethod
    def predict(
        self,
        sources: Sequence[Any],
        *,
        num_best: int = 1,
        search: SearchConfig | None = None,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Return the best predictions of each source, in the order given.

        Args:
            sources: The raw sources.
            num_best: Number of predictions per source.
            search: The search settings; those of the recipe if not given.
            prefix: Text that every target begins with.
        """

    @overload
    def translate(self, sources: str, *, search: SearchConfig | None = None) -> str: ...

    @overload
    def translate(
        self, sources: Sequence[Any], *, search: SearchConfig | None = None
    ) -> list[str]: ...

    def translate(
        self, sources: Sequence[Any], *, search: SearchConfig | None = None
    ) -> str | list[str]:
        """Return the text of the best prediction of each source; one text for a single string."""
        task = self if search is None else self.with_search(search)
        return super(Generates, task).translate(sources)


@runtime_checkable
class GeneratesImages(Protocol):
    """A task whose predictions are images."""

    def image_grid(self, source: Any, target: str | None = None) -> list[CaptionedImage]:
        """Return the images that `regard show` plots: the source, the prediction, the target."""


@runtime_checkable
class Scores(Protocol):
    """A task that computes the log-probability of given targets."""

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each example's target, in the order given."""


@runtime_checkable
class Attends(Protocol):
    """A task with attention weights, or saliency maps if the model has no attention."""

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the weights of each example; maps without layers if the model has none."""

    def example_to_show(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the example that `regard show` plots, and the text beside it.

        Args:
            source: The raw source.
            target: The target to show; the prediction if not given.
        """


@runtime_checkable
class Embeds(Protocol):
    """A task with an encoder that computes vectors of sources."""

    @property
    def encoder(self) -> Encoder:
        """The encoder of the model."""

    @property
    def reads_text(self) -> bool:
        """Whether sources are texts alone."""

    def encoder_items(self, sources: Sequence[Any]) -> list[Any]:
        """Return sources as items of the source field, truncated to the encoder's limit."""

    def encoder_batches(self, sources: Sequence[Any]) -> Iterator[EncoderBatch]:
        """Yield sources as inputs of the encoder, in batches of similar length."""


@runtime_checkable
class Autoencodes(Protocol):
    """A task that encodes sources as latent vectors and decodes latent vectors."""

    @property
    def latent_dim(self) -> int:
        """Number of values of a latent vector."""

    def encode(self, sources: Sequence[Any]) -> Tensor:
        """Return the latents of sources, (B, D), float32, on the host."""

    def decode(self, latents: Tensor) -> list[str] | Tensor:
        """Return the texts, or the 8-bit images (B, C, Y, X), of latents (B, D)."""
