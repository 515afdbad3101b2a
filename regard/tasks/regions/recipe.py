"""Recipes of tasks that ask where something is in an image."""

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
    """What decides which weights are best where regions of images are found."""

    metric: Literal["iou", "accuracy", "loss"] = "iou"
    """What found and right regions share, how many are right, or the loss."""


@dataclass(frozen=True, kw_only=True)
class SegmentationDataConfig(BaseDataConfig):
    """How images with labelled cells become batches."""

    source: ImageConfig = field(default_factory=lambda: ImageConfig(fit="squash"))
    """What becomes of the image; nothing that would move what is in it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unmoved(self.source, "source")


@dataclass(frozen=True, kw_only=True)
class SegmentationRecipe(BaseRecipe):
    """An encoder that tells which label each cell of an image has."""

    task: Literal["segmentation"] = "segmentation"
    """What the model is for."""
    data: SegmentationDataConfig = field(default_factory=SegmentationDataConfig)
    """How images with labelled cells become batches."""
    model: PatchLabellerConfig = field(default_factory=PatchLabellerConfig)
    """The model; a run that begins from another takes that one's encoder."""
    validation: RegionValidationConfig = field(default_factory=RegionValidationConfig)
    """How the best weights are told."""


@dataclass(frozen=True, kw_only=True)
class GroundingDataConfig(BaseDataConfig):
    """How phrases with images and boxes become batches."""

    source: TextImageConfig = field(
        default_factory=lambda: TextImageConfig(image=ImageConfig(fit="squash"))
    )
    """How the phrase is cut into tokens, and what becomes of the image."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_unmoved(self.source.image, "source.image")


@dataclass(frozen=True, kw_only=True)
class BoxLossConfig(Config):
    """What a box costs that is not the right one (Carion et al. 2020, eq. 9)."""

    distance: Annotated[float, AtLeast(0)] = 5.0
    """Weight of how far middle and size are off."""
    overlap: Annotated[float, AtLeast(0)] = 2.0
    """Weight of how little both boxes share, by the generalised share of areas."""


@dataclass(frozen=True, kw_only=True)
class GroundingRecipe(BaseRecipe):
    """Two encoders that find in an image what a phrase names."""

    task: Literal["grounding"] = "grounding"
    """What the model is for."""
    data: GroundingDataConfig = field(default_factory=GroundingDataConfig)
    """How phrases with images and boxes become batches."""
    model: GrounderConfig = field(default_factory=GrounderConfig)
    """The model."""
    loss: BoxLossConfig = field(default_factory=BoxLossConfig)
    """What a box costs."""
    validation: RegionValidationConfig = field(default_factory=RegionValidationConfig)
    """How the best weights are told."""


def check_unmoved(image: ImageConfig, name: str) -> None:
    """Raise if something would move what is in an image, but not the regions that it has."""
    rules = {
        "fit": (f"'{image.fit}'", "'squash'"),
        "augmentation.crop": (str(image.augmentation.crop), "0"),
        "augmentation.zoom": (f"{image.augmentation.zoom:g}", "0"),
        "augmentation.flip": (str(image.augmentation.flip).lower(), "false"),
    }
    for setting, (value, needed) in rules.items():
        if value != needed:
            raise ConfigError(
                f"`{name}.{setting}` must be {needed} where regions of an image are asked for, "
                f"or they would not lie where the image does, but is {value}."
            )
