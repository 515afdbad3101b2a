"""Encoders: values → Memory."""

from collections.abc import Callable
from typing import Any, TypeAlias

from regard.core.errors import ConfigError
from regard.core.tables import one_of
from regard.models.encoders.albert import AlbertEncoder, AlbertEncoderConfig
from regard.models.encoders.bert import BertEncoder, BertEncoderConfig
from regard.models.encoders.convolution import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.tokens import TokensEncoder, TokensEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder, TokenEncoder

SourceSize: TypeAlias = int | tuple[int, int, int]
"""The number of tokens of a text's vocabulary, or channels, rows and columns of an image."""

TokenEncoderConfig = (
    RnnEncoderConfig
    | ConvolutionEncoderConfig
    | TransformerEncoderConfig
    | BertEncoderConfig
    | AlbertEncoderConfig
    | TokensEncoderConfig
)
"""Encoders with a state for every token."""
ImageEncoderConfig = VitEncoderConfig | ResnetEncoderConfig
"""Encoders of images, with a state for every cell of a grid."""
EncoderConfig = TokenEncoderConfig | SentencesEncoderConfig | ImageEncoderConfig
TEXT_ENCODERS: dict[type[Any], Callable[..., TokenEncoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
    BertEncoderConfig: BertEncoder,
    AlbertEncoderConfig: AlbertEncoder,
    TokensEncoderConfig: TokensEncoder,
    SentencesEncoderConfig: SentencesEncoder,
}
IMAGE_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
}
ENCODERS: dict[type[Any], Callable[..., Encoder]] = {**TEXT_ENCODERS, **IMAGE_ENCODERS}


def build_encoder(config: EncoderConfig, source_size: SourceSize) -> Encoder:
    """Build the encoder that the settings describe, for sources of this size."""
    is_image = isinstance(source_size, tuple)
    fitting = IMAGE_ENCODERS if is_image else TEXT_ENCODERS
    if type(config) not in fitting:
        reads, given = ("text", "an image") if is_image else ("images", "text")
        raise ConfigError(
            f"`encoder.kind` '{config.kind}' reads {reads}, but the source is {given}. "
            f"Set it to {one_of(settings.kind for settings in fitting)}."
        )
    return ENCODERS[type(config)](config, source_size)


def max_tokens(config: object) -> int:
    """Return how many tokens an encoder or a decoder can read; 0 = any number.

    Only learned positions come to an end.
    """
    is_learned = getattr(config, "positions", "") == "learned"
    return int(getattr(config, "max_length", 0)) if is_learned else 0


def check_unpooled(config: EncoderConfig, reason: str) -> None:
    """Raise a `ConfigError` if neighbouring tokens share one state, which is asked for alone."""
    if isinstance(config, TransformerEncoderConfig) and config.pooling > 1:
        raise ConfigError(f"`encoder.pooling` must be 1 {reason}, but is {config.pooling}.")


__all__ = [
    "ENCODERS",
    "IMAGE_ENCODERS",
    "TEXT_ENCODERS",
    "AlbertEncoder",
    "AlbertEncoderConfig",
    "BertEncoder",
    "BertEncoderConfig",
    "ConvolutionEncoder",
    "ConvolutionEncoderConfig",
    "EncoderConfig",
    "ImageEncoderConfig",
    "ResnetEncoder",
    "ResnetEncoderConfig",
    "RnnEncoder",
    "RnnEncoderConfig",
    "SentencesEncoder",
    "SentencesEncoderConfig",
    "SourceSize",
    "TokenEncoderConfig",
    "TokensEncoder",
    "TokensEncoderConfig",
    "TransformerEncoder",
    "TransformerEncoderConfig",
    "VitEncoder",
    "VitEncoderConfig",
    "build_encoder",
    "check_unpooled",
    "max_tokens",
]
