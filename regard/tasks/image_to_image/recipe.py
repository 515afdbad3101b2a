"""The recipe of models that answer with an image."""

from dataclasses import dataclass, field
from typing import Literal

from regard.core.config import Config
from regard.core.errors import ConfigError
from regard.data.image.augment import AugmentationConfig
from regard.data.image.field import ImageConfig
from regard.data.image.noise import PixelNoiseConfig
from regard.data.image.variants import describe_conversion
from regard.data.video.field import VideoConfig
from regard.models.image_to_image import ImageToImageConfig
from regard.tasks.recipe import BaseDataConfig, BaseRecipe, check_kinds


@dataclass(frozen=True, kw_only=True)
class ImageToImageDataConfig(BaseDataConfig):
    """How images become pairs of what is read and what is to be drawn."""

    source: ImageConfig | VideoConfig = field(default_factory=ImageConfig)
    """What becomes of the image that is read; or of the video, one frame more of which is to be
    drawn."""
    target: ImageConfig = field(default_factory=ImageConfig)
    """What becomes of the same image where it is to be drawn: larger than the source for
    super-resolution, in colour where the source is grey."""
    noise: PixelNoiseConfig = field(default_factory=PixelNoiseConfig)
    """What spoils the source, but not the target; nothing, where answers are asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source.fit != self.target.fit:
            raise ConfigError(
                "`target.fit` must be as `source.fit`, or they would not lie on each other, but "
                f"they are '{self.target.fit}' and '{self.source.fit}'."
            )
        if isinstance(self.source, ImageConfig):
            _check_moves(self.source, self.target)
        if self.target.augmentation != AugmentationConfig():
            raise ConfigError(
                "`target.augmentation` must be off: what is to be drawn only moves with the source."
            )
        if self.noise.square >= self.source.size:
            raise ConfigError(
                f"`noise.square` must be smaller than `source.size` ({self.source.size}), but is "
                f"{self.noise.square}."
            )

    @property
    def change(self) -> str:
        """What brings the source to the form of the target, and what spoils it; empty = nothing."""
        change = describe_conversion(self.source.spec, self.target.spec)
        return "+".join(filter(None, [change, "noise" if self.noise.is_any else ""]))


@dataclass(frozen=True, kw_only=True)
class ImageToImageValidationConfig(Config):
    """What decides which weights are best where images are drawn."""

    metric: Literal["psnr", "loss"] = "psnr"
    """The peak signal-to-noise ratio, or the loss with all its terms."""


@dataclass(frozen=True, kw_only=True)
class ImageToImageRecipe(BaseRecipe):
    """An encoder and a generator that answer an image or a video with an image."""

    task: Literal["image_to_image"] = "image_to_image"
    """What the model is for."""
    data: ImageToImageDataConfig = field(default_factory=ImageToImageDataConfig)
    """How images become pairs of what is read and what is to be drawn."""
    model: ImageToImageConfig = field(default_factory=ImageToImageConfig)
    """The model; a run that begins from another takes that one's, or its encoder."""
    validation: ImageToImageValidationConfig = field(default_factory=ImageToImageValidationConfig)
    """How the best weights are told."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self.data.source, self.model.encoder)
        if self.model.is_residual and not self.data.change:
            raise ConfigError(
                "`model.is_residual` must be false where the source is the target, which would "
                "already be the answer. Set it to false, or change source, target or noise."
            )


def _check_moves(source: ImageConfig, target: ImageConfig) -> None:
    """Check that the target can be moved with its source."""
    if source.augmentation.zoom:
        raise ConfigError(
            "`source.augmentation.zoom` must be 0, as it would blur the source in another way than "
            f"the target, but is {source.augmentation.zoom:g}."
        )
    if source.augmentation.crop and source.size != target.size:
        raise ConfigError(
            "`source.augmentation.crop` must be 0 where source and target differ in size "
            f"({source.size} and {target.size}), but is {source.augmentation.crop}."
        )
