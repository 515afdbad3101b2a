"""Answers in a new order: those first from which another model can tell what was asked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.data.example import Example
from regard.data.modality import modality_of
from regard.data.text.columns import split_columns
from regard.data.text.dialogue import SPEAKERS
from regard.data.text.field import as_text
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation import forced_decoding as forcing
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

LEAST_CANDIDATES = 10
"""Of fewer answers there is little to choose from."""

WEIGHT = 0.5
"""What the reverse model counts, if not told otherwise."""

Answers = Callable[..., list[list[Prediction]]]
"""Sources, and `search`, `num_best` and `prefix` as for `Predictor.predict` → predictions."""


def rerank(
    task: Predictor,
    reverse: Predictor,
    sources: Sequence[str],
    *,
    num_best: int = 1,
    weight: float = WEIGHT,
    search: SearchConfig | None = None,
    question: Callable[[str], str] = str,
    prefix: str = "",
) -> list[list[Prediction]]:
    """Answer every source by what is likely both ways, in the order given.

    Answers that fit anything, such as "I don't know", are likely but tell nothing of the question.
    Maximum mutual information, both ways, as in Li et al. 2016 ("MMI-bidi"): candidates are ranked
    by log p(target | source) / length^a + weight · log p(question | target) / length^a, a being the
    length penalty, so that a weight means the same for long and short questions. With a translator
    and one that translates back this is a noisy channel.

    Args:
        task: What writes candidates: as many as it has beams, 10 at least, searched for or drawn.
        reverse: What tells the question from an answer; its vocabularies may be its own.
        sources: What is asked.
        num_best: How many predictions a source; fewer come where fewer are distinct.
        weight: What the reverse model counts; 0 leaves the order to the first model alone.
        search: How to search or draw; the recipe's way if not given.
        question: What of a source the reverse model is to tell; all of it if not given.
        prefix: What every answer must begin with.

    Returns:
        Predictions with the log-probabilities of `task`, the best by both first.
    """
    check_writer(task, "What is reranked")
    check_writer(reverse, "What reranks")
    at_least("nbest", num_best, 1)
    at_least("rerank-weight", weight, 0.0)
    config = search or task.recipe.search
    most = max(config.beams, num_best, LEAST_CANDIDATES)
    found = task.predict(sources, search=replace(config, beams=most), num_best=most, prefix=prefix)
    candidates = [_distinct(group) for group in found]
    columns = task.recipe.data.columns
    questions = [question(as_text(split_columns(source, columns))) for source in sources]
    pairs = [
        Example(one.text, asked)
        for asked, group in zip(questions, candidates, strict=True)
        for one in group
    ]
    told = iter(forcing.score(reverse, pairs))
    answers = []
    for group in candidates:
        valued = [(_value(one, config) + weight * _value(next(told), config), one) for one in group]
        valued.sort(key=lambda pair: -pair[0])
        answers.append([one for _, one in valued[:num_best]])
    return answers


def answering(
    task: Task[Any], reverse: Task[Any] | None = None, weight: float | None = None
) -> Answers:
    """Return how a run answers: by itself, or reranked by another one.

    Args:
        task: The run.
        reverse: What reranks its answers, if anything does.
        weight: What the other run counts.
    """
    if reverse is None:
        if weight is not None:
            logger.warning("`--rerank-weight` is %g, but has no effect without `--rerank`.", weight)
        return task.predict
    return partial(
        rerank,
        check_writer(task, "What is reranked"),
        check_writer(reverse, "What reranks"),
        weight=WEIGHT if weight is None else weight,
        question=last_turn,
    )


def check_writer(run: Task[Any], what: str) -> Predictor:
    """Return a run that generates text from text; raise a `ConfigError` for any other.

    Args:
        run: The run.
        what: Its role, as a message begins.
    """
    if type(run) is not Predictor:
        raise ConfigError(
            f"{what} must be a run for the task 'generation', an encoder–decoder, but is one for "
            f"'{run.recipe.task}'."
        )
    if modality_of(run.recipe.data.source).name != "text":
        raise ConfigError(f"{what} must be a run that reads text alone, but it reads images.")
    return run


def last_turn(context: str) -> str:
    """Return what was said last: `how are you` of `you: hi me: hello you: how are you`.

    What is not written as a conversation is returned as it is.
    """
    if not context.startswith(tuple(f"{speaker}: " for speaker in SPEAKERS)):
        return context
    return context.rpartition(f"{SPEAKERS[0]}: ")[2]


def _distinct(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Keep of equal texts the first: what was drawn twice, or cut into pieces in two ways."""
    texts: dict[str, Prediction] = {}
    for one in predictions:
        texts.setdefault(one.text, one)
    return list(texts.values())


def _value(prediction: Prediction, config: SearchConfig) -> float:
    """Return what a search ranks by: the log-probability, made comparable between lengths."""
    # The answer to an empty source has no token at all.
    scale: float = max(len(prediction.tokens), 1) ** config.length_penalty
    return prediction.log_prob / scale
