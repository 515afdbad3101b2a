"""A conversation with a model, turn by turn."""

from dataclasses import dataclass, field, replace
from typing import Any

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.text.dialogue import TURNS, write_context
from regard.models.encoders import max_tokens
from regard.runs.reranking import PredictFunction, check_text_generator, predict_function
from regard.search.settings import SearchConfig, override_search
from regard.tasks.base import Task
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

TEMPERATURE, TOP_P = 0.8, 0.9
"""Defaults for recipes that do not sample: the most likely reply is often generic."""


@dataclass
class Conversation:
    """The turns of a person and a model."""

    task: Predictor
    """The model."""
    predict: PredictFunction
    """Function that predicts replies, with or without reranking."""
    search: SearchConfig
    """Search settings of the first reply; the seed increases by one with each reply."""
    num_turns: int
    """Maximum number of turns in the context of a reply; 0 = the last turn, without its speaker."""
    turns: list[str] = field(default_factory=list)
    """All turns; the first is the person's."""
    num_replies: int = 0
    """Number of replies so far, including those that were undone."""

    @classmethod
    def start(
        cls,
        task: Task[Any],
        *,
        overrides: list[str],
        num_turns: int = TURNS,
        reranker: Task[Any] | None = None,
        rerank_weight: float | None = None,
    ) -> "Conversation":
        """Start a conversation.

        Args:
            task: The model; its sources and targets must be text.
            overrides: Overrides of search settings, such as `search.temperature=0.8`.
            num_turns: Maximum number of turns in the context of a reply.
            reranker: A run that reranks replies.
            rerank_weight: Weight of the reranker.
        """
        at_least("turns", num_turns, 0)
        predictor = check_text_generator(task, "The run to chat with")
        predict = predict_function(predictor, reranker, rerank_weight)
        search = reply_search(predictor.recipe.search, overrides)
        return cls(predictor, predict, search, num_turns)

    def reply(self, turn: str) -> tuple[str, Prediction]:
        """Append a turn and the model's reply; return the context and the reply.

        An error or an interruption leaves the conversation unchanged.
        """
        context = self._write_context([*self.turns, turn])
        search = replace(self.search, seed=self.search.seed + self.num_replies)
        self.num_replies += 1
        ((reply,),) = self.predict([context], search=search)
        self.turns += [turn, reply.text]
        return context, reply

    def undo(self) -> str | None:
        """Remove the last turn and its reply; return the turn, or None if there is none."""
        removed = self.turns[-2:-1]
        del self.turns[-2:]
        return removed[0] if removed else None

    def _write_context(self, turns: list[str]) -> str:
        """Return the longest context that fits the model, without the oldest turns if needed."""
        contexts = [write_context(turns, max_turns=num) for num in range(self.num_turns, 0, -1)]
        contexts = contexts or turns[-1:]
        limit = max_source_tokens(self.task.recipe)
        lengths = [len(ids) for ids in self.task.source.read_all(contexts)]
        for context, length in zip(contexts, lengths, strict=True):
            if length <= limit:
                return context
        raise DataError(
            f"A turn must have at most {limit} tokens for this model, but has {lengths[-1]}. "
            "Write a shorter turn."
        )


def reply_search(search: SearchConfig, overrides: list[str]) -> SearchConfig:
    """Return the recipe's search with overrides; sample by default if the recipe does not."""
    sampled = (
        search if search.is_sampling else replace(search, temperature=TEMPERATURE, top_p=TOP_P)
    )
    changed = override_search(sampled, overrides)
    if not changed.is_sampling:
        changed = override_search(search, overrides)
    changed.warn_about_unused()
    return changed


def max_source_tokens(recipe: Recipe) -> int:
    """Return the maximum source length, limited by the model's positions and the training data."""
    max_trained = recipe.data.batch.max_length
    return min(max_trained, max_tokens(recipe.model.encoder) or max_trained)
