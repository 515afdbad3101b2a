"""Train the baseline models from `sutskever2014` to `prefix-lm` on one data set."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.core.config import to_dict
from regard.core.device import find_device
from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.core.tables import pick
from regard.runs.folder import METRICS
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.saved.config import CONFIG, read_config
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
"""Models from the oldest to the newest, with their recipes for a GPU."""

LAPTOP = {name: f"{name}-laptop" for name in FULL} | {"vaswani2017": "vaswani2017-tiny"}
"""The same models with their recipes for a machine without a GPU."""


def train_ladder(request: Request, *, only: Sequence[str] = ()) -> list[Path] | None:
    """Train the models one after the other on the same data, and return their run folders.

    Finished models are skipped and interrupted ones resumed, so that repeating the call continues
    the ladder.

    Args:
        request: Data and settings of every model; its folder holds the run folders.
        only: Names of the models to train; all if not given.

    Returns:
        The run folders, oldest model first, or None if training was interrupted.
    """
    recipes = FULL if find_device(request.device).type == "cuda" else LAPTOP
    for name in only:
        pick(recipes, name, "only")
    chosen = [name for name in recipes if not only or name in only]
    if len(chosen) < 2:
        raise ConfigError(
            f"`only` must name at least two models, or there is nothing to compare, but is "
            f"'{chosen[0]}'. Train a single model with `regard train`."
        )
    requests = [replace(request, recipe=recipes[name], out=request.out / name) for name in chosen]
    # Check all requests before training: a wrong setting should fail at once.
    remaining = [each for each in requests if not _is_finished(each)]
    for number, each in enumerate(remaining, start=1):
        logger.info("Model %d of %d: %s.", number, len(remaining), each.out.name)
        if train(each.resume_if_started()).evaluation is None:
            return None
    return [each.out for each in requests]


def _is_finished(request: Request) -> bool:
    """Return whether a model is trained and evaluated; raise if its settings differ."""
    recipe = to_dict(load_recipe(str(request.recipe), request.settings))
    if not (request.out / CONFIG).exists():
        return False
    saved = read_config(request.out)
    if request.fits_tokens:
        recipe, saved["recipe"] = (
            _without_fitted(one, request.settings) for one in (recipe, saved["recipe"])
        )
    if saved["recipe"] != recipe or saved["about"]["data"] != list(request.data):
        raise ConfigError(
            f"{request.out} was trained with other settings or on other data than requested, so it "
            "cannot be compared with the others. Remove it, or name another folder (--out)."
        )
    return (request.out / METRICS).exists()


def _without_fitted(recipe: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return a recipe without the tokens that are changed to fit the data."""
    fitted = {
        side
        for side in ("source", "target")
        if not any(item.startswith(f"data.{side}.kind=") for item in overrides)
    }
    data = {key: value for key, value in recipe["data"].items() if key not in fitted}
    return {**recipe, "data": data}
