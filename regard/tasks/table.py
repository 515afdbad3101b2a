"""The tasks by recipe, and recipes from plain values."""

from typing import Any

from regard.core.config import from_dict
from regard.core.tables import pick
from regard.tasks.autoencoding.recipe import AutoencodingRecipe
from regard.tasks.autoencoding.task import AutoencodingTask
from regard.tasks.base import Task
from regard.tasks.classification.recipe import ClassificationRecipe
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.denoising import DenoisingRecipe, DenoisingTask
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.tasks.image_to_image.recipe import ImageToImageRecipe
from regard.tasks.image_to_image.task import ImageToImageTask
from regard.tasks.language_modeling import LanguageModelingTask, LanguageRecipe
from regard.tasks.masked_lm.recipe import MaskedRecipe
from regard.tasks.masked_lm.task import MaskedLmTask
from regard.tasks.recipe import BaseRecipe
from regard.tasks.regions.grounding import GroundingTask
from regard.tasks.regions.recipe import GroundingRecipe, SegmentationRecipe
from regard.tasks.regions.segmentation import SegmentationTask

TASKS: dict[type[BaseRecipe], type[Task[Any]]] = {
    Recipe: Predictor,
    LanguageRecipe: LanguageModelingTask,
    DenoisingRecipe: DenoisingTask,
    AutoencodingRecipe: AutoencodingTask,
    MaskedRecipe: MaskedLmTask,
    ClassificationRecipe: ClassificationTask,
    SegmentationRecipe: SegmentationTask,
    GroundingRecipe: GroundingTask,
    ImageToImageRecipe: ImageToImageTask,
}
"""The tasks by the class of their recipe."""

RECIPES: dict[str, type[BaseRecipe]] = {recipe.task: recipe for recipe in TASKS}
"""The classes of recipes by the name of their task."""


def to_recipe(values: dict[str, Any]) -> BaseRecipe:
    """Build a recipe from plain values, of the class that `task` names."""
    return from_dict(pick(RECIPES, str(values.get("task", "generation")), "task"), values)
