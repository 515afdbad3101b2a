"""Segmentation: an image in; a label for each cell of its grid out, as rows of letters."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.datasets.labelled import read_labelled
from regard.data.example import Example
from regard.data.image.field import ImageField
from regard.data.labels import LabelField, LabelledBatch, LabelledBatches
from regard.metrics.vision.regions import cell_accuracy, mean_iou, parse_cells
from regard.models.heads.regions import PatchLabeller
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.prediction import AttentionMap, Prediction, as_picture, cell_names
from regard.tasks.recipe import SegmentationRecipe
from regard.tasks.regions.metrics import evaluate_regions, validate_regions
from regard.tasks.warm_start import find_image_encoder, find_image_field
from regard.training.loop import Validation
from regard.training.losses import Loss, cross_entropy

LABELS = "labels.json"
MEASURES = {"iou": mean_iou, "accuracy": cell_accuracy}
PROBABILITY = "probability of each label"
"""What stands in for attention: how likely each cell has a label."""


class SegmentationTask(Task[SegmentationRecipe]):
    """Tells which label each cell of an image has."""

    model: PatchLabeller
    read = staticmethod(partial(reading.read_pairs, read=read_labelled))
    read_side = staticmethod(partial(reading.read_side, read=read_labelled))

    def __init__(
        self,
        recipe: SegmentationRecipe,
        model: PatchLabeller,
        *,
        source: ImageField,
        labels: LabelField,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.source = source
        self.labels = labels

    @classmethod
    def fresh(
        cls,
        recipe: SegmentationRecipe,
        *,
        source: ImageField,
        labels: LabelField,
        device: torch.device,
    ) -> "SegmentationTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        model = PatchLabeller(recipe.model, source.spec, len(labels.names))
        return cls(recipe, model, source=source, labels=labels, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: SegmentationRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> "SegmentationTask":
        """Learn the labels and the mean of the images; or begin with another's encoder."""
        labels = LabelField.fit(
            letter for e in examples for letter in set("".join(e.target.split()))
        )
        if init_from is None:
            source = ImageField.fit(recipe.data.source, [e.source for e in examples])
            return cls.fresh(recipe, source=source, labels=labels, device=device)
        settings, encoder = find_image_encoder(init_from)
        recipe = replace(recipe, model=replace(recipe.model, encoder=settings))
        begun = cls.fresh(recipe, source=find_image_field(init_from), labels=labels, device=device)
        begun.model.encoder.load_state_dict(encoder.state_dict())
        return begun

    @classmethod
    def open(
        cls, recipe: SegmentationRecipe, folder: Path, *, device: torch.device
    ) -> "SegmentationTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        source = ImageField.load(folder)
        labels = LabelField.load(folder / LABELS)
        return cls.fresh(recipe, source=source, labels=labels, device=device)

    def save(self, folder: Path) -> None:
        """Write what the images' field has learned, and the labels."""
        self.source.save(folder, "source")
        self.labels.save(folder / LABELS)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the cells that the model has labels for."""
        was_training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            blank = torch.zeros(1, *self.source.spec.shape, device=self.device)
            logits = self.model(blank, torch.ones(1, 1, dtype=torch.bool))  # (1, Y, X, V)
        self.model.train(was_training)
        return logits.shape[1], logits.shape[2]

    def training_batches(self, examples: Sequence[Example]) -> LabelledBatches:
        """Return the batches to learn from."""
        logger.info(
            "Model: %s parameters, %s, %d labels on %d x %d cells.",
            f"{self.num_parameters:,}",
            self.source.spec,
            len(self.labels.names),
            *self.grid,
        )
        return self._batches(examples, self._read_labels(examples), is_shuffled=True)

    def loss(self, batch: LabelledBatch) -> Loss:
        """Return the cross entropy of the labels of all cells."""
        with self.autocast():
            logits = self._logits(batch)
        smoothing = self.recipe.train.label_smoothing if self.model.training else 0.0
        return _cost(logits, batch.labels.to(self.device), smoothing=smoothing)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure what found and right regions share, and the loss."""
        batches = list(self._batches(examples, self._read_labels(examples)).epoch(0))

        def validate() -> Validation:
            outputs, nll, count = [""] * len(examples), 0.0, 0
            for batch in batches:
                with self.autocast():
                    logits = self._logits(batch)
                cost = _cost(logits, batch.labels.to(self.device))
                nll, count = nll + float(cost.nll), count + int(cost.count)
                for row, cells in zip(batch.rows, logits.argmax(-1).tolist(), strict=True):
                    outputs[row] = self._write(cells)
            return validate_regions(
                outputs,
                examples,
                measures=MEASURES,
                loss=nll / count,
                metric=self.recipe.validation.metric,
            )

        return validate

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Label the cells of a test set and measure them; nothing is searched for."""
        self._read_labels(examples)
        return evaluate_regions(
            self.predict, examples, measures=MEASURES, num_bootstrap=num_bootstrap
        )

    def predict(
        self,
        sources: Sequence[str],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Label the cells of every image, in the order given: one answer each.

        An empty line has one answer, the empty one.

        Args:
            sources: One image's reference each.
            search: Not used: every label is looked at.
            num_best: Not used: cells have one likeliest label each.
            prefix: Not used: labels are chosen, not written.
        """
        at_least("nbest", num_best, 1)
        answers = [[Prediction("", 0.0, (), ())] for _ in sources]
        filled = [row for row, source in enumerate(sources) if source.strip()]
        for row, log_probs in self._log_probs([sources[row].strip() for row in filled]):
            best = log_probs.max(-1)
            answers[filled[row]] = [self._prediction(best.indices, best.values)]
        return answers

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of every example's own labels, as a prediction of them."""
        labels = torch.tensor(self._read_labels(examples))  # (B, Y, X)
        found: dict[int, Prediction] = {}
        for row, log_probs in self._log_probs([example.source for example in examples]):
            values = log_probs.gather(-1, labels[row][..., None])[..., 0]
            found[row] = self._prediction(labels[row], values)
        return [found[row] for row in range(len(examples))]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return how likely each cell has each label that the example's cells have.

        A row a label; each sums to one over the cells, as attention does.
        """
        labels = self._read_labels(examples)
        maps: dict[int, AttentionMap] = {}
        pixels = self.source.read_all([example.source for example in examples])
        for row, log_probs in self._log_probs([example.source for example in examples]):
            asked = sorted({number for line in labels[row] for number in line})
            likely = log_probs[..., asked].exp().flatten(0, 1).T  # (T, S)
            maps[row] = AttentionMap(
                source=cell_names(self.grid),
                target=tuple(self.labels.write(number) for number in asked),
                weights=(likely / likely.sum(-1, keepdim=True))[None, None],
                kind=PROBABILITY,
                grid=self.grid,
                image=as_picture(self.source.stack([pixels[row]])[0][0]),
            )
        return [maps[row] for row in range(len(examples))]

    def answer(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return what `regard show` draws, and how many cells have each label beside it."""
        example, written = super().answer(source, target)
        counts = Counter("".join(written.split()))
        cells = ", ".join(f"{label} {counts[label]}" for label in sorted(counts))
        return example, f"{cells} of {counts.total()} cells"

    def _logits(self, batch: LabelledBatch) -> Tensor:
        values = batch.source.to(self.device, non_blocking=True)
        inputs = self.source.finish(values, is_training=self.model.training)
        return self.model(inputs, batch.source_mask)

    def _log_probs(self, sources: Sequence[str]) -> Iterator[tuple[int, Tensor]]:
        """Yield the number of each source with the log-probabilities of its cells, (Y, X, V)."""
        examples = [Example(source) for source in sources]
        batches = self._batches(examples, [0] * len(examples)) if examples else None
        for batch in batches.epoch(0) if batches else ():
            with torch.inference_mode():
                log_probs = self._logits(batch).float().log_softmax(-1).cpu()
            yield from zip(batch.rows, log_probs, strict=True)

    def _batches(
        self, examples: Sequence[Example], labels: Sequence[Any], *, is_shuffled: bool = False
    ) -> LabelledBatches:
        return LabelledBatches(
            self.source.read_all([example.source for example in examples]),
            labels,
            self.recipe.data.batch,
            field=self.source,
            seed=self.recipe.seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def _read_labels(self, examples: Sequence[Example]) -> list[list[list[int]]]:
        """Return the numbers of the labels of each example's cells, row by row."""
        found = []
        for example in examples:
            cells = parse_cells(example.target)
            if cells.shape != self.grid:
                raise DataError(
                    f"The labels of {example.source} must be on the grid of the model, "
                    f"{self.grid[0]} x {self.grid[1]} cells, but are {cells.shape[0]} x "
                    f"{cells.shape[1]}. Change the encoder, or the labels."
                )
            found.append([[self.labels.read(letter) for letter in row] for row in cells.tolist()])
        return found

    def _write(self, cells: list[list[int]]) -> str:
        return " ".join("".join(map(self.labels.write, row)) for row in cells)

    def _prediction(self, numbers: Tensor, values: Tensor) -> Prediction:
        """Make an answer of the labels' numbers (Y, X) and their log-probabilities (Y, X)."""
        return Prediction(
            text=self._write(numbers.tolist()),
            log_prob=float(values.sum()),
            tokens=tuple(self.labels.write(number) for number in numbers.flatten().tolist()),
            token_log_probs=tuple(values.flatten().tolist()),
        )


def _cost(logits: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Loss:
    """Return the cross entropy of one label a cell (B, Y, X), from its logits (B, Y, X, V)."""
    by_cell = labels.flatten(1)  # (B, S)
    mask = torch.ones_like(by_cell, dtype=torch.bool)
    return cross_entropy(logits.flatten(1, 2), by_cell, mask, smoothing=smoothing)
