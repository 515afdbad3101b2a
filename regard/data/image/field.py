"""Image sources: settings, and a field that decodes, stacks and standardises images."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from torch import Tensor

from regard.core.config import Config, Within
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec
from regard.data.image.augment import AugmentationConfig, augment
from regard.data.image.decoding import image_decoder
from regard.data.image.io import MAX_PIXELS
from regard.data.image.resize import Fit, Frame
from regard.data.media import Decoder
from regard.data.standardize import StandardizedField


@dataclass(frozen=True, kw_only=True)
class ImageConfig(Config):
    """Settings of image sources."""

    kind: Literal["image"] = "image"
    """Images."""
    size: Annotated[int, Within(1, 4096)] = 32
    """Height and width to which images are resized, in pixels."""
    channels: Literal[1, 3] = 3
    """1 for grey, 3 for colour."""
    fit: Fit = "crop"
    """Treatment of images that are not square: cropped, padded with grey, or squashed."""
    max_pixels: Annotated[int, Within(1, 2**30)] = MAX_PIXELS
    """Maximum number of pixels of an image; a larger one is an error before it is decoded."""
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    """Augmentation in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("crop", "cutout"):
            value = getattr(self.augmentation, name)
            if value >= self.size:
                raise ConfigError(
                    f"`augmentation.{name}` must be smaller than `size` ({self.size}), "
                    f"but is {value}."
                )

    @property
    def frame(self) -> Frame:
        """Size, channels and fit of every image."""
        return Frame(self.size, self.channels, self.fit, self.max_pixels)

    @property
    def spec(self) -> ImageSpec:
        """Input specification of encoders."""
        return ImageSpec(self.channels, self.size, self.size)

    @property
    def decoder(self) -> Decoder:
        """Decoder of images to arrays."""
        return image_decoder(self.frame)


class ImageField(StandardizedField[ImageConfig]):
    """Images as one side of an example.

    An item is one image (1, C, Y, X) of 8-bit integers. Its length is 1, since it counts as one
    position of a batch.
    """

    modality = "image"
    settings = ImageConfig
    file = "{}.image.json"
    num_samples = 5_000

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Standardise stacked 8-bit images (B, C, Y, X); in training, augment them first."""
        images = values.float() / 255
        if is_training:
            images = augment(images, self.config.augmentation)
        return self.standardize(images)
