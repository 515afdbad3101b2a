"""Input specifications: the sizes of the source tensors of an encoder."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TextSpec:
    """Token ids, (B, S)."""

    plural: ClassVar[str] = "text"
    vocab_size: int

    def __str__(self) -> str:
        return f"{self.vocab_size:,} source tokens"


@dataclass(frozen=True)
class ImageSpec:
    """Images, (B, C, Y, X)."""

    plural: ClassVar[str] = "images"
    channels: int
    height: int
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of an image."""
        return self.channels, self.height, self.width

    @property
    def frame(self) -> "ImageSpec":
        """The image itself, as the frame of a video of one frame."""
        return self

    def __str__(self) -> str:
        return f"images of {' x '.join(map(str, self.shape))}"


@dataclass(frozen=True)
class AudioSpec:
    """Log-mel frames, (B, F, M)."""

    plural: ClassVar[str] = "audio"
    num_mels: int

    def __str__(self) -> str:
        return f"frames of {self.num_mels} mel bins"


@dataclass(frozen=True)
class VideoSpec:
    """Videos, (B, F, C, Y, X)."""

    plural: ClassVar[str] = "videos"
    num_frames: int
    frame: ImageSpec

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Frames, channels, rows and columns of a video."""
        return self.num_frames, *self.frame.shape

    def __str__(self) -> str:
        return f"videos of {' x '.join(map(str, self.shape))}"


@dataclass(frozen=True)
class TextImageSpec:
    """Token ids with images, a pair of tensors (B, S) and (B, C, Y, X)."""

    plural: ClassVar[str] = "text with an image"
    text: TextSpec
    image: ImageSpec

    def __str__(self) -> str:
        return f"{self.text} with {self.image}"


InputSpec = TextSpec | ImageSpec | AudioSpec | VideoSpec | TextImageSpec
