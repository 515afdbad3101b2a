"""Table of image encoders."""

from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder

ImageEncoderConfig = VitEncoderConfig | ResnetEncoderConfig | HybridEncoderConfig
"""Image encoders, with one state per cell of a grid."""

IMAGE_ENCODERS: dict[type, type[Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
    HybridEncoderConfig: HybridEncoder,
}
"""Image encoders by class of hyperparameters."""
