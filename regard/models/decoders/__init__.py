"""Decoders, and the table of decoders by their hyperparameters."""

from collections.abc import Callable

from regard.models.decoders.bahdanau import BahdanauDecoder, BahdanauDecoderConfig
from regard.models.decoders.cho import ChoDecoder, ChoDecoderConfig
from regard.models.decoders.convolutional import ConvolutionDecoder, ConvolutionDecoderConfig
from regard.models.decoders.luong import LuongDecoder, LuongDecoderConfig
from regard.models.decoders.prefix_lm import PrefixDecoder, PrefixDecoderConfig
from regard.models.decoders.recurrent_prefix_lm import (
    RecurrentPrefixDecoder,
    RecurrentPrefixDecoderConfig,
)
from regard.models.decoders.sutskever import SutskeverDecoder, SutskeverDecoderConfig
from regard.models.decoders.transformer import TransformerDecoder, TransformerDecoderConfig
from regard.models.decoders.xu2015 import (
    HardXuDecoder,
    HardXuDecoderConfig,
    SoftXuDecoder,
    SoftXuDecoderConfig,
)
from regard.models.interfaces import Decoder

DecoderConfig = (
    SutskeverDecoderConfig
    | ChoDecoderConfig
    | BahdanauDecoderConfig
    | LuongDecoderConfig
    | SoftXuDecoderConfig
    | HardXuDecoderConfig
    | ConvolutionDecoderConfig
    | TransformerDecoderConfig
    | PrefixDecoderConfig
    | RecurrentPrefixDecoderConfig
)
DECODERS: dict[type, Callable[..., Decoder]] = {
    SutskeverDecoderConfig: SutskeverDecoder,
    ChoDecoderConfig: ChoDecoder,
    BahdanauDecoderConfig: BahdanauDecoder,
    LuongDecoderConfig: LuongDecoder,
    SoftXuDecoderConfig: SoftXuDecoder,
    HardXuDecoderConfig: HardXuDecoder,
    ConvolutionDecoderConfig: ConvolutionDecoder,
    TransformerDecoderConfig: TransformerDecoder,
    PrefixDecoderConfig: PrefixDecoder,
    RecurrentPrefixDecoderConfig: RecurrentPrefixDecoder,
}
