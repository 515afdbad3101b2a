"""Images as a source: settings, and the field that reads, stacks and standardises them."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from regard.core.config import Config, Positive
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec
from regard.data.image.augment import AugmentationConfig, augment
from regard.data.image.decoding import image_decoder
from regard.data.image.io import MAX_PIXELS
from regard.data.image.io import open_image as open_image
from regard.data.image.resize import Fit, Frame
from regard.data.media import Decoder
from regard.data.standardize import StandardizedField


@dataclass(frozen=True, kw_only=True)
class ImageConfig(Config):
    """How images are read."""

    kind: Literal["image"] = "image"
    """Images."""
    size: Positive = 32
    """Rows, and columns, that every image is brought to, in pixels."""
    channels: Literal[1, 3] = 3
    """1 for grey, 3 for colour."""
    fit: Fit = "crop"
    """What becomes of an image that is no square: cut at its longer sides, filled up with grey at
    its shorter ones, or squashed."""
    max_pixels: Positive = MAX_PIXELS
    """Pixels that a file may hold; a larger image is refused before it is decoded."""
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    """What may happen to an image while training."""

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
        """What every image becomes before it is stacked."""
        return Frame(self.size, self.channels, self.fit, self.max_pixels)

    @property
    def spec(self) -> ImageSpec:
        """The sizes of its tensors."""
        return ImageSpec(self.channels, self.size, self.size)

    @property
    def decoder(self) -> Decoder:
        """How images become arrays."""
        return image_decoder(self.frame)


class ImageField(StandardizedField[ImageConfig]):
    """Images as one side of an example.

    An item is one image, (1, C, Y, X) in 8 bits: its length is 1, because it counts as one
    position of a batch.
    """

    modality = "image"
    settings = ImageConfig
    file = "{}.image.json"
    num_samples = 5_000

    def finish(self, values: Tensor, *, is_training: bool) -> Tensor:
        """Standardise stacked images (B, C, Y, X) of 8 bits; in training, augment them before."""
        images = values.float() / 255
        if is_training:
            images = augment(images, self.config.augmentation)
        return self.standardise(images)
