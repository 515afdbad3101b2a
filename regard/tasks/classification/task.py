"""Classification: text, an image, a video or audio in; a label with its probability out."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.data.batching import limit_lengths
from regard.data.corpus import MAX_FITTED, distinct_targets, sample
from regard.data.datasets.labelled import split_source
from regard.data.example import Example, require_examples
from regard.data.image.field import ImageConfig
from regard.data.labels import LabelField, LabelledBatch, LabelledBatches
from regard.data.modality import fit_source, load_source, modality_of
from regard.data.text.field import Text, TextField, as_text
from regard.data.text.token_cache import encode_labelled
from regard.data.text.vocabulary import train_tokenizer
from regard.data.text_image import TextImageConfig, TextImageField, split_text_image
from regard.data.token_ids import first_ids, truncate
from regard.metrics.classification import confusion, label_accuracy, macro_f1, top_accuracy
from regard.metrics.grouping import by_length, by_tag
from regard.metrics.text.error_rates import accuracy
from regard.models.classifier import Classifier
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.tasks import reading
from regard.tasks.base import Fields, Task, WarmStart
from regard.tasks.batches import predict_nonempty
from regard.tasks.classification import attention
from regard.tasks.classification.recipe import ClassificationRecipe
from regard.tasks.evaluation import Evaluation, check_examples
from regard.tasks.labelled import LabelledTask, label_loss
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.source_task import EncoderTask, warn_if_long
from regard.tasks.warm_start import (
    encoder_weights,
    find_encoder,
    find_image_encoder,
    find_tokenizer,
    matching_image_field,
)
from regard.training.losses import Loss

MAX_CANDIDATES = 5
"""The N of `accuracy@N`; measured if there are more than N labels."""


class ClassificationTask(LabelledTask[ClassificationRecipe], EncoderTask[ClassificationRecipe]):
    """Predicts the label of a source."""

    model: Classifier
    labels: LabelField
    metrics = {"accuracy": accuracy}  # noqa: RUF012
    read = staticmethod(reading.read_labelled_texts)
    read_split = staticmethod(reading.read_labelled_split)
    _has_warned = False

    @classmethod
    def fit_fields(cls, recipe: ClassificationRecipe, examples: Sequence[Example]) -> Fields:
        """Fit the source field and the labels."""
        config = recipe.data.source
        labels = LabelField.fit(distinct_targets(examples))
        examples = sample(examples, MAX_FITTED, "The tokenizer is fitted")
        sources = [modality_of(config).parse(example.source) for example in examples]
        return {"source": fit_source(config, sources, has_start=True), "labels": labels}

    @classmethod
    def load_fields(cls, recipe: ClassificationRecipe, folder: Path) -> Fields:
        """Load the source field and the labels."""
        source = load_source(recipe.data.source, folder, has_start=True)
        return {"source": source, "labels": LabelField.load(folder)}

    @classmethod
    def build_model(cls, recipe: ClassificationRecipe, fields: Fields) -> Classifier:
        """Build the classifier."""
        source, labels = fields["source"], fields["labels"]
        separator = source.tokenizer.eos if isinstance(source, TextField) else 0
        return Classifier(recipe.model, source.spec, len(labels.names), separator=separator)

    @classmethod
    def warm_start(
        cls, recipe: ClassificationRecipe, init_from: Task[Any], examples: Sequence[Example]
    ) -> WarmStart:
        """Start from the encoder of another run; for text and image, from its image encoder."""
        source: Any
        config, settings = recipe.data.source, recipe.model.encoder
        prefix = "encoder"
        if isinstance(config, TextImageConfig) and isinstance(settings, TextImageEncoderConfig):
            image, encoder = find_image_encoder(init_from)
            settings, prefix = replace(settings, image=image), "encoder.image"
            texts = [split_text_image(example.source)[0] for example in examples]
            text = TextField(train_tokenizer(config.text, texts), has_start=True)
            source = TextImageField(text, matching_image_field(init_from, config.image))
        elif isinstance(config, ImageConfig):
            settings, encoder = find_image_encoder(init_from)
            source = matching_image_field(init_from, config)
        else:
            settings, encoder = find_encoder(init_from)
            source = TextField(find_tokenizer(init_from), has_start=True)
        recipe = replace(recipe, model=replace(recipe.model, encoder=settings))
        labels = LabelField.fit(distinct_targets(examples))
        fields = {"source": source, "labels": labels}
        return WarmStart(recipe, fields, encoder_weights(encoder, prefix))

    @property
    def max_length(self) -> int:
        """Maximum number of tokens: that of the recipe, or that of the learned positions."""
        limit = self.recipe.data.batch.max_length
        return min(limit, self.max_source_length or limit)

    def training_batches(self, examples: Sequence[Example]) -> LabelledBatches:
        """Return the training batches; texts beyond the limit are dropped or truncated."""
        config = replace(self.recipe.data.batch, max_length=self.max_length)
        items, labels = encode_labelled(
            examples, source=self.source, labels=self.labels, parse=self.parser
        )
        items = self._truncate(items) if config.too_long == "truncate" else items
        kept_items, kept_labels, _ = limit_lengths(items, labels, config)
        self.log_model(f"{self.source.spec}, {len(self.labels.names)} labels")
        return self.item_batches(kept_items, first_ids(kept_labels), is_shuffled=True)

    @property
    def parser(self) -> Callable[[Any], Any]:
        """Function from a source to what its field reads: a line of text is split at a tab."""
        return modality_of(self.recipe.data.source).parse

    def parse_source(self, source: Any) -> Any:
        """Return a source as its field reads it."""
        return self.parser(source)

    def read_items(self, sources: Sequence[Any]) -> list[Any]:
        """Return sources as items of their field, truncated; warn the first time."""
        return [*self._truncate(self.read_sources(sources))]

    def _truncate(self, items: Sequence[Any]) -> Sequence[Any]:
        max_length = self.max_length
        if not self._has_warned:
            message = "shortened %s of %s texts to %d tokens (`max_length`)"
            self._has_warned = warn_if_long(items, max_length, message)
        return truncate(items, max_length, self.source.shorten)

    def read_targets(self, examples: Sequence[Example]) -> list[int]:
        """Return the label id of each example."""
        return [self.labels.read(example.target) for example in examples]

    def loss(self, batch: LabelledBatch) -> Loss:
        """Compute the cross entropy of the labels, with mixup in training if the recipe has it."""
        if not (self.model.training and self.recipe.data.mixup):
            return super().loss(batch)
        inputs, labels = self.inputs(batch), batch.labels.to(self.device)
        order = torch.randperm(len(labels), device=self.device)
        mixup = torch.tensor(self.recipe.data.mixup)
        weight = float(torch.distributions.Beta(mixup, mixup).sample())
        with self.autocast():
            mixed = weight * inputs + (1 - weight) * inputs[order]
            logits = self.model(mixed, batch.source_mask)
        first, second = (self.output_loss(logits, one) for one in (labels, labels[order]))
        return replace(
            first,
            total=weight * first.total + (1 - weight) * second.total,
            nll=weight * first.nll + (1 - weight) * second.nll,
        )

    @property
    def label_names(self) -> Collection[str]:
        """Labels that the classifier predicts."""
        return self.labels.names

    def output_loss(self, output: Tensor, targets: Tensor) -> Loss:
        """Compute the cross entropy of labels (B,) from logits (B, V)."""
        return label_loss(output, targets, smoothing=self.smoothing)

    def split_output(self, output: Tensor) -> Iterable[Tensor]:
        """Return the log-probabilities (V,) of each source."""
        return output.float().log_softmax(-1).cpu()

    def write_output(self, output: Tensor) -> str:
        """Return the most probable label."""
        return self.labels.write(int(output.argmax()))

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Predict the labels of a test set: accuracy, macro F1 and the confusion matrix."""
        check_examples(examples)
        labels = [self.labels.write(label) for label in self.read_targets(examples)]
        started = time.perf_counter()
        predictions = self.predict([e.source for e in examples], num_best=MAX_CANDIDATES)
        seconds = time.perf_counter() - started
        candidates = [[prediction.text for prediction in best] for best in predictions]
        outputs = [best[0] for best in candidates]
        sources = ["\t".join(split_source(example.source)) for example in examples]
        references = [[label] for label in labels]
        tags = [example.tags for example in examples]
        results = {
            "accuracy": label_accuracy(outputs, labels),
            "macro_f1": macro_f1(outputs, labels, num_bootstrap=num_bootstrap),
        }
        if len(self.labels.names) > MAX_CANDIDATES:
            results[f"accuracy@{MAX_CANDIDATES}"] = top_accuracy(candidates, labels)
        return Evaluation(
            results=results,
            by_length=by_length(sources, outputs, references, metrics=self.metrics)
            if self.reads_text
            else [],
            by_tag=by_tag(tags, outputs, references, metrics=self.metrics) if any(tags) else [],
            sources=sources,
            outputs=outputs,
            references=labels,
            confusion=confusion(outputs, labels),
            num_tokens=len(outputs),
            seconds=seconds,
        )

    def predict(self, sources: Sequence[Text], *, num_best: int = 1) -> list[list[Prediction]]:
        """Return the most probable labels of each source, in the order given.

        An empty text has one prediction, the empty one. A tab separates the two texts of a pair.

        Args:
            sources: One text, one pair of texts, or the path of one image or recording each.
            num_best: Number of labels per source, at most all of them.
        """
        at_least("nbest", num_best, 1)

        def predict(nonempty: list[Text]) -> list[list[Prediction]]:
            best = [values.topk(min(num_best, len(values))) for values in self.outputs(nonempty)]
            return [
                [
                    self._prediction(label, value)
                    for value, label in zip(one.values.tolist(), one.indices.tolist(), strict=True)
                ]
                for one in best
            ]

        return predict_nonempty(predict, sources, is_nonempty=lambda one: as_text(one).strip())

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of each example's label, as a prediction of it."""
        require_examples(examples)
        outputs = self.outputs([example.source for example in examples])
        return [
            self._prediction(label, float(log_probs[label]))
            for label, log_probs in zip(self.read_targets(examples), outputs, strict=True)
        ]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the weight of each token, cell or frame for the label: one row.

        A model that aligns two texts returns the attention of the second over the first.
        """
        require_examples(examples)
        return attention.attend(self, examples)

    def _prediction(self, label: int, log_prob: float) -> Prediction:
        name = self.labels.write(label)
        return Prediction(name, log_prob, (name,), (log_prob,))
