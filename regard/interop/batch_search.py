"""Predictors whose search runs in another library, one batch at a time."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import torch

from regard.core.errors import ConfigError
from regard.data.batch import Batch
from regard.data.example import Example
from regard.data.text.field import Text, as_text
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.batches import map_batches, predict_nonempty
from regard.tasks.decoding.preparation import PrecisionSetting
from regard.tasks.generation.lexical import LexicalOptions
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction


class BatchSearchPredictor(Predictor, ABC):
    """A predictor that reads, sorts and writes texts as usual, but searches with another library.

    Batches, tokenisers and limits of length are those of `Predictor`.
    """

    @classmethod
    def copy_of(cls, task: Task[Any]) -> Self:
        """Return a predictor with the model and the fields of a run."""
        if not isinstance(task, Predictor):
            raise ConfigError(
                "The run must be an encoder–decoder that generates text, but its task is "
                f"'{task.recipe.task}'."
            )
        return cls(task.recipe, task.model, task.fields, device=task.device)

    def with_packed_model(self, precision: PrecisionSetting) -> Self:
        """Return the same task: the library has its own weights."""
        return copy.copy(self)

    def with_lexical(self, options: LexicalOptions) -> Self:
        """Raise `ConfigError`, since the library has no lexical control."""
        raise ConfigError(
            "Lexical control needs the search of this package, but another library searches. "
            "Leave one of them out."
        )

    @abstractmethod
    def search_batch(
        self, batch: Batch, config: SearchConfig, *, max_lengths: list[int], num_best: int
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each source of a batch, best first.

        Args:
            batch: The sources.
            config: The search settings.
            max_lengths: Maximum number of target tokens of each source.
            num_best: Number of hypotheses per source.
        """

    def check_search(self, config: SearchConfig, prefix: Sequence[int]) -> None:
        """Raise `ConfigError` if the library lacks a setting of the search."""

    def _predict(
        self,
        sources: Sequence[Text],
        config: SearchConfig,
        *,
        num_best: int = 1,
        prefix: Sequence[int] = (),
    ) -> list[list[Prediction]]:
        self.check_search(config, prefix)
        write, tokenizer = self.target.write, self.target.tokenizer

        @torch.inference_mode()
        def predict_batch(batch: Batch) -> list[list[Prediction]]:
            limits = self.max_lengths(batch.source_mask, config).tolist()
            hypotheses = self.search_batch(batch, config, max_lengths=limits, num_best=num_best)
            return [
                [Prediction.from_hypothesis(write(one.tokens), one, tokenizer) for one in best]
                for best in hypotheses
            ]

        def predict(nonempty: list[Text]) -> list[list[Prediction]]:
            return map_batches(predict_batch, self.batches([Example(one) for one in nonempty]))

        return predict_nonempty(
            predict, sources, is_nonempty=lambda source: as_text(source).strip()
        )


def source_ids(batch: Batch) -> list[list[int]]:
    """Return the token ids of the sources of a batch, without padding."""
    lengths = batch.source_mask.sum(1).tolist()
    rows = batch.source.tolist()
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]
