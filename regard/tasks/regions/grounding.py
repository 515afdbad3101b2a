"""Grounding: a phrase and an image in; the box of the object that the phrase names out.

A box is its left, upper, right and lower edge as fractions of the image:
`0.125 0.250 0.375 0.500`.
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
from regard.data.example import Example, require_examples
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
from regard.tasks.batches import predict_nonempty
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelled import LabelledTask
from regard.tasks.prediction import AttentionMap, Prediction, cell_names, to_image
from regard.tasks.regions.recipe import GroundingRecipe
from regard.training.losses import Loss, box_distance, generalized_iou

MIN_SHARE = 1e-9
"""Minimum share of attention on a box, to keep its logarithm finite."""


class PhraseBox(NamedTuple):
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
        return Prediction.from_tokens(text, (text,), (math.log(max(share, MIN_SHARE)),))


class GroundingTask(LabelledTask[GroundingRecipe]):
    """Predicts the box of the object that a phrase names in an image."""

    model: Grounder
    source: TextImageField
    metrics = {"iou": mean_box_iou, "accuracy": box_accuracy}  # noqa: RUF012
    read = staticmethod(partial(reading.read_pairs, read=read_labelled))
    read_split = staticmethod(partial(reading.read_split, read=read_labelled))
    run_description = "for the task 'grounding'"

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
        max_length = self.recipe.data.batch.max_length
        return [self.source.shorten(item, max_length) for item in self.read_sources(sources)]

    def read_targets(self, examples: Sequence[Example]) -> list[tuple[float, ...]]:
        """Return the edges of each example's box."""
        require_examples(examples)
        return [parse_box(example.target) for example in examples]

    def forward(self, batch: LabelledBatch) -> Grounding:
        """Return boxes and attention weights of a batch."""
        with self.autocast():
            output: Grounding = super().forward(batch)
        return output

    def output_loss(self, output: Grounding, targets: Tensor) -> Loss:
        """Compute the weighted sum of the boxes' distance and overlap losses."""
        config = self.recipe.loss
        losses = config.distance * box_distance(output.boxes, targets)
        losses = losses + config.overlap * (1 - generalized_iou(output.boxes, targets))  # (B,)
        total = losses.sum()
        count = torch.tensor(len(losses), device=losses.device)
        return Loss(total=total, nll=total.detach(), count=count)

    def split_output(self, output: Grounding) -> Iterable[PhraseBox]:
        """Return the box and the attention weights of each phrase."""
        rows = zip(output.boxes.cpu(), output.weights.cpu(), strict=True)
        return [PhraseBox(box, weights, output.layout) for box, weights in rows]

    def write_output(self, output: PhraseBox) -> str:
        """Return the box as text."""
        return " ".join(f"{edge:.3f}" for edge in output.box.clamp(0, 1).tolist())

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Measure the boxes of a test set, and whether the attention falls on the true ones."""
        boxes = self.read_targets(examples)
        evaluation = super().evaluate(examples, num_bootstrap=num_bootstrap)
        outputs = self.outputs([example.source for example in examples])
        evaluation.results["pointing"] = pointing_accuracy(
            [[output.weights.view(output.layout).numpy()] for output in outputs],
            [[box_region(box, *output.layout)] for box, output in zip(boxes, outputs, strict=True)],
            num_bootstrap=num_bootstrap,
        )
        return evaluation

    def predict(self, sources: Sequence[Any], *, num_best: int = 1) -> list[list[Prediction]]:
        """Predict the box of each phrase: one prediction per phrase, in the order given.

        The probability of a box is the share of the attention that falls on it.

        Args:
            sources: A phrase and the path of an image each; in a line, a tab separates them.
            num_best: At least 1; there is only one box.
        """
        at_least("nbest", num_best, 1)

        def predict(nonempty: list[Any]) -> list[list[Prediction]]:
            outputs = self.outputs(nonempty)
            return [[one.prediction(one.box, self.write_output(one))] for one in outputs]

        return predict_nonempty(predict, sources, is_nonempty=lambda one: any(split_source(one)))

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log of the share of the attention that falls on each example's box."""
        boxes = torch.tensor(self.read_targets(examples))  # (B, 4)
        outputs = self.outputs([example.source for example in examples])
        return [
            output.prediction(box, example.target)
            for example, box, output in zip(examples, boxes, outputs, strict=True)
        ]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the attention of each phrase over the cells of its image: one row."""
        require_examples(examples)
        sources = [example.source for example in examples]
        items = self.read_items(sources)
        return [
            AttentionMap(
                source=cell_names(output.layout),
                target=(split_text_image(source)[0],),
                weights=output.weights[None, None, None],
                grid=output.layout,
                image=to_image(self.source.stack([item])[0][1][0]),
            )
            for source, item, output in zip(sources, items, self.outputs(sources), strict=True)
        ]
