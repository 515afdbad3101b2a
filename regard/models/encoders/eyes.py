"""Encoders that see an image, for encoders that have eyes among other things."""

from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder

EyeConfig = VitEncoderConfig | ResnetEncoderConfig | HybridEncoderConfig

EYES: dict[type, type[Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
    HybridEncoderConfig: HybridEncoder,
}
"""Each is built with its settings and the channels, rows and columns of the images."""
