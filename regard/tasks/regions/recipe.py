"""Recipes of tasks that predict regions of images: segmentation and grounding."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from regard.core.config import AtLeast, Config
from regard.core.errors import ConfigError
from regard.data.image.field import ImageConfig
from regard.data.text_image import TextImageConfig
from regard.models.heads.regions import GrounderConfig, PatchLabellerConfig
from regard.tasks.recipe import BaseDataConfig, BaseRecipe


@dataclass(frozen=True, kw_only=True)
class RegionValidationConfig(Config):
    """Validation: the criterion for the best weights."""

    metric: Literal["iou", "accuracy", "loss"] = "iou"
    """Intersection over union of predicted and true regions, accuracy, or the loss."""


@dataclass(frozen=True, kw_only=True)
class SegmentationDataConfig(BaseDataConfig):
    """Data settings of images with labelled cells."""

    source: ImageConfig = field(default_factory=lambda: ImageConfig(fit="squash"))
    """The source image, without geometric augmentation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_geometry_unchanged(self.source, "source")


@dataclass(frozen=True, kw_only=True)
class SegmentationRecipe(BaseRecipe):
    """An encoder that predicts the label of each cell of an image."""

    task: Literal["segmentation"] = "segmentation"
    """The task."""
    data: SegmentationDataConfig = field(default_factory=SegmentationDataConfig)
    """Data and batching."""
    model: PatchLabellerConfig = field(default_factory=PatchLabellerConfig)
    """The model; with `init_from`, its encoder is that of the other run."""
    validation: RegionValidationConfig = field(default_factory=RegionValidationConfig)
    """Validation."""


@dataclass(frozen=True, kw_only=True)
class GroundingDataConfig(BaseDataConfig):
    """Data settings of phrases with images and boxes."""

    source: TextImageConfig = field(
        default_factory=lambda: TextImageConfig(image=ImageConfig(fit="squash"))
    )
    """The phrase, with the settings of its tokeniser, and the image."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_geometry_unchanged(self.source.image, "source.image")


@dataclass(frozen=True, kw_only=True)
class BoxLossConfig(Config):
    """Loss of a predicted box (Carion et al. 2020, eq. 9)."""

    distance: Annotated[float, AtLeast(0)] = 5.0
    """Weight of the L1 distance between centres and sizes."""
    overlap: Annotated[float, AtLeast(0)] = 2.0
    """Weight of the generalised intersection-over-union loss."""


@dataclass(frozen=True, kw_only=True)
class GroundingRecipe(BaseRecipe):
    """Two encoders that predict the box of the object that a phrase names in an image."""

    task: Literal["grounding"] = "grounding"
    """The task."""
    data: GroundingDataConfig = field(default_factory=GroundingDataConfig)
    """Data and batching."""
    model: GrounderConfig = field(default_factory=GrounderConfig)
    """The model."""
    loss: BoxLossConfig = field(default_factory=BoxLossConfig)
    """Loss of a predicted box."""
    validation: RegionValidationConfig = field(default_factory=RegionValidationConfig)
    """Validation."""


def check_geometry_unchanged(image: ImageConfig, name: str) -> None:
    """Raise a `ConfigError` if an image setting would move the image relative to its regions."""
    rules = {
        "fit": (f"'{image.fit}'", "'squash'"),
        "augmentation.crop": (str(image.augmentation.crop), "0"),
        "augmentation.zoom": (f"{image.augmentation.zoom:g}", "0"),
        "augmentation.flip": (str(image.augmentation.flip).lower(), "false"),
    }
    for setting, (value, needed) in rules.items():
        if value != needed:
            raise ConfigError(
                f"`{name}.{setting}` must be {needed} for tasks with regions of an image, or the "
                f"regions would be misplaced, but is {value}."
            )
