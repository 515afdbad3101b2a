"""Search engines of `regard predict` by name."""

from typing import Any

from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.interop.ctranslate2.engine import CTranslate2Predictor
from regard.tasks.base import Task

OURS = "regard"
"""The search of this package."""

ENGINES: dict[str, type[CTranslate2Predictor] | None] = {
    OURS: None,
    "ctranslate2": CTranslate2Predictor,
}
"""Predictors by the name of their engine; None = the task itself."""


def with_engine(task: Task[Any], name: str, *, is_reranked: bool, has_log_probs: bool) -> Task[Any]:
    """Return a task that searches with an engine.

    Args:
        task: The run.
        name: Name of the engine.
        is_reranked: Whether another run reranks the predictions; other engines do not.
        has_log_probs: Whether log-probabilities are needed.
    """
    kind = pick(ENGINES, name, "--engine")
    if kind is None:
        return task
    if is_reranked:
        raise ConfigError(f"`--engine {name}` has no `--rerank`. Leave one of them out.")
    return kind.of(task, has_token_log_probs=has_log_probs)
