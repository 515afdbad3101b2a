"""Which task each recipe is for."""

from typing import Any

from regard.tasks.predictor import Predictor
from regard.tasks.recipe import BaseRecipe, Recipe
from regard.tasks.task import Task

TASKS: dict[type[BaseRecipe], type[Task[Any]]] = {
    Recipe: Predictor,
}
"""The tasks by the class of their recipe."""
