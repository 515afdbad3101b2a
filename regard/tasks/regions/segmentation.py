"""Segmentation: an image in; a label per cell of a grid out, as rows of letters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.datasets.labelled import read_labelled
from regard.data.example import Example, require_examples
from regard.data.image.field import ImageField
from regard.data.labels import LabelField, LabelledBatches
from regard.metrics.vision.regions import cell_accuracy, mean_iou, parse_cells
from regard.models.heads.regions import PatchLabeller
from regard.tasks import reading
from regard.tasks.base import Fields, Task, WarmStart
from regard.tasks.batches import predict_nonempty
from regard.tasks.evaluation import Evaluation
from regard.tasks.labelled import LabelledTask, label_loss
from regard.tasks.prediction import AttentionMap, Prediction, cell_names, to_image
from regard.tasks.regions.recipe import SegmentationRecipe
from regard.tasks.source_task import EncoderTask
from regard.tasks.warm_start import encoder_weights, find_image_encoder
from regard.training.losses import Loss

PROBABILITY = "probability of each label"
"""The kind of the maps: probabilities of labels, normalised over the cells."""


class SegmentationTask(LabelledTask[SegmentationRecipe], EncoderTask[SegmentationRecipe]):
    """Predicts a label for each cell of an image."""

    model: PatchLabeller
    source: ImageField
    labels: LabelField
    metrics = {"iou": mean_iou, "accuracy": cell_accuracy}  # noqa: RUF012
    read = staticmethod(partial(reading.read_pairs, read=read_labelled))
    read_split = staticmethod(partial(reading.read_split, read=read_labelled))

    @classmethod
    def fit_fields(cls, recipe: SegmentationRecipe, examples: Sequence[Example]) -> Fields:
        """Fit the image field and the labels."""
        source = ImageField.fit(recipe.data.source, [example.source for example in examples])
        return {"source": source, "labels": _fit_labels(examples)}

    @classmethod
    def load_fields(cls, recipe: SegmentationRecipe, folder: Path) -> Fields:
        """Load the image field and the labels."""
        source = ImageField.load(folder)
        return {"source": source, "labels": LabelField.load(folder)}

    @classmethod
    def build_model(cls, recipe: SegmentationRecipe, fields: Fields) -> PatchLabeller:
        """Build the model."""
        return PatchLabeller(recipe.model, fields["source"].spec, len(fields["labels"].names))

    @classmethod
    def warm_start(
        cls, recipe: SegmentationRecipe, init_from: Task[Any], examples: Sequence[Example]
    ) -> WarmStart:
        """Start from the image encoder of another run."""
        settings, encoder = find_image_encoder(init_from)
        recipe = replace(recipe, model=replace(recipe.model, encoder=settings))
        fields = {"source": init_from.fields["source"], "labels": _fit_labels(examples)}
        return WarmStart(recipe, fields, encoder_weights(encoder))

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the cells."""
        was_training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            image = torch.zeros(1, *self.source.spec.shape, device=self.device)
            logits = self.model(image, torch.ones(1, 1, dtype=torch.bool))  # (1, Y, X, V)
        self.model.train(was_training)
        return logits.shape[1], logits.shape[2]

    def training_batches(self, examples: Sequence[Example]) -> LabelledBatches:
        """Return the training batches."""
        num_labels, (rows, columns) = len(self.labels.names), self.grid
        self.log_model(f"{self.source.spec}, {num_labels} labels on {rows} x {columns} cells")
        return self.labelled_batches(examples, self.read_targets(examples), is_shuffled=True)

    def read_targets(self, examples: Sequence[Example]) -> list[list[list[int]]]:
        """Return the label ids of each example's cells, row by row."""
        require_examples(examples)
        targets = []
        for example in examples:
            cells = parse_cells(example.target)
            if cells.shape != self.grid:
                raise DataError(
                    f"The labels of {example.source} must be on the grid of the model, "
                    f"{self.grid[0]} x {self.grid[1]} cells, but are {cells.shape[0]} x "
                    f"{cells.shape[1]}. Change the encoder, or the labels."
                )
            targets.append([[self.labels.read(letter) for letter in row] for row in cells.tolist()])
        return targets

    def output_loss(self, output: Tensor, targets: Tensor) -> Loss:
        """Compute the cross entropy of all cells."""
        return label_loss(output, targets, smoothing=self.smoothing)

    def split_output(self, output: Tensor) -> Iterable[Tensor]:
        """Return the log-probabilities (Y, X, V) of each image."""
        return output.float().log_softmax(-1).cpu()

    def write_output(self, output: Tensor) -> str:
        """Return the most probable labels as rows of letters."""
        return self._write(output.argmax(-1))

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Predict the labels of the cells of a test set and measure them."""
        self.read_targets(examples)
        return super().evaluate(examples, num_bootstrap=num_bootstrap)

    def predict(self, sources: Sequence[str], *, num_best: int = 1) -> list[list[Prediction]]:
        """Predict the labels of the cells: one prediction per image, in the order given."""
        at_least("nbest", num_best, 1)

        def predict(nonempty: list[str]) -> list[list[Prediction]]:
            outputs = self.outputs([path.strip() for path in nonempty])
            best = [log_probs.max(-1) for log_probs in outputs]
            return [[self._prediction(one.indices, one.values)] for one in best]

        return predict_nonempty(predict, sources)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each example's labels, as a prediction of them."""
        targets = torch.tensor(self.read_targets(examples))  # (B, Y, X)
        outputs = self.outputs([example.source for example in examples])
        return [
            self._prediction(labels, log_probs.gather(-1, labels[..., None])[..., 0])
            for labels, log_probs in zip(targets, outputs, strict=True)
        ]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the probability of each label of an example in each cell.

        There is one row per label. It sums to one over the cells, as attention weights do.
        """
        targets = self.read_targets(examples)
        sources = [example.source for example in examples]
        items = self.read_sources(sources)
        maps = []
        for labels, log_probs, item in zip(targets, self.outputs(sources), items, strict=True):
            ids = sorted({label for row in labels for label in row})
            probs = log_probs[..., ids].exp().flatten(0, 1).T  # (T, S)
            maps.append(
                AttentionMap(
                    source=cell_names(self.grid),
                    target=tuple(self.labels.write(label) for label in ids),
                    weights=(probs / probs.sum(-1, keepdim=True))[None, None],
                    kind=PROBABILITY,
                    grid=self.grid,
                    image=to_image(self.source.stack([item])[0][0]),
                )
            )
        return maps

    def example_to_show(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the example that `regard show` plots, and the number of cells of each label."""
        example, text = super().example_to_show(source, target)
        counts = Counter("".join(text.split()))
        cells = ", ".join(f"{label} {counts[label]}" for label in sorted(counts))
        return example, f"{cells} of {counts.total()} cells"

    def _write(self, labels: Tensor) -> str:
        return " ".join("".join(map(self.labels.write, row)) for row in labels.tolist())

    def _prediction(self, labels: Tensor, log_probs: Tensor) -> Prediction:
        """Return a prediction from label ids (Y, X) and their log-probabilities (Y, X)."""
        return Prediction(
            text=self._write(labels),
            log_prob=float(log_probs.sum()),
            tokens=tuple(self.labels.write(label) for label in labels.flatten().tolist()),
            token_log_probs=tuple(log_probs.flatten().tolist()),
        )


def _fit_labels(examples: Sequence[Example]) -> LabelField:
    return LabelField.fit(
        letter for example in examples for letter in set("".join(example.target.split()))
    )
