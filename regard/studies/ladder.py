"""From a fixed context to self-attention to one language model: all on the same data."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.core.config import to_dict
from regard.core.device import find_device
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.core.tables import pick
from regard.runs.folder import CONFIG, METRICS, read_config
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train

FULL = {
    "sutskever2014": "sutskever2014",
    "cho2014": "cho2014",
    "bahdanau2015": "bahdanau2015",
    "luong2015": "luong2015",
    "gehring2017": "gehring2017",
    "vaswani2017": "vaswani2017-small",
    "prefix-lm": "prefix-lm",
}
"""The models from the oldest to the newest, with their recipes for a GPU."""

LAPTOP = {name: f"{name}-laptop" for name in FULL} | {"vaswani2017": "vaswani2017-tiny"}
"""The same with their recipes for a machine without one."""


def climb(request: Request, *, only: Sequence[str] = ()) -> list[Path] | None:
    """Train one model after the other on the same data, and return their run folders.

    A model that is finished is left as it is, and one that was interrupted goes on; so the same
    call, made again, goes on where the last one stopped.

    Args:
        request: What data and settings for every model; its folder holds their run folders.
        only: Names of the models to train; all of them if not given.

    Returns:
        The run folders, simplest model first, or None if training was interrupted.
    """
    recipes = FULL if find_device(request.device).type == "cuda" else LAPTOP
    for name in only:
        pick(recipes, name, "only")
    chosen = [name for name in recipes if not only or name in only]
    if len(chosen) < 2:
        raise ConfigError(
            f"`only` must name at least two rungs, or there is nothing to compare, but is "
            f"'{chosen[0]}'. Train a single model with `regard train`."
        )
    requests = [replace(request, recipe=recipes[name], out=request.out / name) for name in chosen]
    # Every request is checked before the first is trained: a wrong setting should not cost an hour.
    waiting = [one for one in requests if not _is_finished(one)]
    for number, one in enumerate(waiting, start=1):
        logger.info("Rung %d of %d: %s.", number, len(waiting), one.out.name)
        if train(one.resume_if_started()).evaluation is None:
            return None
    return [one.out for one in requests]


def _is_finished(request: Request) -> bool:
    """Return whether a model is trained and measured; raise if its settings are others."""
    recipe = to_dict(load_recipe(str(request.recipe), request.settings))
    if not (request.out / CONFIG).exists():
        return False
    saved = read_config(request.out)
    if saved["recipe"] != recipe or saved["about"]["data"] != list(request.data):
        raise ConfigError(
            f"{request.out} was trained with other settings or on other data than asked for now, "
            "so it cannot stand beside the others. Remove it, or name another folder (--out)."
        )
    return (request.out / METRICS).exists()
