"""A conversation with a model, turn by turn."""

from dataclasses import dataclass, field, replace
from typing import Any

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.text.dialogue import TURNS, write_context
from regard.models.encoders import max_tokens
from regard.runs.reranking import Answers, answering, check_writer
from regard.search.settings import SearchConfig, override_search
from regard.tasks.base import Task
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

TEMPERATURE, TOP_P = 0.8, 0.9
"""Sampling where the recipe would search: the most likely reply is often the dullest."""


@dataclass
class Conversation:
    """The turns of a person and a model."""

    task: Predictor
    """The model."""
    predict: Answers
    """Predicts replies, reranked or not."""
    search: SearchConfig
    """Search for or sampling of the first reply; the seed of each further one is one higher."""
    num_turns: int
    """Most turns in the context of a reply; 0 = the last turn, without its speaker."""
    turns: list[str] = field(default_factory=list)
    """All turns; the person began."""
    num_replies: int = 0
    """Replies until now, including those that were taken back."""

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
        """Begin a conversation.

        Args:
            task: The model; it must read text and generate text.
            overrides: Changes of the search, such as `search.temperature=0.8`.
            num_turns: Most turns in the context of a reply.
            reranker: A run that reranks replies.
            rerank_weight: Its weight.
        """
        at_least("turns", num_turns, 0)
        predictor = check_writer(task, "What you chat with")
        predict = answering(predictor, reranker, rerank_weight)
        search = reply_search(predictor.recipe.search, overrides)
        return cls(predictor, predict, search, num_turns)

    def reply(self, turn: str) -> tuple[str, Prediction]:
        """Add a turn and the model's reply; return the context that was read, and the reply.

        After an error or an interruption, the conversation is as before.
        """
        context = self._write_context([*self.turns, turn])
        search = replace(self.search, seed=self.search.seed + self.num_replies)
        self.num_replies += 1
        ((reply,),) = self.predict([context], search=search)
        self.turns += [turn, reply.text]
        return context, reply

    def undo(self) -> str | None:
        """Remove the last exchange and return the turn that began it, if there is one."""
        removed = self.turns[-2:-1]
        del self.turns[-2:]
        return removed[0] if removed else None

    def _write_context(self, turns: list[str]) -> str:
        """Write the context; the oldest turns are dropped as far as the model cannot read them."""
        contexts = [write_context(turns, most=most) for most in range(self.num_turns, 0, -1)]
        contexts = contexts or turns[-1:]
        limit = max_source_tokens(self.task.recipe)
        lengths = [len(ids) for ids in self.task.source.read_all(contexts)]
        for context, length in zip(contexts, lengths, strict=True):
            if length <= limit:
                return context
        raise DataError(
            f"A turn must have at most {limit} tokens for this model, but has {lengths[-1]}. "
            "Say it in fewer words."
        )


def reply_search(search: SearchConfig, overrides: list[str]) -> SearchConfig:
    """Return the recipe's search with overrides; without a temperature of its own, it samples."""
    sampled = (
        search if search.is_sampling else replace(search, temperature=TEMPERATURE, top_p=TOP_P)
    )
    changed = override_search(sampled, overrides)
    if not changed.is_sampling:
        changed = override_search(search, overrides)
    changed.warn_about_unused()
    return changed


def max_source_tokens(recipe: Recipe) -> int:
    """Return how many tokens a model can read: limited by its positions and by its training."""
    learned = recipe.data.batch.max_length
    return min(learned, max_tokens(recipe.model.encoder) or learned)
