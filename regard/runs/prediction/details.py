"""Details of predictions: alternatives at each position, and the beam tree of one sentence."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.core.files import check_suffix, write_json
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.decoding.alternatives import add_alternatives
from regard.tasks.decoding.beam_tree import find_beam_tree
from regard.tasks.prediction import Prediction

if TYPE_CHECKING:
    from regard.runs.prediction.predict import PredictOptions

Predict = Callable[..., list[list[Prediction]]]
"""Sources → the predictions of each source."""


def with_details(
    predict: Predict,
    task: Task[Any],
    *,
    search: SearchConfig | None,
    options: "PredictOptions",
    is_reranked: bool,
) -> Predict:
    """Return a function that predicts and adds the details that the options ask for.

    Args:
        predict: Predicts for sources.
        task: The run.
        search: The search settings; None if the task does not search.
        options: The options of prediction.
        is_reranked: Whether another run reranks the predictions.
    """
    named = {"--alternatives": options.alternatives, "--tree": options.tree}
    for name, value in named.items():
        if value is not None and search is None:
            raise ConfigError(
                f"`{name}` is for models that generate tokens, but the task of this run is "
                f"'{task.recipe.task}'. Leave it out."
            )
        if value is not None and options.chunk_seconds is not None:
            raise ConfigError(
                f"`{name}` is for whole predictions, but `--chunk` joins those of segments. Leave "
                "one of them out."
            )
    if search is None:
        return predict
    if options.tree is not None:
        if is_reranked:
            raise ConfigError(
                "`--tree` shows the search of one run, so it cannot be used with `--rerank`. Leave "
                "one of them out."
            )
        check_suffix(options.tree, "--tree", ".json")
        predict = partial(
            _predict_tree, task, options.tree, search=search, options=options, calls=count()
        )
    if options.alternatives is not None:
        at_least("--alternatives", options.alternatives, 1)
        predict = partial(
            _predict_alternatives, predict, task, num=options.alternatives, search=search
        )
    return predict


def _predict_alternatives(
    predict: Predict, task: Task[Any], sources: Sequence[str], *, num: int, search: SearchConfig
) -> list[list[Prediction]]:
    return add_alternatives(task, sources, predict(sources), num=num, search=search)


def _predict_tree(
    task: Task[Any],
    path: Path,
    sources: Sequence[str],
    *,
    search: SearchConfig,
    options: "PredictOptions",
    calls: "count[int]",
) -> list[list[Prediction]]:
    """Predict for one source and write its beam tree; raise for a second source."""
    if next(calls) or len(sources) != 1:
        raise ConfigError("`--tree` is for one sentence, but there are several. Name one of them.")
    tree = find_beam_tree(task, sources[0], search=search, prefix=options.prefix)
    write_json(path, tree.to_dict())
    return [list(tree.predictions[: options.num_best])]
