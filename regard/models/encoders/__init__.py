"""Encoders: values → Memory."""

from collections.abc import Callable

from regard.models.encoders.convolution import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.interfaces import Encoder

EncoderConfig = RnnEncoderConfig | ConvolutionEncoderConfig | TransformerEncoderConfig
ENCODERS: dict[type, Callable[..., Encoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
}

__all__ = [
    "ENCODERS",
    "ConvolutionEncoder",
    "ConvolutionEncoderConfig",
    "EncoderConfig",
    "RnnEncoder",
    "RnnEncoderConfig",
    "TransformerEncoder",
    "TransformerEncoderConfig",
]
