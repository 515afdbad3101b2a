"""Which task each recipe is for."""

from typing import Any

from regard.tasks.autoencoding.task import AutoencodingTask
from regard.tasks.base import Task
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.denoising import DenoisingTask
from regard.tasks.generation.task import Predictor
from regard.tasks.image_to_image.task import ImageToImageTask
from regard.tasks.language_modeling import LanguageTask
from regard.tasks.masked_lm.task import MaskedTask
from regard.tasks.recipe import (
    AutoencodingRecipe,
    BaseRecipe,
    ClassificationRecipe,
    DenoisingRecipe,
    GroundingRecipe,
    ImageToImageRecipe,
    LanguageRecipe,
    MaskedRecipe,
    Recipe,
    SegmentationRecipe,
)
from regard.tasks.regions.grounding import GroundingTask
from regard.tasks.regions.segmentation import SegmentationTask

TASKS: dict[type[BaseRecipe], type[Task[Any]]] = {
    Recipe: Predictor,
    DenoisingRecipe: DenoisingTask,
    AutoencodingRecipe: AutoencodingTask,
    MaskedRecipe: MaskedTask,
    LanguageRecipe: LanguageTask,
    ClassificationRecipe: ClassificationTask,
    SegmentationRecipe: SegmentationTask,
    GroundingRecipe: GroundingTask,
    ImageToImageRecipe: ImageToImageTask,
}
"""The tasks by the class of their recipe."""
