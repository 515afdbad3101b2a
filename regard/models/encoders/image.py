"""Table of the encoders of images, also for encoders that contain one."""

from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder

ImageEncoderConfig = VitEncoderConfig | ResnetEncoderConfig | HybridEncoderConfig
"""Encoders of images, with a state for every cell of a grid."""

IMAGE_ENCODERS: dict[type, type[Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
    HybridEncoderConfig: HybridEncoder,
}
"""Each is built from its settings and an `ImageSpec`."""
