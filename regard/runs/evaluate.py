"""Evaluation of a run on a test set, and log-probabilities of given targets."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.data.example import Example
from regard.data.text.readers import ON_ERROR
from regard.tasks.base import Generates, Scores, Task, search_with
from regard.tasks.evaluation import Evaluation
from regard.tasks.generation.recipe import DataConfig
from regard.tasks.prediction import Prediction
from regard.tasks.recipe import BaseDataConfig


def evaluate_data(
    task: Task[Any],
    paths: tuple[str, ...],
    *,
    columns: tuple[str, ...] | None = None,
    on_error: str | None = None,
    beams: int | None = None,
    num_bootstrap: int = 1000,
) -> Evaluation:
    """Evaluate a run on files, or on the test part of a built-in data set.

    Args:
        task: The run.
        paths: A data set's name, a file of pairs, or two line-aligned files.
        columns: Roles or titles of the columns of a file, the recipe's if not given: a model
            trained on two columns may be evaluated on several references.
        on_error: 'stop' at lines that hold no pair, or 'skip' them; the recipe's if not given.
        beams: Number of beams, the recipe's if not given.
        num_bootstrap: Number of bootstrap samples per confidence interval.
    """
    config: BaseDataConfig = task.recipe.data
    if columns is not None:
        if not isinstance(config, DataConfig):
            raise ConfigError(
                "`--columns` is for models that generate text, but the task of this run is "
                f"'{task.recipe.task}'. Leave it out."
            )
        config = replace(config, columns=columns)
    config = _with_on_error(config, on_error)
    examples = task.read_split(paths, "test", config=config)
    search = search_with(task, beams=beams)
    if isinstance(task, Generates) and search is not None:
        task = task.with_search(search)
    return task.evaluate(examples, num_bootstrap=num_bootstrap)


def _with_on_error(config: BaseDataConfig, on_error: str | None) -> BaseDataConfig:
    if on_error is None:
        return config
    return replace(config, on_error=pick(ON_ERROR, on_error, "on_error"))


def score_data(
    task: Task[Any], paths: tuple[str, ...], *, on_error: str | None = None
) -> Iterator[tuple[Example, Prediction]]:
    """Yield each example of files or a built-in data set with the log-probability of its target.

    Args:
        task: The run.
        paths: As for `evaluate_data`.
        on_error: As for `evaluate_data`.
    """
    if not isinstance(task, Scores):
        raise ConfigError(
            "This needs a run that computes log-probabilities of targets, but the task of this run "
            f"is '{task.recipe.task}'."
        )
    config = _with_on_error(task.recipe.data, on_error)
    examples = task.read_split(paths, "test", config=config)
    yield from zip(examples, task.score(examples), strict=True)
