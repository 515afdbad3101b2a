"""Grounding: a phrase and an image in; the box of what the phrase names out.

A box is its left, upper, right and lower edge as shares of the image: `0.125 0.250 0.375 0.500`.
"""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.data.datasets.labelled import read_labelled, split_source
from regard.data.example import Example
from regard.data.labels import LabelledBatch, LabelledBatches
from regard.data.modality import fit_source, load_source
from regard.data.text_image import TextImageField, split_text_image
from regard.metrics.vision.regions import (
    box_accuracy,
    box_region,
    mean_box_iou,
    parse_box,
    pointing_accuracy,
)
from regard.models.heads.regions import Grounder, Grounding, cell_overlaps
from regard.tasks import reading
from regard.tasks.base import Fields
from regard.tasks.batches import predict_filled
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelled import LabelledTask
from regard.tasks.prediction import AttentionMap, Prediction, as_picture, cell_names
from regard.tasks.regions.recipe import GroundingRecipe
from regard.training.losses import Loss, box_distance, generalized_iou

LEAST = 1e-9
"""The smallest share of attention on a box, as zero has no logarithm."""


class Found(NamedTuple):
    """The output for one phrase."""

    box: Tensor
    """(4,), left, upper, right and lower edge."""
    weights: Tensor
    """(S,), attention over the cells."""
    layout: tuple[int, ...]
    """Rows and columns of the cells."""

    def prediction(self, box: Tensor, text: str) -> Prediction:
        """Return a box as a prediction, with the log of the share of attention on it."""
        share = float((cell_overlaps(box[None], self.layout)[0] * self.weights).sum())
        return Prediction.of_tokens(text, (text,), (math.log(max(share, LEAST)),))


class GroundingTask(LabelledTask[GroundingRecipe]):
    """Finds the box of what a phrase names in an image."""

    model: Grounder
    source: TextImageField
    metrics = {"iou": mean_box_iou, "accuracy": box_accuracy}  # noqa: RUF012
    read = staticmethod(partial(reading.read_pairs, read=read_labelled))
    read_side = staticmethod(partial(reading.read_side, read=read_labelled))
    own_runs = "that finds what a phrase names"

    @classmethod
    def fit_fields(cls, recipe: GroundingRecipe, examples: Sequence[Example]) -> Fields:
        """Fit the vocabulary and the image field."""
        return {"source": fit_source(recipe.data.source, [e.source for e in examples])}

    @classmethod
    def load_fields(cls, recipe: GroundingRecipe, folder: Path) -> Fields:
        """Load the vocabulary and the image field."""
        return {"source": load_source(recipe.data.source, folder)}

    @classmethod
    def build_model(cls, recipe: GroundingRecipe, fields: Fields) -> Grounder:
        """Build the model."""
        return Grounder(recipe.model, fields["source"].spec)

    def training_batches(self, examples: Sequence[Example]) -> LabelledBatches:
        """Return the training batches."""
        self.log_model(str(self.source.spec))
        return self.labelled_batches(examples, self.read_targets(examples), is_shuffled=True)

    def read_items(self, sources: Sequence[Any]) -> list[Any]:
        """Return phrases with their images, phrases truncated to the maximum length."""
        most = self.recipe.data.batch.max_length
        return [self.source.shorten(item, most) for item in self.read_sources(sources)]

    def read_targets(self, examples: Sequence[Example]) -> list[tuple[float, ...]]:
        """Return the edges of each example's box."""
        return [parse_box(example.target) for example in examples]

    def forward(self, batch: LabelledBatch) -> Grounding:
        """Return boxes and attention weights of a batch."""
        with self.autocast():
            found: Grounding = super().forward(batch)
        return found

    def output_loss(self, output: Grounding, targets: Tensor) -> Loss:
        """Compute the weighted sum of the boxes' distance and overlap losses."""
        config = self.recipe.loss
        losses = config.distance * box_distance(output.boxes, targets)
        losses = losses + config.overlap * (1 - generalized_iou(output.boxes, targets))  # (B,)
        total = losses.sum()
        count = torch.tensor(len(losses), device=losses.device)
        return Loss(total=total, nll=total.detach(), count=count)

    def split_output(self, output: Grounding) -> Iterable[Found]:
        """Return the box and the attention weights of each phrase."""
        rows = zip(output.boxes.cpu(), output.weights.cpu(), strict=True)
        return [Found(box, weights, output.layout) for box, weights in rows]

    def write_output(self, output: Found) -> str:
        """Return the box as text."""
        return " ".join(f"{edge:.3f}" for edge in output.box.clamp(0, 1).tolist())

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Measure the boxes of a test set, and whether the attention falls on the true ones."""
        boxes = self.read_targets(examples)
        evaluation = super().evaluate(examples, num_bootstrap=num_bootstrap)
        found = self.outputs([example.source for example in examples])
        evaluation.results["pointing"] = pointing_accuracy(
            [[one.weights.view(one.layout).numpy()] for one in found],
            [[box_region(box, *one.layout)] for box, one in zip(boxes, found, strict=True)],
            num_bootstrap=num_bootstrap,
        )
        return evaluation

    def predict(self, sources: Sequence[Any], *, num_best: int = 1) -> list[list[Prediction]]:
        """Find the box of each phrase: one prediction per phrase, in the order given.

        The probability of a box is the share of the attention that falls on it.

        Args:
            sources: A phrase and an image's reference each; in a line, a tab separates them.
            num_best: At least 1; there is only one box.
        """
        at_least("nbest", num_best, 1)

        def predict(filled: list[Any]) -> list[list[Prediction]]:
            found = self.outputs(filled)
            return [[one.prediction(one.box, self.write_output(one))] for one in found]

        return predict_filled(predict, sources, is_filled=lambda one: any(split_source(one)))

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log of the share of the attention that falls on each example's box."""
        boxes = torch.tensor(self.read_targets(examples))  # (B, 4)
        found = self.outputs([example.source for example in examples])
        return [
            one.prediction(box, example.target)
            for example, box, one in zip(examples, boxes, found, strict=True)
        ]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the attention of each phrase over the cells of its image: one row."""
        sources = [example.source for example in examples]
        items = self.read_items(sources)
        return [
            AttentionMap(
                source=cell_names(found.layout),
                target=(split_text_image(source)[0],),
                weights=found.weights[None, None, None],
                grid=found.layout,
                image=as_picture(self.source.stack([item])[0][1][0]),
            )
            for source, item, found in zip(sources, items, self.outputs(sources), strict=True)
        ]
