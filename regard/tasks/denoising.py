"""Pre-training of an encoder–decoder: it writes what was taken out of a text."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import DataError
from regard.core.logging import logger
from regard.data.batch import Batch
from regard.data.batching import BatchConfig, Sequences
from regard.data.example import Example
from regard.data.modality import SourceField
from regard.data.text.corruption import CorruptedBatches, Corruption
from regard.data.text.field import Text, TextField
from regard.data.text.packing import cut_windows
from regard.metrics.result import Result
from regard.models.seq2seq import EncoderDecoder
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Task
from regard.tasks.generation.evaluation import Evaluation, as_text
from regard.tasks.generation.parts import Parts, learn_joint_parts, take_parts
from regard.tasks.generation.task import Predictor
from regard.tasks.masked_lm.gaps import (
    GapField,
    SpanField,
    check_gaps,
    fill,
    fill_all,
    has_gaps,
    refuse_target,
    shorten,
)
from regard.tasks.prediction import AttentionMap, Prediction
from regard.tasks.recipe import DenoisingRecipe
from regard.tasks.warm_start import as_run_of
from regard.training.loop import Validation


class DenoisingTask(Predictor):
    """Writes what is missing in a text (Raffel et al. 2020)."""

    recipe: DenoisingRecipe
    source: GapField
    target: SpanField

    read = staticmethod(reading.read_texts)
    read_side = staticmethod(reading.read_text_side)

    def __init__(
        self,
        recipe: DenoisingRecipe,
        model: EncoderDecoder,
        *,
        source: SourceField,
        target: TextField,
        device: torch.device,
    ) -> None:
        super().__init__(recipe, model, source=source, target=target, device=device)
        assert isinstance(source, TextField)
        tokenizer, spellings = source.tokenizer, recipe.data.corruption.sentinels
        self.source = GapField(tokenizer, [tokenizer.find(spelling) for spelling in spellings])
        self.target = SpanField(target.tokenizer, spellings)

    @staticmethod
    def learn(recipe: Any, examples: Sequence[Example]) -> Parts:
        """Learn one vocabulary with sentinels from training texts."""
        config = recipe.data.source
        extra = (*config.extra_tokens, *recipe.data.corruption.sentinels)
        return learn_joint_parts(recipe, replace(config, extra_tokens=extra), examples)

    @staticmethod
    def take(recipe: Any, init_from: Task[Any], examples: Sequence[Example]) -> Parts:
        """Take over all of a run of the same kind: others know no sentinels."""
        which = "that learned to write what was taken out of a text"
        return take_parts(recipe, as_run_of(DenoisingTask, init_from, which=which), examples)

    def training_batches(self, examples: Sequence[Example]) -> CorruptedBatches:
        """Return the batches to learn from, with other spans taken out in every epoch."""
        windows = self._windows(examples)
        batches = self._corrupted(windows, seed=self.recipe.seed, is_shuffled=True)
        logger.info(
            "Model: %s parameters, %s tokens; %s batches an epoch.",
            f"{self.num_parameters:,}",
            f"{self.source.tokenizer.vocab_size:,}",
            f"{batches.num_batches(0):,}",
        )
        return batches

    def _corrupted(self, texts: Sequences, *, seed: int, is_shuffled: bool) -> CorruptedBatches:
        tokenizer = self.source.tokenizer
        return CorruptedBatches(
            texts,
            texts,
            self.recipe.data.batch,
            change=Corruption(self.recipe.data.corruption, tokenizer, seed=seed).change,
            fields=(self.target, self.target),
            seed=seed,
            is_shuffled=is_shuffled,
            is_pinned=self.device.type == "cuda",
        )

    def _windows(self, examples: Sequence[Example]) -> Sequences:
        lines = self.source.tokenizer.encode_batch([example.source for example in examples])
        # One place is left for the end.
        return cut_windows(lines, self.recipe.data.batch.max_length - 1)

    def batches(
        self, examples: Sequence[Example], config: BatchConfig | None = None
    ) -> list[Batch]:
        """Cut lines into batches: with gaps as they are, without with fixed spans taken out."""
        if not examples or any(has_gaps(example.source) for example in examples):
            return super().batches(examples, config)
        texts = self.source.tokenizer.encode_batch([example.source for example in examples])
        corrupted = self._corrupted(texts, seed=self.recipe.data.seed, is_shuffled=False)
        return list(corrupted.epoch(0))

    def held_out_batches(self, examples: Sequence[Example]) -> list[Batch]:
        """Cut text into batches with always the same spans taken out, whatever the run's seed."""
        windows = self._windows(examples)
        return list(
            self._corrupted(windows, seed=self.recipe.data.seed, is_shuffled=False).epoch(0)
        )

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return how to measure the loss on what was taken out, always the same spans."""
        return self.watch_loss(self.held_out_batches(examples))

    def evaluate(
        self,
        examples: Sequence[Example],
        *,
        search: SearchConfig | None = None,
        num_bootstrap: int = 0,
    ) -> Evaluation:
        """Take spans out of a test text, always the same ones, and measure how they are told."""
        if not any(example.source.strip() for example in examples):
            raise DataError("There is nothing to evaluate: the test set has no text.")
        started = time.perf_counter()
        right = nll = count = 0.0
        samples: list[tuple[str, str, str]] = []
        for batch in self.held_out_batches(examples):
            log_probs, guesses = self._force(batch)
            labels, mask = batch.target[:, 1:], batch.target_mask[:, 1:]
            right += float(((guesses == labels) & mask).sum())
            nll -= float(log_probs.where(mask, 0.0).double().sum())
            count += float(mask.sum())
            samples += self._read_back(batch, guesses)
        sources, outputs, references = map(list, zip(*samples, strict=True))
        return Evaluation(
            results=self._measure(right, nll, count),
            sources=sources,
            outputs=outputs,
            references=references,
            num_tokens=int(count),
            seconds=time.perf_counter() - started,
        )

    def _force(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the log-probability of each true token and the likeliest one, (B, T - 1)."""
        on_device = batch.to(self.device)
        with torch.inference_mode():
            output = self.model(on_device.source, batch.source_mask, on_device.target[:, :-1])
        log_probs = output.logits.log_softmax(-1)
        true = log_probs.gather(2, on_device.target[:, 1:, None])[..., 0]
        return true.cpu(), log_probs.argmax(-1).cpu()

    def _read_back(self, batch: Batch, guesses: Tensor) -> list[tuple[str, str, str]]:
        """Write each text with its gaps, what was guessed token by token, and what is right."""
        fields = (self.source, self.target, self.target)
        texts = (batch.source, guesses, batch.target)
        return [
            (fields[0].write(rows[0]), fields[1].write(rows[1]), fields[2].write(rows[2]))
            for rows in zip(*(text.tolist() for text in texts), strict=True)
        ]

    def _measure(self, right: float, nll: float, count: float) -> dict[str, Result]:
        config = self.recipe.data
        how = (
            f"taken out:{config.corruption.share:g},spans of {config.corruption.mean_length:g}|"
            f"windows:{config.batch.max_length}|seed:{config.seed}|"
            f"vocab:{self.source.tokenizer.vocab_size}|teacher-forced"
        )
        detail = {"tokens": count, "loss": nll / count}
        return {
            "accuracy": Result("token accuracy", 100 * right / count, how, detail=detail),
            "perplexity": Result("perplexity", math.exp(nll / count), how, detail=detail),
        }

    def predict(
        self,
        sources: Sequence[Text],
        *,
        search: SearchConfig | None = None,
        num_best: int = 1,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Fill the gaps of every line, `<mask>`, `[MASK]` or `___`, with any number of words.

        Args:
            sources: Lines with at least one gap each.
            search: How to search; the recipe's way if not given.
            num_best: How many fillings a line.
            prefix: What the answer as the model writes it must begin with, such as `<x0> the`.
        """
        lines = [as_text(source) for source in sources]
        check_gaps(lines)
        found = super().predict(lines, search=search, num_best=num_best, prefix=prefix)
        return [
            [replace(one, text=fill(line, self.target.spans(one.text))) for one in best]
            for line, best in zip(lines, found, strict=True)
        ]

    def translate(self, sources: Sequence[Any], *, search: SearchConfig | None = None) -> list[str]:
        """Fill the gaps of every line; a line without any is its own answer."""
        return fill_all(sources, partial(self.predict, search=search))

    def answer(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the line and how its gaps are filled; no other filling can be looked at."""
        refuse_target(target)
        return super().answer(source)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of what is missing in each line.

        Of a whole line these are spans that are taken out, always the same ones; of a line with
        gaps it is the target, spelled as the model writes it: `<x0> cat <x1> away`.
        """
        for number, example in enumerate(examples, start=1):
            if has_gaps(example.source) and not example.target:
                raise DataError(
                    f"Line {number:,} must be whole to be scored, but nothing says what is in its "
                    f"gap: '{shorten(example.source)}'. `regard predict` fills it."
                )
        return super().score(examples)

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return where the model looks while it writes what is missing in each line."""
        return [self._attend(example.source) for example in examples]

    def _attend(self, line: str) -> AttentionMap:
        written = super().predict([line])[0][0].text if has_gaps(line) else ""
        (found,) = super().attend([Example(line, written)])
        return found
