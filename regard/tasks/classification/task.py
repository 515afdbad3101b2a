"""Classification: text, an image, a video or sound in; a label with its probability out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.config import at_least
from regard.core.device import seed_everything
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.data.audio.field import AudioField
from regard.data.batch import Values, change_values
from regard.data.batching import limit_lengths
from regard.data.datasets.labelled import split_source
from regard.data.example import Example
from regard.data.labels import LabelField, LabelledBatch, LabelledBatches
from regard.data.modality import (
    SourceConfig,
    SourceField,
    fit_source,
    load_source,
    modality_of,
)
from regard.data.text.field import Text, TextField
from regard.models.classifier import Classifier
from regard.models.encoders import max_tokens
from regard.models.heads.pooling import AlignedPooling
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Task
from regard.tasks.classification.attention import align, look
from regard.tasks.classification.audio_attention import look_at_sounds
from regard.tasks.classification.image_attention import look_at_images
from regard.tasks.classification.metrics import evaluate_labels
from regard.tasks.generation.evaluation import Evaluation
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.recipe import ClassificationRecipe
from regard.tasks.warm_start import take_encoder
from regard.training.loop import Validation
from regard.training.losses import Loss, cross_entropy

LABELS = "labels.json"


class ClassificationTask(Task[ClassificationRecipe]):
    """Tells which label a source has: a field, a classifier and the labels."""

    model: Classifier
    read = staticmethod(reading.read_labelled_texts)
    read_side = staticmethod(reading.read_labelled_side)

    def __init__(
        self,
        recipe: ClassificationRecipe,
        model: Classifier,
        *,
        source: SourceField,
        labels: LabelField,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, device=device)
        self.source = source
        self.labels = labels
        self._has_warned = False

    @classmethod
    def fresh(
        cls,
        recipe: ClassificationRecipe,
        *,
        source: SourceField,
        labels: LabelField,
        device: torch.device,
    ) -> "ClassificationTask":
        """Build one whose model has yet to learn; its weights depend on the recipe's seed alone."""
        seed_everything(recipe.seed)
        separator = source.tokenizer.eos if isinstance(source, TextField) else 0
        model = Classifier(recipe.model, source.spec, len(labels.names), separator=separator)
        return cls(recipe, model, source=source, labels=labels, device=device)

    @classmethod
    def prepare(
        cls,
        recipe: ClassificationRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> "ClassificationTask":
        """Learn the labels and a vocabulary, and build a model; or begin with another's encoder."""
        labels = LabelField.fit(example.target for example in examples)
        if init_from is None:
            raws = [parse_source(example.source, recipe.data.source) for example in examples]
            source = fit_source(recipe.data.source, raws, has_start=True)
            return cls.fresh(recipe, source=source, labels=labels, device=device)
        taken = take_encoder(recipe, init_from, examples)
        begun = cls.fresh(taken.recipe, source=taken.source, labels=labels, device=device)
        begun.model.load_state_dict(taken.weights, strict=False)
        return begun

    @classmethod
    def open(
        cls, recipe: ClassificationRecipe, folder: Path, *, device: torch.device
    ) -> "ClassificationTask":
        """Build the task from what `save` left in a folder, with fresh weights."""
        source = load_source(recipe.data.source, folder, has_start=True)
        labels = LabelField.load(folder / LABELS)
        return cls.fresh(recipe, source=source, labels=labels, device=device)

    def save(self, folder: Path) -> None:
        """Write what the source's field has learned, and the labels."""
        self.source.save(folder, "source")
        self.labels.save(folder / LABELS)

    @property
    def max_length(self) -> int:
        """Tokens of a text at most: what the recipe says, or what learned positions allow."""
        limit = self.recipe.data.batch.max_length
        return min(limit, max_tokens(self.recipe.model.encoder) or limit)

    def training_batches(self, examples: Sequence[Example]) -> LabelledBatches:
        """Return the batches to learn from, texts beyond the limit dropped or shortened."""
        config = replace(self.recipe.data.batch, max_length=self.max_length)
        labels = [[self.labels.read(example.target)] for example in examples]
        is_cut = config.too_long == "truncate"
        items = self._read([example.source for example in examples], is_cut=is_cut)
        items, labels, _ = limit_lengths(items, labels, config)
        logger.info(
            "Model: %s parameters, %s, %d labels.",
            f"{self.num_parameters:,}",
            self.source.spec,
            len(self.labels.names),
        )
        return LabelledBatches(
            items,
            [label for (label,) in labels],
            config,
            field=self.source,
            seed=self.recipe.seed,
            is_pinned=self.device.type == "cuda",
        )

    def loss(self, batch: LabelledBatch) -> Loss:
        """Return the cross entropy of the labels."""
        inputs, labels = self.inputs(batch), batch.labels.to(self.device)
        if self.model.training and self.recipe.data.mixup:
            return self._mixed_loss(inputs, batch.source_mask, labels=labels)
        with self.autocast():
            logits = self.model(inputs, batch.source_mask)
        smoothing = self.recipe.train.label_smoothing if self.model.training else 0.0
        return _cost(logits, labels, smoothing=smoothing)

    def _mixed_loss(self, inputs: Tensor, mask: Tensor, *, labels: Tensor) -> Loss:
        """Return the cost of images laid over each other, for the labels of both."""
        order = torch.randperm(len(labels), device=self.device)
        mixup = torch.tensor(self.recipe.data.mixup)
        share = float(torch.distributions.Beta(mixup, mixup).sample())
        with self.autocast():
            logits = self.model(share * inputs + (1 - share) * inputs[order], mask)
        smoothing = self.recipe.train.label_smoothing
        first = _cost(logits, labels, smoothing=smoothing)
        second = _cost(logits, labels[order], smoothing=smoothing)
        return replace(
            first,
            total=share * first.total + (1 - share) * second.total,
            nll=share * first.nll + (1 - share) * second.nll,
        )

    def inputs(self, batch: LabelledBatch) -> Values:
        """Return what the encoder reads of a batch, on the model's device."""
        values = change_values(batch.source, lambda part: part.to(self.device, non_blocking=True))
        return self.source.finish(values, is_training=self.model.training)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure accuracy and loss."""
        config = self.recipe.validation
        batches = self.batches(examples, [self.labels.read(e.target) for e in examples])

        def validate() -> Validation:
            nll = num_right = 0.0
            for batch in batches:
                labels = batch.labels.to(self.device)
                with self.autocast():
                    logits = self.model(self.inputs(batch), batch.source_mask)
                nll += float(_cost(logits, labels).nll)
                num_right += float((logits.argmax(-1) == labels).sum())
            loss, share = nll / len(examples), 100 * num_right / len(examples)
            value = share if config.metric == "accuracy" else -loss
            return Validation(value=value, numbers={"loss": loss, "accuracy": share})

        return validate

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Label a test set and measure the labels; nothing is searched for."""
        return evaluate_labels(self, examples, num_bootstrap=num_bootstrap)

    def predict(
        self,
        sources: Sequence[Text],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Tell the likeliest labels of every source, in the order given.

        An empty text has one answer, the empty one. A tab parts the two texts of a pair.

        Args:
            sources: One text, one pair or one image's reference each.
            search: Not used: every label is looked at.
            num_best: How many labels a text, at most as many as there are.
            prefix: Not used: labels are chosen, not written.
        """
        at_least("nbest", num_best, 1)
        if prefix:
            raise ConfigError(
                f"`prefix` is for models that write their answer, but is '{prefix}' for one that "
                "chooses a label. Leave it out."
            )
        answers = [[Prediction("", 0.0, (), ())] for _ in sources]
        filled = [row for row, source in enumerate(sources) if _has_text(source)]
        log_probs = self._log_probs([sources[row] for row in filled])
        for row, values in zip(filled, log_probs, strict=True):
            best = values.topk(min(num_best, len(values)))
            answers[row] = [
                self._prediction(number, value)
                for value, number in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            ]
        return answers

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of every example's own label, as a prediction of it."""
        numbers = [self.labels.read(example.target) for example in examples]
        log_probs = self._log_probs([example.source for example in examples])
        return [
            self._prediction(number, float(values[number]))
            for number, values in zip(numbers, log_probs, strict=True)
        ]

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return how much each piece of a text counted for its label: one row, the label's.

        A model that aligns two texts shows instead where the words of the second look in the
        first. Of an image these are its cells, of a recording its moments.
        """
        if isinstance(self.source, AudioField):
            return look_at_sounds(self, self.source, examples)
        if not isinstance(self.source, TextField):
            return look_at_images(self, examples)
        maps: list[AttentionMap | None] = [None] * len(examples)
        labels = [self.labels.read(example.target) for example in examples]
        for batch in self.batches(examples, labels):
            asked = batch.to(self.device)
            weights, kind = look(self.model, asked.source, batch.source_mask, labels=asked.labels)
            for place, row in enumerate(batch.rows):
                length = int(batch.source_mask[place].sum())
                maps[row] = AttentionMap(
                    source=self.source.tokenizer.tokens(batch.source[place, :length].tolist()),
                    target=(self.labels.write(labels[row]),),
                    weights=weights[place, ..., :length].cpu().float(),
                    kind=kind,
                )
            if isinstance(self.model.pooling, AlignedPooling):
                self._put_alignments(maps, batch)
        return [found for found in maps if found is not None]

    def _put_alignments(self, maps: list[AttentionMap | None], batch: LabelledBatch) -> None:
        """Put where the second text looks in the first in place of what counted, for pairs."""
        assert isinstance(self.source, TextField)
        weights = align(self.model, batch.source.to(self.device), batch.source_mask).cpu().float()
        for place, row in enumerate(batch.rows):
            ids = batch.source[place, : int(batch.source_mask[place].sum())].tolist()
            first = ids.index(self.source.tokenizer.eos) + 1
            if first < len(ids):
                pieces = self.source.tokenizer.tokens(ids)
                maps[row] = AttentionMap(
                    source=pieces[:first],
                    target=pieces[first:],
                    weights=weights[place, :, :, first : len(ids), :first],
                )

    def batches(
        self, examples: Sequence[Example], labels: Sequence[int] | None = None
    ) -> list[LabelledBatch]:
        """Cut examples into batches of similar length; without labels, all have the first."""
        if not examples:
            return []
        batches = LabelledBatches(
            self._read([example.source for example in examples]),
            [0] * len(examples) if labels is None else labels,
            self.recipe.data.batch,
            field=self.source,
            is_shuffled=False,
        )
        return list(batches.epoch(0))

    def _read(self, sources: Sequence[Any], *, is_cut: bool = True) -> list[Any]:
        """Return what the field reads, shortened to what the model can read; that is said once."""
        config = self.recipe.data.source
        items = self.source.read_all([parse_source(source, config) for source in sources])
        if not is_cut:
            return items
        most = self.max_length
        num_long = sum(len(item) > most for item in items)
        if num_long and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "shortened %s of %s texts to %d tokens (`max_length`)",
                f"{num_long:,}",
                f"{len(items):,}",
                most,
            )
        return [self.source.shorten(item, most) for item in items]

    def _log_probs(self, sources: Sequence[Text]) -> list[Tensor]:
        """Return the log-probabilities of all labels (V,) for each text."""
        found: list[Tensor] = [torch.empty(0)] * len(sources)
        for batch in self.batches([Example(source) for source in sources]):
            with torch.inference_mode():
                logits = self.model(self.inputs(batch), batch.source_mask)
            for row, values in zip(batch.rows, logits.float().log_softmax(-1).cpu(), strict=True):
                found[row] = values
        return found

    def _prediction(self, number: int, log_prob: float) -> Prediction:
        label = self.labels.write(number)
        return Prediction(label, log_prob, (label,), (log_prob,))


def parse_source(source: Any, config: SourceConfig) -> Any:
    """Return a source as its field reads it: in a line of text, a tab parts two of them."""
    return modality_of(config).parse(source)


def _has_text(source: Text) -> bool:
    return any(part.strip() for part in split_source(source))


def _cost(logits: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Loss:
    """Return the cross entropy of one label (B,) a text, from its logits (B, V)."""
    mask = torch.ones_like(labels, dtype=torch.bool)[:, None]  # (B, 1)
    return cross_entropy(logits[:, None], labels[:, None], mask, smoothing=smoothing)
