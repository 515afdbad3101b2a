"""Base class of tasks that predict labels: of a source, of the cells of an image, or a box."""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.data.example import Example
from regard.data.labels import LabelledBatch, LabelledBatches
from regard.data.text.field import as_text
from regard.metrics.grouping import by_tag
from regard.metrics.result import Metric
from regard.tasks.base import AnyRecipe
from regard.tasks.batches import map_batches
from regard.tasks.evaluation import Evaluation, check_examples
from regard.tasks.source_task import SourceTask
from regard.training.losses import Loss, cross_entropy
from regard.training.validation import Validation


class LabelledTask(SourceTask[AnyRecipe]):
    """A task whose targets are tensors of one shape, such as the id of a label."""

    throughput_unit = "examples"
    metrics: ClassVar[Mapping[str, Metric]]
    """The metrics of validation and evaluation, by name."""

    @abstractmethod
    def read_targets(self, examples: Sequence[Example]) -> list[Any]:
        """Return the target of each example as nested lists of numbers."""

    @abstractmethod
    def output_loss(self, output: Any, targets: Tensor) -> Loss:
        """Compute the loss of the model's output for a batch of targets."""

    @abstractmethod
    def split_output(self, output: Any) -> Iterable[Any]:
        """Return the model's output for each source of a batch, on the host."""

    @abstractmethod
    def write_output(self, output: Any) -> str:
        """Return the best prediction as text, from an item of `split_output`."""

    def read_items(self, sources: Sequence[Any]) -> list[Any]:
        """Return sources as items of their field, truncated if the task has a maximum length."""
        return self.read_sources(sources)

    def labelled_batches(
        self, examples: Sequence[Example], targets: Sequence[Any], *, is_shuffled: bool = False
    ) -> LabelledBatches:
        """Return the examples with their targets as batches."""
        items = self.read_items([example.source for example in examples])
        return self.item_batches(items, targets, is_shuffled=is_shuffled)

    def batches(
        self, examples: Sequence[Example], targets: Sequence[Any] | None = None
    ) -> list[LabelledBatch]:
        """Return batches of similar length; missing targets are 0."""
        if not examples:
            return []
        targets = [0] * len(examples) if targets is None else targets
        return list(self.labelled_batches(examples, targets).epoch(0))

    def forward(self, batch: LabelledBatch) -> Any:
        """Return the model's output for a batch."""
        return self.model(self.inputs(batch), batch.source_mask)

    def outputs(self, sources: Sequence[Any]) -> list[Any]:
        """Return the model's output for each source, on the host, in the order given."""

        def compute(batch: LabelledBatch) -> Iterable[Any]:
            with torch.inference_mode():
                return self.split_output(self.forward(batch))

        return map_batches(compute, self.batches([Example(source) for source in sources]))

    def loss(self, batch: LabelledBatch) -> Loss:
        """Compute the loss of a batch."""
        with self.autocast():
            output = self.forward(batch)
        return self.output_loss(output, batch.labels.to(self.device))

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the loss and the metrics."""
        batches = self.batches(examples, self.read_targets(examples))
        references = [[example.target] for example in examples]
        chosen = self.recipe.validation.metric  # type: ignore[attr-defined]

        def validate() -> Validation:
            losses: list[Loss] = []

            def predict(batch: LabelledBatch) -> list[str]:
                with self.autocast():
                    output = self.forward(batch)
                losses.append(self.output_loss(output, batch.labels.to(self.device)))
                return [self.write_output(part) for part in self.split_output(output)]

            outputs = map_batches(predict, batches)
            loss = sum(float(part.nll) for part in losses) / sum(int(part.count) for part in losses)
            values = {
                name: metric(outputs, references).value for name, metric in self.metrics.items()
            }
            value = -loss if chosen == "loss" else values[chosen]
            return Validation(value=value, metrics={"loss": loss, **values}, metric=chosen)

        return validate

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Predict the targets of a test set and measure them."""
        check_examples(examples)
        started = time.perf_counter()
        outputs = self.translate([example.source for example in examples])
        seconds = time.perf_counter() - started
        references = [[example.target, *example.references] for example in examples]
        tags = [example.tags for example in examples]
        return Evaluation(
            results={
                name: metric(outputs, references, num_bootstrap=num_bootstrap)
                for name, metric in self.metrics.items()
            },
            by_tag=by_tag(tags, outputs, references, metrics=self.metrics) if any(tags) else [],
            sources=[as_text(example.source) for example in examples],
            outputs=outputs,
            references=[example.target for example in examples],
            num_tokens=len(outputs),
            seconds=seconds,
        )

    def example_to_show(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the example that `regard show` plots, and its target."""
        text = self.translate([source])[0] if target is None else target
        return Example(source, text), text


def label_loss(logits: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Loss:
    """Compute the cross entropy of labels (...) from logits (..., V)."""
    flat = labels.flatten()[None]  # (1, L)
    mask = torch.ones_like(flat, dtype=torch.bool)
    return cross_entropy(logits.flatten(0, -2)[None], flat, mask, smoothing=smoothing)
