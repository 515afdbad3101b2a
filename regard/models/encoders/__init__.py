"""Encoders: values → Memory."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from regard.core.errors import ConfigError
from regard.core.tables import one_of
from regard.models.encoders.bert import (
    AlbertEncoder,
    AlbertEncoderConfig,
    BertEncoder,
    BertEncoderConfig,
)
from regard.models.encoders.bottleneck import BottleneckEncoder, BottleneckEncoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.embedding import EmbeddingEncoder, EmbeddingEncoderConfig
from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS, ImageEncoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoder, PyramidalLstmEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoder, SpeechEncoderConfig
from regard.models.encoders.text_image import TextImageEncoder, TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoder, VideoEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder, TokenEncoder

SourceSize: TypeAlias = (
    int
    | tuple[int]
    | tuple[int, int, int]
    | tuple[int, int, int, int]
    | tuple[int, tuple[int, int, int]]
)
"""The number of tokens of a text's vocabulary; the mel bins of a frame of sound; channels, rows and
columns of an image, and the frames of a video before these; or both of text and image."""

TokenEncoderConfig = (
    RnnEncoderConfig
    | ConvolutionEncoderConfig
    | TransformerEncoderConfig
    | BertEncoderConfig
    | AlbertEncoderConfig
    | EmbeddingEncoderConfig
)
"""Encoders with a state for every token."""
SoundEncoderConfig = PyramidalLstmEncoderConfig | SpeechEncoderConfig
"""Encoders of sound, with a state for every few frames."""
EncoderConfig = (
    TokenEncoderConfig
    | SentencesEncoderConfig
    | ImageEncoderConfig
    | TextImageEncoderConfig
    | VideoEncoderConfig
    | SoundEncoderConfig
    | BottleneckEncoderConfig
)
TEXT_ENCODERS: dict[type[Any], Callable[..., TokenEncoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
    BertEncoderConfig: BertEncoder,
    AlbertEncoderConfig: AlbertEncoder,
    EmbeddingEncoderConfig: EmbeddingEncoder,
    SentencesEncoderConfig: SentencesEncoder,
}
JOINED_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    TextImageEncoderConfig: TextImageEncoder
}
VIDEO_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {VideoEncoderConfig: VideoEncoder}
SOUND_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    PyramidalLstmEncoderConfig: PyramidalLstmEncoder,
    SpeechEncoderConfig: SpeechEncoder,
}


def _build_narrow(config: BottleneckEncoderConfig, source_size: SourceSize) -> Encoder:
    wide = ENCODERS[type(config.encoder)](config.encoder, source_size)
    return BottleneckEncoder(config, wide)


ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    **TEXT_ENCODERS,
    **IMAGE_ENCODERS,
    **JOINED_ENCODERS,
    **VIDEO_ENCODERS,
    **SOUND_ENCODERS,
    BottleneckEncoderConfig: _build_narrow,
}
FITTING: dict[str, Mapping[type[Any], Callable[..., Encoder]]] = {
    "text": TEXT_ENCODERS,
    "images": IMAGE_ENCODERS,
    "text with an image": JOINED_ENCODERS,
    "videos": VIDEO_ENCODERS,
    "sound": SOUND_ENCODERS,
}
"""Encoders by what they read."""
SIZES = {1: "sound", 2: "text with an image", 3: "images", 4: "videos"}
"""What a size of so many parts is one of."""


def build_encoder(config: EncoderConfig, source_size: SourceSize) -> Encoder:
    """Build the encoder that the settings describe, for sources of this size."""
    check_reads(config, "text" if isinstance(source_size, int) else SIZES[len(source_size)])
    return ENCODERS[type(config)](config, source_size)


def check_reads(config: EncoderConfig, given: str, *, place: str = "encoder") -> None:
    """Raise if an encoder is to read what it cannot; `given` is one of `FITTING`."""
    if isinstance(config, BottleneckEncoderConfig):
        return check_reads(config.encoder, given, place=f"{place}.encoder")
    if type(config) not in FITTING[given]:
        reads = next(what for what, fitting in FITTING.items() if type(config) in fitting)
        raise ConfigError(
            f"`{place}.kind` '{config.kind}' reads {reads}, but the source is {given}. "
            f"Set it to {one_of(settings.kind for settings in FITTING[given])}."
        )


def max_tokens(config: object) -> int:
    """Return how many tokens an encoder or a decoder can read; 0 = any number.

    Only learned positions come to an end.
    """
    if isinstance(config, TextImageEncoderConfig):
        return max_tokens(config.text)
    if isinstance(config, BottleneckEncoderConfig):
        return max_tokens(config.encoder)
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
    "SOUND_ENCODERS",
    "TEXT_ENCODERS",
    "VIDEO_ENCODERS",
    "AlbertEncoder",
    "AlbertEncoderConfig",
    "BertEncoder",
    "BertEncoderConfig",
    "BottleneckEncoder",
    "BottleneckEncoderConfig",
    "ConvolutionEncoder",
    "ConvolutionEncoderConfig",
    "EncoderConfig",
    "HybridEncoder",
    "HybridEncoderConfig",
    "TextImageEncoder",
    "TextImageEncoderConfig",
    "ImageEncoderConfig",
    "PyramidalLstmEncoder",
    "PyramidalLstmEncoderConfig",
    "ResnetEncoder",
    "ResnetEncoderConfig",
    "RnnEncoder",
    "RnnEncoderConfig",
    "SentencesEncoder",
    "SentencesEncoderConfig",
    "SoundEncoderConfig",
    "SourceSize",
    "SpeechEncoder",
    "SpeechEncoderConfig",
    "TokenEncoderConfig",
    "EmbeddingEncoder",
    "EmbeddingEncoderConfig",
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
