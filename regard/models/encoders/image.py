"""Table of image encoders."""

from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.mlp import MlpEncoder, MlpEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder

ImageEncoderConfig = VitEncoderConfig | ResnetEncoderConfig | HybridEncoderConfig | MlpEncoderConfig
"""Image encoders, with one state per cell of a grid; the grid of an MLP has one cell."""

IMAGE_ENCODERS: dict[type, type[Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
    HybridEncoderConfig: HybridEncoder,
    MlpEncoderConfig: MlpEncoder,
}
"""Image encoders by class of hyperparameters."""
