"""Masked language modelling: fill masks, and score texts by their pseudo-log-likelihood."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from regard.attention.recording import record
from regard.core.config import at_least
from regard.core.progress import track
from regard.data.example import Example, require_examples, require_list
from regard.data.text.field import TextField
from regard.data.text.masked_batches import MaskedBatch, MaskedBatches
from regard.data.text.masking import MASKINGS
from regard.data.text.packing import PACKINGS
from regard.data.text.tokenizers import Tokenizer, with_mask
from regard.data.text.vocabulary import train_tokenizer
from regard.metrics.result import Result
from regard.models.masked_lm import MaskedModel
from regard.tasks import reading
from regard.tasks.base import Fields, Task, WarmStart
from regard.tasks.evaluation import Evaluation, check_texts, evaluate_tokens
from regard.tasks.labelled import label_loss
from regard.tasks.masked_lm.distillation import Teacher
from regard.tasks.masked_lm.masked_text import (
    MaskedText,
    check_masks,
    check_no_target,
    encode_masked,
    fill_all_masks,
    rank_fillings,
)
from regard.tasks.masked_lm.recipe import MaskedRecipe
from regard.tasks.metrics import nll_validation
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.source_task import EncoderTask
from regard.training.losses import Loss
from regard.training.validation import Validation

Query = tuple[list[int], list[int]]
"""Token ids of a text, with start and end token, and the positions to predict."""

Texts = list[tuple[str, str, str]]
"""Each text with masks, with the predicted tokens, and with the true tokens."""


class MaskedLmTask(EncoderTask[MaskedRecipe]):
    """Predicts masked tokens."""

    read = staticmethod(reading.read_texts)
    read_split = staticmethod(reading.read_text_split)
    run_description = "of a masked language model"

    model: MaskedModel
    text: TextField
    # Not part of the model, since a teacher is neither trained nor saved.
    _teacher: Teacher | None = None

    @property
    def source_field(self) -> TextField:
        """The field of the texts."""
        return self.text

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the texts."""
        return self.text.tokenizer

    @classmethod
    def fit_fields(cls, recipe: MaskedRecipe, examples: Sequence[Example]) -> Fields:
        """Fit the vocabulary."""
        config = with_mask(recipe.data.tokenizer)
        return text_fields(train_tokenizer(config, [example.source for example in examples]))

    @classmethod
    def load_fields(cls, recipe: MaskedRecipe, folder: Path) -> Fields:
        """Load the vocabulary."""
        return text_fields(TextField.load(folder, "text").tokenizer)

    @classmethod
    def build_model(cls, recipe: MaskedRecipe, fields: Fields) -> MaskedModel:
        """Build the masked language model."""
        return MaskedModel(recipe.model, fields["text"].size)

    @classmethod
    def warm_start(
        cls, recipe: MaskedRecipe, init_from: Task[Any], examples: Sequence[Example]
    ) -> WarmStart:
        """Start from the encoder and the heads of another run of this task."""
        start = cls.require_same_task(init_from)
        model = replace(recipe.model, encoder=start.recipe.model.encoder)
        recipe = replace(recipe, model=model)
        return WarmStart(recipe, start.fields, start.model.state_dict())

    @classmethod
    def prepare(
        cls,
        recipe: MaskedRecipe,
        examples: Sequence[Example],
        *,
        device: torch.device,
        init_from: Task[Any] | None = None,
    ) -> Self:
        """Fit the vocabulary and build the model, or initialise it from the teacher."""
        if init_from is not None or not recipe.teacher:
            return super().prepare(recipe, examples, device=device, init_from=init_from)
        teacher = Teacher.load(recipe.teacher, recipe, device=device)
        task = cls.from_scratch(recipe, text_fields(teacher.tokenizer), device=device)
        teacher.initialize(task.model)
        task._teacher = teacher
        return task

    def training_batches(self, examples: Sequence[Example]) -> MaskedBatches:
        """Return the training batches; load the teacher if there is one."""
        if self.recipe.teacher and self._teacher is None:
            self._teacher = Teacher.load(self.recipe.teacher, self.recipe, device=self.device)
            self._teacher.check_vocabulary(self.tokenizer)
        batches = self._batches(examples, seed=self.recipe.seed, is_shuffled=True)
        self.log_model(
            f"{self.tokenizer.vocab_size:,} tokens; {batches.num_batches(0):,} batches an epoch"
        )
        return batches

    def held_out_batches(self, examples: Sequence[Example]) -> list[MaskedBatch]:
        """Return batches whose masked tokens do not depend on the run's seed."""
        batches = self._batches(examples, seed=self.recipe.data.seed, is_shuffled=False)
        return list(batches.epoch(0))

    def _batches(
        self, examples: Sequence[Example], *, seed: int, is_shuffled: bool
    ) -> MaskedBatches:
        config = self.recipe.data
        lines = self.tokenizer.encode_batch([example.source for example in examples])
        packed = PACKINGS[config.packing](
            lines, config.batch.max_length, tokenizer=self.tokenizer, seed=seed
        )
        return MaskedBatches(
            packed.sequences,
            packed.sequences,
            config.batch,
            fields=(self.text,),
            masking=MASKINGS[type(config.masking)](config.masking, self.tokenizer, seed=seed),
            is_next=packed.is_next,
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def loss(self, batch: MaskedBatch) -> Loss:
        """Compute the loss of the masked tokens, plus the auxiliary losses of the recipe."""
        batch = batch.to(self.device)
        with self.autocast():
            states = self.model.encode(batch.values, batch.mask).states
            logits = self.model.predict(states, batch.masked_positions)
            loss = label_loss(logits, batch.labels)
            if self.model.training and self._teacher is not None:
                loss = self._teacher.add_loss(loss, batch, states=states, logits=logits)
            return self._add_terms(loss, batch, states)

    def _add_terms(self, loss: Loss, batch: MaskedBatch, states: Tensor) -> Loss:
        total = loss.total
        if self.model.boundary is not None:
            logits = self.model.predict_from_boundaries(states, batch.masked_positions)
            total = total + self.recipe.model.boundary * label_loss(logits, batch.labels).total
        if self.model.next_sentence is not None and batch.is_next is not None:
            logits = self.model.next_sentence(states).float()
            term = F.cross_entropy(logits, batch.is_next)
            total = total + self.recipe.model.next_sentence * term * loss.count
        return replace(loss, total=total)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the loss, always with the same masked tokens."""
        batches = self.held_out_batches(examples)
        return nll_validation(lambda: self.mean_nll(batches))

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Mask tokens of a test set, always the same ones, and measure the predictions."""
        check_texts(examples)
        return evaluate_tokens(
            (_predict_masked(self, batch) for batch in self.held_out_batches(examples)),
            lambda sums: (
                _measure(sums, self, num_bootstrap=num_bootstrap) | _measure_pairs(sums, self)
            ),
        )

    def predict(self, sources: Sequence[str], *, num_best: int = 1) -> list[list[Prediction]]:
        """Fill the masks of each line, `<mask>`, `[MASK]` or `___`; an empty line stays empty.

        Each mask is one token. The tokens of several masks are predicted independently. The
        `tokens` of a prediction are those of the masks.

        Args:
            sources: Lines with at least one mask each.
            num_best: Number of predictions per line.
        """
        at_least("nbest", num_best, 1)
        require_list(sources, "sources")
        check_masks(sources)
        lines = [self._encode_masked(line) for line in sources]
        log_probs = self.log_probs(
            (line.values, line.positions) for line in lines if line.positions
        )
        return [
            rank_fillings(line, next(log_probs), self.tokenizer, num_best=num_best)
            if line.positions
            else [Prediction.empty()]
            for line in lines
        ]

    def _encode_masked(self, line: str) -> MaskedText:
        return encode_masked(line, self.tokenizer, itertools.repeat(self.tokenizer.mask))

    def best_texts(self, sources: Sequence[Any]) -> list[str]:
        """Fill the masks of each line; a line without masks is returned unchanged."""
        return fill_all_masks(sources, self.predict)

    def example_to_show(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the line that `regard show` plots, and the line with its masks filled."""
        check_no_target(target)
        (text,) = self.translate([source])
        return Example(source, text), text

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the pseudo-log-likelihood of each line: each token is masked in turn.

        Salazar et al. 2020, eq. 1.
        """
        require_examples(examples)
        rows = [self.text.read(example.source) for example in examples]
        log_probs = self.log_probs(
            ([*ids[:position], self.tokenizer.mask, *ids[position + 1 :]], [position])
            for ids in rows
            for position in range(1, len(ids) - 1)
        )
        scored = []
        for example, ids in zip(examples, rows, strict=True):
            values = [float(next(log_probs)[0, token]) for token in ids[1:-1]]
            tokens = self.tokenizer.tokens(ids[1:-1])
            scored.append(Prediction.from_tokens(example.source.strip(), tokens, values))
        return scored

    def log_probs(self, queries: Iterable[Query]) -> Iterator[Tensor]:
        """Yield the log-probabilities (L, V) at the positions of each query, on the host.

        Args:
            queries: Texts and positions; consumed lazily.
        """
        chunks = _batch_queries(queries, self.recipe.data.batch.max_tokens)
        for chunk in track(chunks, "Predicting", size=len):
            values, mask = self.text.stack([ids for ids, _ in chunk])
            width = values.shape[1]
            flat = [
                row * width + position
                for row, (_, positions) in enumerate(chunk)
                for position in positions
            ]
            with torch.inference_mode():
                states = self.model.encode(values.to(self.device), mask).states
                logits = self.model.predict(states, torch.tensor(flat, device=self.device))
                log_probs = logits.float().log_softmax(-1).cpu()
            yield from log_probs.split_with_sizes([len(positions) for _, positions in chunk])

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the self-attention weights of each line, layer by layer."""
        require_examples(examples)
        maps = []
        for example in examples:
            ids = self._encode_masked(example.source).values
            values = torch.tensor([ids], device=self.device)
            with torch.inference_mode(), record(self.model.encoder, is_self=True) as recorded:
                self.model.encode(values, torch.ones_like(values, dtype=torch.bool))
            maps.append(AttentionMap.of_self_attention(self.tokenizer.tokens(ids), recorded))
        return maps


def text_fields(tokenizer: Tokenizer) -> Fields:
    """Return the fields of a masked language model."""
    return {"text": TextField(tokenizer, has_start=True)}


def _batch_queries(queries: Iterable[Query], max_tokens: int) -> Iterator[list[Query]]:
    """Yield batches of at most `max_tokens` positions, padding included, in order."""
    chunk: list[Query] = []
    longest = 0
    for ids, positions in queries:
        longest = max(longest, len(ids))
        if chunk and longest * (len(chunk) + 1) > max_tokens:
            yield chunk
            chunk, longest = [], len(ids)
        chunk.append((ids, positions))
    if chunk:
        yield chunk


def _predict_masked(task: MaskedLmTask, batch: MaskedBatch) -> tuple[Tensor, Texts]:
    """Return sums for each text, and the texts.

    The sums are correct tokens, loss and number of masked tokens, and whether the prediction of the
    next-sentence head is correct.
    """
    on_device = batch.to(task.device)
    with torch.inference_mode():
        states = task.model.encode(on_device.values, batch.mask).states
        log_probs = task.model.predict(states, on_device.masked_positions).log_softmax(-1)
        is_correct = torch.zeros(len(batch.rows))
        if task.model.next_sentence is not None and batch.is_next is not None:
            is_correct = task.model.next_sentence(states).argmax(-1).cpu() == batch.is_next
    predicted = log_probs.argmax(-1).cpu()
    losses = -log_probs.gather(1, on_device.labels[:, None])[:, 0].cpu()
    rows = batch.masked_positions // batch.values.shape[1]
    columns = torch.stack([(predicted == batch.labels).float(), losses, torch.ones_like(losses)], 1)
    sums = torch.zeros(len(batch.rows), 3).index_add(0, rows, columns)
    sums = torch.cat([sums, is_correct.float()[:, None]], 1)
    return sums, _write_texts(task, batch, predicted)


def _write_texts(task: MaskedLmTask, batch: MaskedBatch, predicted: Tensor) -> Texts:
    """Return each text with masks, with the predicted tokens, and with the true tokens."""
    masked, filled, original = (batch.values.flatten().clone() for _ in range(3))
    masked[batch.masked_positions] = task.tokenizer.mask
    filled[batch.masked_positions] = predicted
    original[batch.masked_positions] = batch.labels
    texts = []
    for values in (masked, filled, original):
        lines = values.view(batch.values.shape).tolist()
        texts.append([task.tokenizer.decode(line) for line in lines])
    return list(zip(*texts, strict=True))


def _measure(sums: Tensor, task: MaskedLmTask, *, num_bootstrap: int) -> dict[str, Result]:
    config = task.recipe.data
    signature = (
        f"masked:{config.masking.kind},{config.masking.share:g}|shown:as trained|"
        f"packing:{config.packing},{config.batch.max_length}|seed:{config.seed}|"
        f"vocab:{task.tokenizer.vocab_size}"
    )

    metrics: dict[str, Callable[[Tensor], Tensor]] = {
        "accuracy": lambda parts: 100 * parts[..., 0] / parts[..., 2],
        "perplexity": lambda parts: (parts[..., 1] / parts[..., 2]).exp(),
    }
    total = sums.sum(0)
    resampled = None
    # A single text cannot be resampled.
    if num_bootstrap and len(sums) > 1:
        generator = torch.Generator().manual_seed(0)
        samples = torch.randint(len(sums), (num_bootstrap, len(sums)), generator=generator)
        resampled = torch.stack([sums[rows].sum(0) for rows in samples])
        signature += f"|bs:{num_bootstrap}"
    detail = {"tokens": float(total[2]), "loss": float(total[1] / total[2])}
    details = {"accuracy": {**detail, "right": float(total[0])}, "perplexity": detail}
    return {
        name: Result(
            f"masked {name}",
            float(metric(total)),
            signature,
            interval=None if resampled is None else _interval(metric(resampled)),
            detail=details[name],
        )
        for name, metric in metrics.items()
    }


def _measure_pairs(sums: Tensor, task: MaskedLmTask) -> dict[str, Result]:
    if task.model.next_sentence is None:
        return {}
    signature = f"packing:{task.recipe.data.packing}|seed:{task.recipe.data.seed}|chance:50"
    return {"pairs": Result("pair accuracy", 100 * float(sums[:, 3].mean()), signature)}


def _interval(values: Tensor) -> tuple[float, float]:
    low, high = values.quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return low, high
