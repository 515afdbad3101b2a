"""Which task each recipe is for."""

from typing import Any

from regard.tasks.autoencoding import AutoencodingTask
from regard.tasks.classification import ClassificationTask
from regard.tasks.denoising import DenoisingTask
from regard.tasks.grounding import GroundingTask
from regard.tasks.language import LanguageTask
from regard.tasks.masked import MaskedTask
from regard.tasks.picturing import PicturingTask
from regard.tasks.predictor import Predictor
from regard.tasks.recipe import (
    AutoencodingRecipe,
    BaseRecipe,
    ClassificationRecipe,
    DenoisingRecipe,
    GroundingRecipe,
    LanguageRecipe,
    MaskedRecipe,
    PicturingRecipe,
    Recipe,
    SegmentationRecipe,
)
from regard.tasks.segmentation import SegmentationTask
from regard.tasks.task import Task

TASKS: dict[type[BaseRecipe], type[Task[Any]]] = {
    Recipe: Predictor,
    DenoisingRecipe: DenoisingTask,
    AutoencodingRecipe: AutoencodingTask,
    MaskedRecipe: MaskedTask,
    LanguageRecipe: LanguageTask,
    ClassificationRecipe: ClassificationTask,
    SegmentationRecipe: SegmentationTask,
    GroundingRecipe: GroundingTask,
    PicturingRecipe: PicturingTask,
}
"""The tasks by the class of their recipe."""
