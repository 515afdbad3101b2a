"""Reranking of predictions by a reverse model: maximum mutual information (Li et al. 2016)."""

from collections.abc import Callable, Sequence
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
from regard.search.length_penalty import length_scale
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation.forced_decoding import score
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import Prediction

MIN_CANDIDATES = 10
"""Minimum number of candidates per source."""

WEIGHT = 0.5
"""Default weight of the reverse model."""

RERANKED, RERANKER = "The run to be reranked", "The run that reranks"
"""Roles of runs in messages."""

PredictFunction = Callable[..., list[list[Prediction]]]
"""Sources, and `search`, `num_best` and `prefix` as for `Predictor.predict` → predictions."""


def rerank(
    task: Predictor,
    reverse: Predictor,
    sources: Sequence[str],
    *,
    num_best: int = 1,
    weight: float = WEIGHT,
    search: SearchConfig | None = None,
    reverse_target: Callable[[str], str] = str,
    prefix: str = "",
) -> list[list[Prediction]]:
    """Predict for each source, ranked by the probabilities of two models, in input order.

    Generic targets such as "I don't know" are likely for any source, but the source is unlikely
    given them. Candidates are ranked by log p(target | source) / length^a + weight ·
    log p(source | target) / length^a, where a is the length penalty ("MMI-bidi" in Li et al.
    2016). The lengths make the weight independent of the source length. With two translation
    models in opposite directions, this is a noisy channel model.

    Args:
        task: Model that generates the candidates, by search or sampling: as many as it has beams,
            but at least `MIN_CANDIDATES`.
        reverse: Model from targets to sources; its vocabularies may differ.
        sources: The sources.
        num_best: Number of predictions per source; fewer if fewer are distinct.
        weight: Weight of the reverse model; with 0, only `task` ranks.
        search: Search settings; the recipe's if not given.
        reverse_target: Function from a source to the part that the reverse model scores; the whole
            source if not given.
        prefix: Forced beginning of every prediction.

    Returns:
        Predictions with the log-probabilities of `task`, in descending order of the joint score.
    """
    check_text_generator(task, RERANKED)
    check_text_generator(reverse, RERANKER)
    at_least("nbest", num_best, 1)
    at_least("rerank-weight", weight, 0.0)
    config = search or task.recipe.search
    num = max(config.beams, num_best, MIN_CANDIDATES)
    search = config.with_beams(num)
    predictions = task.predict(sources, search=search, num_best=num, prefix=prefix)
    candidates = [_distinct(group) for group in predictions]
    columns = task.recipe.data.columns
    targets = [reverse_target(as_text(split_columns(source, columns))) for source in sources]
    pairs = [
        Example(candidate.text, target)
        for target, group in zip(targets, candidates, strict=True)
        for candidate in group
    ]
    reverse_scores = (_score(scored, config) for scored in score(reverse, pairs))
    reranked = []
    for group in candidates:
        scored = [(_score(one, config) + weight * next(reverse_scores), one) for one in group]
        scored.sort(key=lambda pair: -pair[0])
        reranked.append([one for _, one in scored[:num_best]])
    return reranked


def predict_function(
    task: Task[Any], reverse: Task[Any] | None = None, weight: float | None = None
) -> PredictFunction:
    """Return the function that predicts with a run, reranked if there is a reverse model.

    Args:
        task: The run.
        reverse: The run that reranks the predictions.
        weight: Weight of `reverse`.
    """
    if reverse is None:
        if weight is not None:
            logger.warning("`--rerank-weight` is %g, but has no effect without `--rerank`.", weight)
        return task.predict
    return partial(
        rerank,
        check_text_generator(task, RERANKED),
        check_text_generator(reverse, RERANKER),
        weight=WEIGHT if weight is None else weight,
        reverse_target=last_turn,
    )


def check_text_generator(run: Task[Any], role: str) -> Predictor:
    """Return a run that generates text from text; raise a `ConfigError` for any other.

    Args:
        run: The run.
        role: Role of the run, as the subject of the message.
    """
    if type(run) is not Predictor:
        raise ConfigError(
            f"{role} must be a run for the task 'generation', an encoder–decoder, but is one for "
            f"'{run.recipe.task}'."
        )
    if modality_of(run.recipe.data.source).name != "text":
        raise ConfigError(f"{role} must have text sources, but its sources contain images.")
    return run


def last_turn(context: str) -> str:
    """Return the last turn: `how are you` of `you: hi me: hello you: how are you`.

    Text that is not a conversation is returned unchanged.
    """
    if not context.startswith(tuple(f"{speaker}: " for speaker in SPEAKERS)):
        return context
    return context.rpartition(f"{SPEAKERS[0]}: ")[2]


def _distinct(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Drop predictions with equal texts, sampled twice or tokenised differently."""
    texts: dict[str, Prediction] = {}
    for one in predictions:
        texts.setdefault(one.text, one)
    return list(texts.values())


def _score(prediction: Prediction, config: SearchConfig) -> float:
    """Return the log-probability with the length penalty of a search."""
    # The prediction for an empty source has no token.
    return prediction.log_prob / length_scale(float(max(len(prediction.tokens), 1)), config)
