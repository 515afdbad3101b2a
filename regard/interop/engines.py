"""Search engines of `regard predict` by name."""

from collections.abc import Mapping
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


def with_engine(
    task: Task[Any], name: str, *, has_log_probs: bool, options: Mapping[str, object]
) -> Task[Any]:
    """Return a task that searches with an engine.

    Args:
        task: The run.
        name: Name of the engine.
        has_log_probs: Whether log-probabilities are needed.
        options: Values of options that only our own search has, by name.
    """
    kind = pick(ENGINES, name, "--engine")
    if kind is None:
        return task
    for option, value in options.items():
        if value not in (None, False, "", []):
            raise ConfigError(f"`--engine {name}` has no `{option}`. Leave one of them out.")
    return kind.of(task, has_token_log_probs=has_log_probs)
