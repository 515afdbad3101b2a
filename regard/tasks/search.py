"""Overrides of the search settings of a task."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.core.errors import ConfigError
from regard.search.settings import SearchConfig, override_search
from regard.tasks.base import Generates, Task


def search_with(
    task: Task[Any], *, beams: int | None, num_best: int = 1, overrides: Sequence[str] = ()
) -> SearchConfig | None:
    """Return the search settings of a task with overrides; None if the task does not search.

    Unless `beams` is given, there are at least `num_best` beams. The precision `auto` of a run
    folder is replaced by that which is chosen.

    Args:
        task: Any task.
        beams: Number of beams, if not that of the recipe.
        num_best: Number of predictions per source.
        overrides: Such as `search.temperature=0.8`.
    """
    if not isinstance(task, Generates):
        if beams is not None or overrides:
            raise ConfigError(
                f"`{'--beam' if beams is not None else overrides[0]}` is for models that search "
                f"for their output, but the task of this run is '{task.recipe.task}'. "
                "Leave it out."
            )
        return None
    # The number of beams last: it must fit the number of groups that the overrides may change.
    given = [] if beams is None else [f"search.beams={beams}"]
    search = override_search(task.search, [*overrides, *given])
    if beams is None:
        search = search.with_beams(num_best)
    search.warn_about_unused(has_beam_option=beams is not None)
    if search.precision == "auto" and task.find_precision is not None:
        search = replace(search, precision=task.find_precision(task))
    return search


def override_task_search(
    task: Task[Any], *, beams: int | None = None, overrides: Sequence[str] = ()
) -> Task[Any]:
    """Return a task with overrides of its search settings; the same task if it does not search.

    Args:
        task: Any task; one without search refuses overrides.
        beams: Number of beams, if not that of the recipe.
        overrides: Such as `search.temperature=0.8`.
    """
    search = search_with(task, beams=beams, overrides=overrides)
    if isinstance(task, Generates) and search is not None:
        return task.with_search(search)
    return task
