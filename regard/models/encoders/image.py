"""The encoders of images, for the table of encoders and for those of video and text with image."""

from collections.abc import Callable
from typing import Any

from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder

ImageEncoderConfig = VitEncoderConfig | ResnetEncoderConfig | HybridEncoderConfig
"""Encoders of images, with a state for every cell of a grid."""

IMAGE_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
    HybridEncoderConfig: HybridEncoder,
}
"""Each is built with its settings and the channels, rows and columns of the images."""
