"""Table of tasks, imported on first use; recipes from plain values."""

from collections.abc import Sequence
from typing import Any

from regard.core.config import from_dict
from regard.core.overrides import override
from regard.core.tables import pick, resolve
from regard.tasks.base import Task
from regard.tasks.recipe import BaseRecipe

TASKS: dict[str, tuple[str, str]] = {
    "generation": ("generation.recipe:Recipe", "generation.task:Predictor"),
    "language_model": (
        "language_modeling:LanguageRecipe",
        "language_modeling:LanguageModelingTask",
    ),
    "denoising": ("denoising:DenoisingRecipe", "denoising:DenoisingTask"),
    "autoencoding": (
        "autoencoding.recipe:AutoencodingRecipe",
        "autoencoding.task:AutoencodingTask",
    ),
    "masked_language_model": ("masked_lm.recipe:MaskedRecipe", "masked_lm.task:MaskedLmTask"),
    "classification": (
        "classification.recipe:ClassificationRecipe",
        "classification.task:ClassificationTask",
    ),
    "segmentation": ("regions.recipe:SegmentationRecipe", "regions.segmentation:SegmentationTask"),
    "grounding": ("regions.recipe:GroundingRecipe", "regions.grounding:GroundingTask"),
    "image_to_image": (
        "image_to_image.recipe:ImageToImageRecipe",
        "image_to_image.task:ImageToImageTask",
    ),
}
"""Classes of the recipe and of the task by task name, as dotted names within this package."""


def recipe_class(name: str) -> type[BaseRecipe]:
    """Return the recipe class of a task."""
    recipe: type[BaseRecipe] = resolve(f"{__package__}.{pick(TASKS, name, 'task')[0]}")
    return recipe


def task_class(recipe: BaseRecipe) -> type[Task[Any]]:
    """Return the task class of a recipe."""
    task: type[Task[Any]] = resolve(f"{__package__}.{TASKS[recipe.task][1]}")
    return task


def override_recipe(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return the plain values of a recipe with overrides; a new kind takes over what it can."""
    return override(values, overrides, _class_of(values))


def to_recipe(values: dict[str, Any]) -> BaseRecipe:
    """Build a recipe from plain values; `task` determines its class."""
    return from_dict(_class_of(values), values)


def _class_of(values: dict[str, Any]) -> type[BaseRecipe]:
    return recipe_class(str(values.get("task", "generation")))
