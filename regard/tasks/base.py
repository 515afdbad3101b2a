"""What every task can do: read, learn, answer, be measured, be kept."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from regard.core.device import find_dtype
from regard.core.errors import ConfigError
from regard.data.batch import Values
from regard.data.example import Example
from regard.data.splits import Splits
from regard.models.interfaces import Encoder
from regard.search.settings import SearchConfig, change_search
from regard.tasks import reading
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.prediction import AttentionMap, Picture, Prediction
from regard.tasks.recipe import BaseRecipe
from regard.training.loop import Batches, Validation
from regard.training.losses import Loss

AnyRecipe = TypeVar("AnyRecipe", bound=BaseRecipe)


class Task(ABC, Generic[AnyRecipe]):
    """A model with all that surrounds it: raw items in, answers out.

    The commands, the server and the studies know a run by this class alone.
    """

    recipe: AnyRecipe
    model: nn.Module
    device: torch.device

    read: ClassVar[Callable[..., Splits]] = staticmethod(reading.read_pairs)
    """Reads `(data, valid, test, *, config)` into training, validation and test data."""
    read_side: ClassVar[Callable[..., list[Example]]] = staticmethod(reading.read_side)
    """Reads `(paths, side, *, config)`: a file whole, or one side of a data set with a name."""

    def __init__(self, recipe: AnyRecipe, model: nn.Module, *, device: torch.device) -> None:
        self.recipe = recipe
        self.model = model.to(device).eval()
        self.device = device

    @classmethod
    @abstractmethod
    def prepare(
        cls,
        recipe: AnyRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: "Task[Any] | None" = None,
    ) -> Self:
        """Learn from training examples what a model needs to be built, and build it.

        Args:
            recipe: The settings; fresh weights depend on its seed alone.
            examples: The training data.
            device: Where the model goes.
            init_from: What to begin with: its vocabularies, sizes and weights are taken over
                as far as this task has a use for them.
        """

    @classmethod
    @abstractmethod
    def open(cls, recipe: AnyRecipe, folder: Path, *, device: torch.device) -> Self:
        """Build the task from what `save` left in a folder, with fresh weights."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything but settings and weights: vocabularies and the like."""

    @abstractmethod
    def training_batches(self, examples: Sequence[Example]) -> Batches:
        """Return the batches to learn from."""

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """Return what a batch costs; smoothing and noise only while the model trains."""

    @abstractmethod
    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to find out how good the model is now."""

    @abstractmethod
    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Measure the model on a test set.

        Args:
            examples: What is asked, with the right answers.
            search: How to search, where there is something to search for; the recipe's way if
                not given.
            num_bootstrap: Samples behind each confidence interval; 0 = none.
        """

    @abstractmethod
    def predict(
        self,
        sources: Sequence[Any],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Answer every source with its best predictions, in the order given.

        Args:
            sources: What is asked.
            search: How to search, where there is something to search for; the recipe's way if
                not given.
            num_best: How many predictions a source.
            prefix: What every answer must begin with, where answers are written.
        """

    @abstractmethod
    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of what each example says, in the order given."""

    @abstractmethod
    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where the model looks, for each example; maps without layers where it cannot."""

    @property
    def num_parameters(self) -> int:
        """Number of weights, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def search_with(
        self, *, beams: int | None, num_best: int = 1, words: Sequence[str] = ()
    ) -> SearchConfig | None:
        """Return the recipe's search, changed; None where nothing is searched for.

        Asking for more answers than the recipe has beams means asking for more beams.

        Args:
            beams: How many beams, if not as many as the recipe says.
            num_best: How many answers will be asked for.
            words: Changes such as `search.temperature=0.8`.
        """
        search: SearchConfig | None = getattr(self.recipe, "search", None)
        if search is None:
            if beams is not None or words:
                raise ConfigError(
                    f"`{'--beam' if beams is not None else words[0]}` is for models that search "
                    f"for their answer, but the task of this run is '{self.recipe.task}'. "
                    "Leave it out."
                )
            return None
        search = change_search(search, words)
        search = replace(search, beams=max(search.beams, num_best) if beams is None else beams)
        search.warn_of_idle(is_beam_asked=beams is not None)
        return search

    def answer(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return what `regard show` draws, and what it says beside it.

        Args:
            source: What is asked.
            target: An answer to look at instead of the task's own.
        """
        written = self.translate([source])[0] if target is None else target
        return Example(source, written), written

    def sheet(self, source: Any, target: str | None = None) -> list[Picture]:
        """Return what `regard show` draws in the place of attention; nothing where it draws that.

        Args:
            source: What is asked.
            target: What to compare the answer with, if not what the task knows to be right.
        """
        return []

    def mean_nll(self, batches: Iterable[Any]) -> float:
        """Return what a token costs on average over batches, in nats."""
        losses = [self.loss(batch) for batch in batches]
        return float(sum(found.nll for found in losses) / sum(found.count for found in losses))

    def watch_loss(self, batches: Sequence[Any]) -> Callable[[], Validation]:
        """Return how to find out what a token of these batches costs now."""

        def validate() -> Validation:
            nll = self.mean_nll(batches)
            return Validation(value=-nll, numbers={"loss": nll, "perplexity": math.exp(nll)})

        return validate

    def autocast(self) -> torch.autocast:
        """Return the precision that the recipe trains in."""
        dtype = find_dtype(self.recipe.train.precision, self.device)
        return torch.autocast(self.device.type, dtype, enabled=dtype != torch.float32)

    def translate(self, sources: Sequence[Any], *, search: SearchConfig | None = None) -> list[str]:
        """Answer every source with the text of its best prediction."""
        return [found[0].text for found in self.predict(sources, search=search)]


@dataclass(frozen=True)
class EncoderBatch:
    """Sources as tensors that an encoder takes."""

    values: Values
    """Inputs of the encoder, on the model's device."""
    mask: Tensor
    """(B, S), True = a real position; on the host."""
    rows: tuple[int, ...]
    """The numbers of the sources."""


@runtime_checkable
class Generates(Protocol):
    """A task that generates targets by search."""

    @property
    def search(self) -> SearchConfig:
        """The search settings of the recipe."""

    def with_search(self, search: SearchConfig) -> Self:
        """Return the same task with other search settings, for `evaluate` and `predict`."""

    def predict(
        self,
        sources: Sequence[Any],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Return the best predictions of each source; all targets begin with `prefix`."""


@runtime_checkable
class GeneratesImages(Protocol):
    """A task whose predictions are images."""

    def image_grid(self, source: Any, target: str | None = None) -> list[Picture]:
        """Return images for `regard show`: the source, the prediction and the target."""


@runtime_checkable
class Scores(Protocol):
    """A task that has a log-probability for given targets."""

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each example's target, in the order given."""


@runtime_checkable
class Attends(Protocol):
    """A task with attention weights, or a saliency in their place."""

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the weights of each example; maps without layers if the model has none."""

    def example_to_show(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the example that `regard show` plots, and the text that it prints."""


@runtime_checkable
class Embeds(Protocol):
    """A task with an encoder that turns sources into vectors."""

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

    def encode(self, sources: Sequence[Any]) -> Tensor:
        """Return the latents of sources, (B, D), float32, on the host."""

    def decode(self, latents: Tensor) -> list[str] | Tensor:
        """Return texts, or images (B, C, Y, X) in 8 bits, from latents (B, D)."""


def search_with(
    task: Task[Any], *, beams: int | None, num_best: int = 1, words: Sequence[str] = ()
) -> SearchConfig | None:
    """Return the search settings of a task with changes; None if the task does not search.

    More predictions than the recipe has beams need as many beams.

    Args:
        task: Any task.
        beams: Number of beams, if not that of the recipe.
        num_best: Number of predictions per source.
        words: Overrides such as `search.temperature=0.8`.
    """
    return task.search_with(beams=beams, num_best=num_best, words=words)
