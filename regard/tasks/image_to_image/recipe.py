"""Recipe of image-to-image models."""

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
from regard.tasks.recipe import BaseDataConfig, BaseRecipe, check_encoder_reads


@dataclass(frozen=True, kw_only=True)
class ImageToImageDataConfig(BaseDataConfig):
    """Data settings: an image or a video is the source, and in another form the target."""

    source: ImageConfig | VideoConfig = field(default_factory=ImageConfig)
    """The source image; or the source video, whose next frame is the target."""
    target: ImageConfig = field(default_factory=ImageConfig)
    """The target, the same image in another form: larger than the source for super-resolution, in
    colour where the source is greyscale."""
    noise: PixelNoiseConfig = field(default_factory=PixelNoiseConfig)
    """Noise on the source, in training and evaluation; `predict` adds none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source.fit != self.target.fit:
            raise ConfigError(
                "`target.fit` must be as `source.fit`, or their pixels would not correspond, but "
                f"they are '{self.target.fit}' and '{self.source.fit}'."
            )
        if isinstance(self.source, ImageConfig):
            _check_moves(self.source, self.target)
        if self.target.augmentation != AugmentationConfig():
            raise ConfigError(
                "`target.augmentation` must be off, since targets are augmented with their source."
            )
        if self.noise.square >= self.source.size:
            raise ConfigError(
                f"`noise.square` must be smaller than `source.size` ({self.source.size}), but is "
                f"{self.noise.square}."
            )

    @property
    def change(self) -> str:
        """Name of the difference between source and target, noise included; empty = none."""
        change = describe_conversion(self.source.spec, self.target.spec)
        return "+".join(filter(None, [change, "noise" if self.noise.is_any else ""]))


@dataclass(frozen=True, kw_only=True)
class ImageToImageValidationConfig(Config):
    """Validation: the criterion for the best weights."""

    metric: Literal["psnr", "loss"] = "psnr"
    """The peak signal-to-noise ratio, or the loss with all its terms."""


@dataclass(frozen=True, kw_only=True)
class ImageToImageRecipe(BaseRecipe):
    """An encoder and a generator of an image for an image or a video."""

    task: Literal["image_to_image"] = "image_to_image"
    """The task."""
    data: ImageToImageDataConfig = field(default_factory=ImageToImageDataConfig)
    """Data and batching."""
    model: ImageToImageConfig = field(default_factory=ImageToImageConfig)
    """The model; with `init_from`, that of the other run, or with its encoder."""
    validation: ImageToImageValidationConfig = field(default_factory=ImageToImageValidationConfig)
    """Validation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_encoder_reads(self.data.source, self.model.encoder)
        if self.model.is_residual and not self.data.change:
            raise ConfigError(
                "`model.is_residual` must be false if the source equals the target, or the model "
                "would copy it. Set it to false, or change source, target or noise."
            )


def _check_moves(source: ImageConfig, target: ImageConfig) -> None:
    """Raise a `ConfigError` if the target cannot be augmented like its source."""
    if source.augmentation.zoom:
        raise ConfigError(
            "`source.augmentation.zoom` must be 0, since it would blur source and target "
            f"differently, but is {source.augmentation.zoom:g}."
        )
    if source.augmentation.crop and source.size != target.size:
        raise ConfigError(
            "`source.augmentation.crop` must be 0 where source and target differ in size "
            f"({source.size} and {target.size}), but is {source.augmentation.crop}."
        )
