"""Evaluation of a run on a test set, and log-probabilities of given targets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.data.example import Example
from regard.data.text.readers import ON_ERROR
from regard.tasks.base import Scores, Task
from regard.tasks.evaluation import Evaluation
from regard.tasks.prediction import Prediction
from regard.tasks.reading import with_columns
from regard.tasks.recipe import BaseDataConfig
from regard.tasks.search import override_task_search


def read_test_data(
    task: Task[Any],
    paths: tuple[str, ...],
    *,
    columns: tuple[str, ...] | None = None,
    on_error: str | None = None,
) -> list[Example]:
    """Read files, or the test part of a built-in data set.

    Args:
        task: The run.
        paths: A data set's name, a file of pairs, or two line-aligned files.
        columns: Roles or titles of the columns of a file, the recipe's if not given: a model
            trained on two columns may be evaluated on several references.
        on_error: 'stop' at lines that hold no pair, or 'skip' them; the recipe's if not given.
    """
    config: BaseDataConfig = with_columns(task.recipe, columns).data
    if on_error is not None:
        config = replace(config, on_error=pick(ON_ERROR, on_error, "--on-error"))
    return task.read_split(paths, "test", config=config)


def evaluate_examples(
    task: Task[Any],
    examples: Sequence[Example],
    *,
    beams: int | None = None,
    overrides: Sequence[str] = (),
    num_bootstrap: int = 1000,
) -> Evaluation:
    """Evaluate a run on examples.

    Args:
        task: The run.
        examples: Sources with their targets.
        beams: Number of beams, the recipe's if not given.
        overrides: Overrides of search settings, such as `search.beams=1`.
        num_bootstrap: Number of bootstrap samples per confidence interval.
    """
    task = override_task_search(task, beams=beams, overrides=overrides)
    return task.evaluate(examples, num_bootstrap=num_bootstrap)


def score_examples(
    task: Task[Any], examples: Sequence[Example]
) -> Iterator[tuple[Example, Prediction]]:
    """Yield each example with the log-probability of its target.

    Args:
        task: The run.
        examples: Sources with their targets.
    """
    if not isinstance(task, Scores):
        raise ConfigError(
            "This needs a run that computes log-probabilities of targets, but the task of this run "
            f"is '{task.recipe.task}'."
        )
    yield from zip(examples, task.score(examples), strict=True)
