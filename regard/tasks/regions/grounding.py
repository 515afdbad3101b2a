"""Grounding: a phrase and an image in; the box of what the phrase names out.

A box is its left, upper, right and lower edge as shares of the image: `0.125 0.250 0.375 0.500`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.logging import logger
from regard.data.batch import change_values
from regard.data.datasets.labelled import read_labelled, split_source
from regard.data.example import Example
from regard.data.labels import LabelledBatch, LabelledBatches
from regard.data.modality import (
    JoinedField,
    fit_source,
    load_source,
    read_pair,
)
from regard.metrics.vision.pointing import box_region, pointing_accuracy
from regard.metrics.vision.regions import box_accuracy, mean_box_iou, parse_box
from regard.models.heads.regions import Grounder, Grounding, cell_shares
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.prediction import AttentionMap, Prediction, as_picture, cell_names
from regard.tasks.recipe import GroundingRecipe
from regard.tasks.regions.metrics import evaluate_regions, validate_regions
from regard.tasks.warm_start import as_run_of
from regard.training.loop import Validation
from regard.training.losses import Loss, box_distance, generalised_iou

MEASURES = {"iou": mean_box_iou, "accuracy": box_accuracy}
LEAST = 1e-9
"""Attention on a box that is taken for none, since nothing has no logarithm."""


class GroundingTask(Task[GroundingRecipe]):
    """Finds in an image what a phrase names."""

    model: Grounder
    read = staticmethod(partial(reading.read_pairs, read=read_labelled))
    read_side = staticmethod(partial(reading.read_side, read=read_labelled))

    def __init__(
        self,
        recipe: GroundingRecipe,
        model: Grounder,
        *,
        source: JoinedField,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.source = source

    @classmethod
    def fresh(
        cls, recipe: GroundingRecipe, *, source: JoinedField, device: torch.device
    ) -> "GroundingTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        return cls(recipe, Grounder(recipe.model, source.spec), source=source, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: GroundingRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> "GroundingTask":
        """Learn a vocabulary and the mean of the images, and build a model; or go on with one."""
        if init_from is not None:
            init_from = as_run_of(GroundingTask, init_from, which="that finds what a phrase names")
            begun = cls.fresh(recipe, source=init_from.source, device=device)
            begun.model.load_state_dict(init_from.model.state_dict())
            return begun
        source = fit_source(recipe.data.source, [read_pair(e.source) for e in examples])
        assert isinstance(source, JoinedField)
        return cls.fresh(recipe, source=source, device=device)

    @classmethod
    def open(
        cls, recipe: GroundingRecipe, folder: Path, *, device: torch.device
    ) -> "GroundingTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        source = load_source(recipe.data.source, folder)
        assert isinstance(source, JoinedField)
        return cls.fresh(recipe, source=source, device=device)

    def save(self, folder: Path) -> None:
        """Write the vocabulary and what the images' field has learned."""
        self.source.save(folder, "source")

    def training_batches(self, examples: Sequence[Example]) -> LabelledBatches:
        """Return the batches to learn from."""
        logger.info("Model: %s parameters, %s.", f"{self.num_parameters:,}", self.source.spec)
        return self._batches(examples, _read_boxes(examples), is_shuffled=True)

    def loss(self, batch: LabelledBatch) -> Loss:
        """Return how far boxes are off and how little they share with the right ones."""
        found = self._find(batch)
        return self._cost(found.boxes, batch.labels.to(self.device))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure what found and right boxes share, and the loss."""
        batches = list(self._batches(examples, _read_boxes(examples)).epoch(0))

        def validate() -> Validation:
            outputs, total = [""] * len(examples), 0.0
            for batch in batches:
                boxes = self._find(batch).boxes
                total += float(self._cost(boxes, batch.labels.to(self.device)).total)
                for row, box in zip(batch.rows, boxes.cpu(), strict=True):
                    outputs[row] = _write(box)
            return validate_regions(
                outputs,
                examples,
                measures=MEASURES,
                loss=total / len(examples),
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
        """Find the boxes of a test set and measure them, and whether the look fell on them."""
        boxes = _read_boxes(examples)
        evaluation = evaluate_regions(
            self.predict, examples, measures=MEASURES, num_bootstrap=num_bootstrap
        )
        weights: list[Any] = [None] * len(examples)
        regions: list[Any] = [None] * len(examples)
        for row, _, looked, layout in self._found([example.source for example in examples]):
            weights[row] = [looked.view(layout).numpy()]
            regions[row] = [box_region(boxes[row], *layout)]
        evaluation.results["pointing"] = pointing_accuracy(
            weights, regions, num_bootstrap=num_bootstrap
        )
        return evaluation

    def predict(
        self,
        sources: Sequence[Any],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Find the box of every phrase, in the order given: one answer each.

        The probability of a box is the share of the look that falls on it. An empty line has one
        answer, the empty one.

        Args:
            sources: A phrase and an image's reference each; in a line, a tab parts them.
            search: Not used: nothing is searched for.
            num_best: Not used: there is one box.
            prefix: Not used: nothing is written.
        """
        at_least("nbest", num_best, 1)
        answers = [[Prediction("", 0.0, (), ())] for _ in sources]
        filled = [row for row, source in enumerate(sources) if any(split_source(source))]
        for row, box, weights, layout in self._found([sources[row] for row in filled]):
            answers[filled[row]] = [_prediction(_write(box), box, weights, layout=layout)]
        return answers

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log of the share of the look that falls on every example's own box."""
        boxes = torch.tensor(_read_boxes(examples))  # (B, 4)
        found: dict[int, Prediction] = {}
        for row, _, weights, layout in self._found([example.source for example in examples]):
            text = examples[row].target
            found[row] = _prediction(text, boxes[row], weights, layout=layout)
        return [found[row] for row in range(len(examples))]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where each phrase looks in its image: one row, the phrase's."""
        maps: dict[int, AttentionMap] = {}
        items = self.source.read_all([read_pair(example.source) for example in examples])
        for row, _, weights, layout in self._found([example.source for example in examples]):
            (_, images), _ = self.source.stack([items[row]])
            maps[row] = AttentionMap(
                source=cell_names(layout),
                target=(read_pair(examples[row].source)[0],),
                weights=weights[None, None, None],
                grid=layout,
                image=as_picture(images[0]),
            )
        return [maps[row] for row in range(len(examples))]

    def _find(self, batch: LabelledBatch) -> Grounding:
        values = change_values(batch.source, lambda part: part.to(self.device, non_blocking=True))
        inputs = self.source.finish(values, is_training=self.model.training)
        with self.autocast():
            return self.model(inputs, batch.source_mask)

    def _found(
        self, sources: Sequence[Any]
    ) -> Iterator[tuple[int, Tensor, Tensor, tuple[int, ...]]]:
        """Yield the number of each source with its box (4,), its weights (S,) and the grid."""
        examples = [Example(source) for source in sources]
        batches = self._batches(examples, [0] * len(examples)) if examples else None
        for batch in batches.epoch(0) if batches else ():
            with torch.inference_mode():
                found = self._find(batch)
            for place, row in enumerate(batch.rows):
                yield row, found.boxes[place].cpu(), found.weights[place].cpu(), found.layout

    def _batches(
        self, examples: Sequence[Example], boxes: Sequence[Any], *, is_shuffled: bool = False
    ) -> LabelledBatches:
        most = self.recipe.data.batch.max_length
        items = self.source.read_all([read_pair(example.source) for example in examples])
        return LabelledBatches(
            [self.source.shorten(item, most) for item in items],
            boxes,
            self.recipe.data.batch,
            field=self.source,
            seed=self.recipe.seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def _cost(self, boxes: Tensor, right: Tensor) -> Loss:
        config = self.recipe.loss
        costs = config.distance * box_distance(boxes, right)
        costs = costs + config.overlap * (1 - generalised_iou(boxes, right))  # (B,)
        total = costs.sum()
        count = torch.tensor(len(costs), device=costs.device)
        return Loss(total=total, nll=total.detach(), count=count)


def _read_boxes(examples: Sequence[Example]) -> list[tuple[float, float, float, float]]:
    return [parse_box(example.target) for example in examples]


def _write(box: Tensor) -> str:
    return " ".join(f"{edge:.3f}" for edge in box.clamp(0, 1).tolist())


def _prediction(text: str, box: Tensor, weights: Tensor, *, layout: tuple[int, ...]) -> Prediction:
    """Make an answer of a box (4,) and where was looked (S,)."""
    share = float((cell_shares(box[None], layout)[0] * weights).sum())
    log_prob = math.log(max(share, LEAST))
    return Prediction(text, log_prob, (text,), (log_prob,))
