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

    A rung that is finished is left as it is, and one that was interrupted goes on; so the same
    call, made again, goes on where the last one stopped.

    Args:
        request: What data and settings for every rung; its folder holds their run folders.
        only: Names of the rungs to take; all of them if not given.

    Returns:
        The run folders, lowest rung first, or None if training was interrupted.
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
    rungs = [replace(request, recipe=recipes[name], out=request.out / name) for name in chosen]
    # Every rung is checked before the first is trained: a wrong setting should not cost an hour.
    waiting = [rung for rung in rungs if not _is_finished(rung)]
    for number, rung in enumerate(waiting, start=1):
        logger.info("Rung %d of %d: %s.", number, len(waiting), rung.out.name)
        if train(rung.going_on()).evaluation is None:
            return None
    return [rung.out for rung in rungs]


def _is_finished(rung: Request) -> bool:
    """Tell whether a rung is trained and measured; raise if it is not the one asked for."""
    recipe = to_dict(load_recipe(str(rung.recipe), rung.settings))
    if not (rung.out / CONFIG).exists():
        return False
    saved = read_config(rung.out)
    if saved["recipe"] != recipe or saved["about"]["data"] != list(rung.data):
        raise ConfigError(
            f"{rung.out} was trained with other settings or on other data than asked for now, so "
            "it cannot stand beside the others. Remove it, or name another folder (--out)."
        )
    return (rung.out / METRICS).exists()
