"""Denoising: an encoder–decoder generates the masked spans of a text (Raffel et al. 2020)."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from regard.core.errors import ConfigError, DataError
from regard.data.batch import Batch
from regard.data.batching import BatchConfig, Batches, Sequences
from regard.data.example import Example, require_examples, require_list
from regard.data.text.corruption import Change, Corruption, CorruptionConfig
from regard.data.text.field import Text, as_text, tokenizer_file
from regard.data.text.packing import cut_windows
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.vocabulary import train_tokenizer
from regard.metrics.result import Result
from regard.search.settings import SearchConfig
from regard.tasks import reading
from regard.tasks.base import Fields
from regard.tasks.evaluation import Evaluation, check_texts, evaluate_tokens
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.masked_lm.masked_text import (
    MaskedTextField,
    SpanField,
    check_masks,
    check_no_target,
    fill_all_masks,
    fill_masks,
    has_mask,
    shorten,
)
from regard.tasks.metrics import nll_validation
from regard.tasks.prediction import AttentionMap, Prediction
from regard.training.validation import Validation


@dataclass(frozen=True, kw_only=True)
class DenoisingDataConfig(DataConfig):
    """Data settings: sources are texts with masked spans, targets are these spans."""

    is_joint: bool = True
    """Always true: both sides are the same text, with the tokeniser settings of the source."""
    corruption: CorruptionConfig = field(default_factory=CorruptionConfig)
    """Span corruption."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_joint:
            raise ConfigError("`is_joint` must be true if both sides are one text, but is false.")


@dataclass(frozen=True, kw_only=True)
class DenoisingRecipe(Recipe):
    """An encoder–decoder that generates the masked spans of a text."""

    task: Literal["denoising"] = "denoising"  # type: ignore[assignment]
    """The task."""
    data: DenoisingDataConfig = field(default_factory=DenoisingDataConfig)
    """Data and batching."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reward.metric != "none":
            raise ConfigError(
                "`reward.metric` must be 'none' if `task` is 'denoising', since other spans are "
                "masked in every epoch and there are no fixed targets to reward, but is "
                f"'{self.reward.metric}'."
            )


class DenoisingTask(Predictor):
    """Fills masks in a text with any number of words (Raffel et al. 2020)."""

    recipe: DenoisingRecipe
    source: MaskedTextField
    target: SpanField

    read = staticmethod(reading.read_texts)
    read_split = staticmethod(reading.read_text_split)
    run_description = "for the task 'denoising'"

    @classmethod
    def fit_fields(cls, recipe: Any, examples: Sequence[Example]) -> Fields:
        """Fit one vocabulary with sentinels."""
        config = recipe.data.source
        extra = (*config.extra_tokens, *recipe.data.corruption.sentinels)
        texts = [example.source for example in examples]
        tokenizer = train_tokenizer(replace(config, extra_tokens=extra), texts)
        return _fields(recipe, tokenizer, tokenizer)

    @classmethod
    def load_fields(cls, recipe: Any, folder: Path) -> Fields:
        """Load the vocabularies."""
        sides = (Tokenizer.load(folder / tokenizer_file(side)) for side in ("source", "target"))
        return _fields(recipe, *sides)

    def training_batches(self, examples: Sequence[Example]) -> Batches:
        """Return the training batches; other spans are masked in every epoch."""
        windows = self._windows(examples)
        batches = self.pair_batches(windows, windows, change=self.change_pairs(self.recipe.seed))
        vocab_size = self.source.tokenizer.vocab_size
        self.log_model(f"{vocab_size:,} tokens; {batches.num_batches(0):,} batches an epoch")
        return batches

    def change_pairs(self, seed: int) -> Change | None:
        """Return the function that masks spans of texts."""
        return Corruption(self.recipe.data.corruption, self.source.tokenizer, seed=seed).change

    def _fixed_batches(self, texts: Sequences) -> list[Batch]:
        """Return batches whose masked spans do not depend on the run's seed."""
        change = self.change_pairs(self.recipe.data.seed)
        return list(self.pair_batches(texts, texts, change=change, is_shuffled=False).epoch(0))

    def _windows(self, examples: Sequence[Example]) -> Sequences:
        lines = self.source.tokenizer.encode_batch([example.source for example in examples])
        # One position is left for the end token.
        return cut_windows(lines, self.recipe.data.batch.max_length - 1)

    def batches(
        self, examples: Sequence[Example], config: BatchConfig | None = None
    ) -> list[Batch]:
        """Return batches; if no line has a mask, fixed spans are masked."""
        if not examples or any(has_mask(example.source) for example in examples):
            return super().batches(examples, config)
        texts = self.source.tokenizer.encode_batch([example.source for example in examples])
        return self._fixed_batches(texts)

    def validation(self, examples: Sequence[Example]) -> Callable[[], Validation]:
        """Return a function that measures the loss of the masked spans, always the same ones."""
        batches = self._fixed_batches(self._windows(examples))
        return nll_validation(lambda: self.mean_nll(batches))

    def evaluate(self, examples: Sequence[Example], *, num_bootstrap: int = 0) -> Evaluation:
        """Mask spans of a test text, always the same ones, and measure their prediction.

        The metrics are over all tokens and have no confidence interval.
        """
        check_texts(examples)
        return evaluate_tokens(
            (self._predict_spans(batch) for batch in self._fixed_batches(self._windows(examples))),
            self._measure,
        )

    def _predict_spans(self, batch: Batch) -> tuple[Tensor, Iterator[tuple[str, str, str]]]:
        """Return correct tokens, loss and number of tokens of each text, and the texts."""
        on_device = batch.to(self.device)
        with torch.inference_mode():
            output = self.model(on_device.source, batch.source_mask, on_device.target[:, :-1])
        log_probs = output.logits.log_softmax(-1)
        predicted = log_probs.argmax(-1).cpu()
        labels, mask = batch.target[:, 1:], batch.target_mask[:, 1:]
        losses = -log_probs.gather(2, on_device.target[:, 1:, None])[..., 0].cpu()
        columns = [(predicted == labels) & mask, losses.where(mask, 0.0), mask]
        sums = torch.stack([column.double().sum(1) for column in columns], 1)  # (B, 3)
        return sums, self._write_texts(batch, predicted)

    def _write_texts(self, batch: Batch, predicted: Tensor) -> Iterator[tuple[str, str, str]]:
        """Yield each text with its masks, the predicted spans and the true spans."""
        texts = (batch.source, predicted, batch.target)
        for source, spans, target in zip(*(text.tolist() for text in texts), strict=True):
            yield self.source.write(source), self.target.write(spans), self.target.write(target)

    def _measure(self, sums: Tensor) -> dict[str, Result]:
        hits, nll, count = sums.sum(0).tolist()
        config = self.recipe.data
        signature = (
            f"masked:{config.corruption.share:g},spans of {config.corruption.mean_length:g}|"
            f"windows:{config.batch.max_length}|seed:{config.seed}|"
            f"vocab:{self.source.tokenizer.vocab_size}|teacher-forced"
        )
        detail = {"tokens": count, "loss": nll / count}
        return {
            "accuracy": Result("token accuracy", 100 * hits / count, signature, detail=detail),
            "perplexity": Result("perplexity", math.exp(nll / count), signature, detail=detail),
        }

    def predict(
        self,
        sources: Sequence[Text],
        *,
        num_best: int = 1,
        search: SearchConfig | None = None,
        prefix: str = "",
    ) -> list[list[Prediction]]:
        """Fill the masks of each line, `<mask>`, `[MASK]` or `___`, with any number of words.

        Args:
            sources: Lines with at least one mask each.
            num_best: Number of predictions per line.
            search: The search settings; those of the recipe if not given.
            prefix: Beginning of the generated target, such as `<x0> the`.
        """
        require_list(sources, "sources")
        lines = [as_text(source) for source in sources]
        check_masks(lines)
        predictions = super().predict(lines, search=search, num_best=num_best, prefix=prefix)
        return [
            [replace(one, text=fill_masks(line, self.target.spans(one.text))) for one in best]
            for line, best in zip(lines, predictions, strict=True)
        ]

    def best_texts(self, sources: Sequence[Any]) -> list[str]:
        """Fill the masks of each line; a line without masks is returned unchanged."""
        return fill_all_masks(sources, self.predict)

    def example_to_show(self, source: Any, target: str | None = None) -> tuple[Example, str]:
        """Return the line that `regard show` plots, and the line with its masks filled."""
        check_no_target(target)
        return super().example_to_show(source)

    def score(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the log-probability of the spans of each line.

        In a line without masks, spans are masked, always the same ones. For a line with masks, the
        target has the spans after their sentinels: `<x0> cat <x1> away`.
        """
        require_examples(examples)
        for number, example in enumerate(examples, start=1):
            if has_mask(example.source) and not example.target:
                raise DataError(
                    f"Line {number:,} must be without a mask, or have a target for it, to be "
                    f"scored, but is '{shorten(example.source)}'. `regard predict` fills masks."
                )
        return super().score(examples)

    def attend(self, examples: Sequence[Example]) -> list[AttentionMap]:
        """Return the attention weights of the generated spans of each line."""
        require_examples(examples)
        maps = []
        for example in examples:
            line = example.source
            text = super().predict([line])[0][0].text if has_mask(line) else ""
            maps += super().attend([Example(line, text)])
        return maps


def _fields(recipe: Any, source: Tokenizer, target: Tokenizer) -> Fields:
    """Return the fields; sentinels replace the masks of the source."""
    spellings = recipe.data.corruption.sentinels
    return {
        "source": MaskedTextField(source, [source.find(spelling) for spelling in spellings]),
        "target": SpanField(target, spellings),
    }
