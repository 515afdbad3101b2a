"""A conversation with a model, turn by turn."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.core.config import at_least
from regard.core.errors import DataError
from regard.data.text.dialogue import SPEAKERS, TURNS, has_turns, write_context
from regard.models.encoders import max_tokens
from regard.runs.ensemble import split_folders
from regard.runs.folder import TEST, read_test_set
from regard.runs.reranking import PredictFunction, check_text_generator, predict_function
from regard.runs.saved.config import read_config
from regard.search.settings import SearchConfig, override_search
from regard.tasks.base import Task
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

TEMPERATURE, TOP_P = 0.8, 0.9
"""Defaults of conversations for recipes that do not sample: the most likely reply is often
generic."""


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
    is_dialogue: bool
    """Whether the model was trained on turns with speakers."""
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
        is_dialogue: bool,
        num_turns: int | None = None,
        reranker: Task[Any] | None = None,
        rerank_weight: float | None = None,
    ) -> "Conversation":
        """Start a conversation.

        A model that was not trained on turns, such as a translation model, gets each line alone
        and unchanged, and searches as in `regard predict`, unless `num_turns` is given.

        Args:
            task: The model; its sources and targets must be text.
            overrides: Overrides of search settings, such as `search.temperature=0.8`.
            is_dialogue: Whether the model was trained on turns with speakers.
            num_turns: Maximum number of turns in the context of a reply; `TURNS` if not given and
                the model was trained on turns, else 0.
            reranker: A run that reranks replies.
            rerank_weight: Weight of the reranker.
        """
        if num_turns is None:
            num_turns = TURNS if is_dialogue else 0
        at_least("turns", num_turns, 0)
        predictor = check_text_generator(task, "The run to chat with")
        predict = predict_function(predictor, reranker, rerank_weight)
        is_sampled = is_dialogue or num_turns > 0
        search = reply_search(predictor.recipe.search, overrides, is_sampled=is_sampled)
        return cls(predictor, predict, search, num_turns, is_dialogue)

    def describe(self) -> str:
        """Return one line about the sources and the search of the replies."""
        trained = "trained" if self.is_dialogue else "not trained"
        names = " and ".join(f"`{speaker}:`" for speaker in SPEAKERS)
        if self.num_turns:
            turns = (
                "the last turn is"
                if self.num_turns == 1
                else f"the last {self.num_turns} turns are"
            )
            context = f"{turns} the source, marked {names}"
        else:
            context = "each line is a source of its own"
        search = (
            f"replies are sampled (search.temperature={self.search.temperature:g})"
            if self.search.is_sampling
            else "replies are decoded as by `regard predict`"
        )
        return f"The model was {trained} on turns with speakers: {context}; {search}."

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


def trained_on_turns(run: str | Path) -> bool:
    """Return whether the sources of a run are turns with speakers, as `write_context` writes them.

    Older runs do not record it: their test set shows it.

    Args:
        run: A run folder, or several joined by commas; the first counts.
    """
    folder = split_folders(run)[0]
    about = read_config(folder)["about"]
    if "has_turns" in about:
        return bool(about["has_turns"])
    if not (folder / TEST).exists():
        return False
    return has_turns(example.source for example in read_test_set(folder))


def reply_search(
    search: SearchConfig, overrides: list[str], *, is_sampled: bool = True
) -> SearchConfig:
    """Return the recipe's search with overrides.

    Args:
        search: The search settings of the recipe.
        overrides: Such as `search.temperature=0.8`.
        is_sampled: Whether to sample by default, even if the recipe does not.
    """
    sampled = search
    if is_sampled and not search.is_sampling:
        sampled = replace(search, temperature=TEMPERATURE, top_p=TOP_P)
    changed = override_search(sampled, overrides)
    if not changed.is_sampling:
        changed = override_search(search, overrides)
    changed.warn_about_unused()
    return changed


def max_source_tokens(recipe: Recipe) -> int:
    """Return the maximum source length, limited by the model's positions and the training data."""
    max_trained = recipe.data.batch.max_length
    return min(max_trained, max_tokens(recipe.model.encoder) or max_trained)
