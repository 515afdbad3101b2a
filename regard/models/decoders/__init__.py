"""Decoders: Memory → logits, one small class a paper."""

from collections.abc import Callable

from regard.models.decoders.bahdanau import BahdanauDecoder, BahdanauDecoderConfig
from regard.models.decoders.cho import ChoDecoder, ChoDecoderConfig
from regard.models.decoders.luong import LuongDecoder, LuongDecoderConfig
from regard.models.decoders.parts import RecurrentDecoder
from regard.models.decoders.sutskever import SutskeverDecoder, SutskeverDecoderConfig

DecoderConfig = (
    SutskeverDecoderConfig | ChoDecoderConfig | BahdanauDecoderConfig | LuongDecoderConfig
)
DECODERS: dict[type, Callable[..., RecurrentDecoder]] = {
    SutskeverDecoderConfig: SutskeverDecoder,
    ChoDecoderConfig: ChoDecoder,
    BahdanauDecoderConfig: BahdanauDecoder,
    LuongDecoderConfig: LuongDecoder,
}

__all__ = [
    "DECODERS",
    "BahdanauDecoder",
    "BahdanauDecoderConfig",
    "ChoDecoder",
    "ChoDecoderConfig",
    "DecoderConfig",
    "LuongDecoder",
    "LuongDecoderConfig",
    "RecurrentDecoder",
    "SutskeverDecoder",
    "SutskeverDecoderConfig",
]
