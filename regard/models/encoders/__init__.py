"""Encoders: values → Memory."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from regard.core.errors import ConfigError
from regard.core.tables import one_of
from regard.models.encoders.albert import AlbertEncoder, AlbertEncoderConfig
from regard.models.encoders.bert import BertEncoder, BertEncoderConfig
from regard.models.encoders.convolution import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.joined import JoinedEncoder, JoinedEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.tokens import TokensEncoder, TokensEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoder, VideoEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder, TokenEncoder

SourceSize: TypeAlias = (
    int | tuple[int, int, int] | tuple[int, tuple[int, int, int]] | tuple[int, int, int, int]
)
"""The number of tokens of a text's vocabulary; channels, rows and columns of an image; both; or the
frames of a video before these."""

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
EncoderConfig = (
    TokenEncoderConfig
    | SentencesEncoderConfig
    | ImageEncoderConfig
    | JoinedEncoderConfig
    | VideoEncoderConfig
)
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
JOINED_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {JoinedEncoderConfig: JoinedEncoder}
VIDEO_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {VideoEncoderConfig: VideoEncoder}
ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    **TEXT_ENCODERS,
    **IMAGE_ENCODERS,
    **JOINED_ENCODERS,
    **VIDEO_ENCODERS,
}
FITTING: dict[str, Mapping[type[Any], Callable[..., Encoder]]] = {
    "text": TEXT_ENCODERS,
    "images": IMAGE_ENCODERS,
    "text with an image": JOINED_ENCODERS,
    "videos": VIDEO_ENCODERS,
}
"""Encoders by what they read."""


def build_encoder(config: EncoderConfig, source_size: SourceSize) -> Encoder:
    """Build the encoder that the settings describe, for sources of this size."""
    if isinstance(source_size, int):
        given = "text"
    else:
        given = {2: "text with an image", 3: "images", 4: "videos"}[len(source_size)]
    check_reads(config, given)
    return ENCODERS[type(config)](config, source_size)


def check_reads(config: EncoderConfig, given: str) -> None:
    """Raise if an encoder is to read what it cannot; `given` is one of `FITTING`."""
    if type(config) not in FITTING[given]:
        reads = next(what for what, fitting in FITTING.items() if type(config) in fitting)
        raise ConfigError(
            f"`encoder.kind` '{config.kind}' reads {reads}, but the source is {given}. "
            f"Set it to {one_of(settings.kind for settings in FITTING[given])}."
        )


def max_tokens(config: object) -> int:
    """Return how many tokens an encoder or a decoder can read; 0 = any number.

    Only learned positions come to an end.
    """
    if isinstance(config, JoinedEncoderConfig):
        return max_tokens(config.text)
    is_learned = getattr(config, "positions", "") == "learned"
    return int(getattr(config, "max_length", 0)) if is_learned else 0


def check_unpooled(config: EncoderConfig, reason: str) -> None:
    """Raise a `ConfigError` if neighbouring tokens share one state, which is asked for alone."""
    if isinstance(config, TransformerEncoderConfig) and config.pooling > 1:
        raise ConfigError(f"`encoder.pooling` must be 1 {reason}, but is {config.pooling}.")


__all__ = [
    "ENCODERS",
    "IMAGE_ENCODERS",
    "JOINED_ENCODERS",
    "TEXT_ENCODERS",
    "VIDEO_ENCODERS",
    "AlbertEncoder",
    "AlbertEncoderConfig",
    "BertEncoder",
    "BertEncoderConfig",
    "ConvolutionEncoder",
    "ConvolutionEncoderConfig",
    "EncoderConfig",
    "JoinedEncoder",
    "JoinedEncoderConfig",
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
    "VideoEncoder",
    "VideoEncoderConfig",
    "VitEncoder",
    "VitEncoderConfig",
    "build_encoder",
    "check_reads",
    "check_unpooled",
    "max_tokens",
]
