"""Encoders: values → Memory."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from regard.core.errors import ConfigError
from regard.core.specs import (
    AudioSpec,
    ImageSpec,
    InputSpec,
    TextImageSpec,
    TextSpec,
    VideoSpec,
)
from regard.core.tables import one_of
from regard.models.encoders.albert import AlbertEncoder, AlbertEncoderConfig
from regard.models.encoders.bert import BertEncoder, BertEncoderConfig
from regard.models.encoders.bottleneck import BottleneckEncoder, BottleneckEncoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.embedding import TokensEncoder, TokensEncoderConfig
from regard.models.encoders.hybrid import HybridEncoder, HybridEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS, ImageEncoderConfig
from regard.models.encoders.pyramidal_lstm import ListenerEncoder, ListenerEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoder, SpeechEncoderConfig
from regard.models.encoders.text_image import JoinedEncoder, JoinedEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoder, VideoEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder, TokenEncoder

TokenEncoderConfig = (
    RnnEncoderConfig
    | ConvolutionEncoderConfig
    | TransformerEncoderConfig
    | BertEncoderConfig
    | AlbertEncoderConfig
    | TokensEncoderConfig
)
"""Encoders with a state for every token."""
SoundEncoderConfig = ListenerEncoderConfig | SpeechEncoderConfig
"""Encoders of sound, with a state for every few frames."""
EncoderConfig = (
    TokenEncoderConfig
    | SentencesEncoderConfig
    | ImageEncoderConfig
    | JoinedEncoderConfig
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
    TokensEncoderConfig: TokensEncoder,
    SentencesEncoderConfig: SentencesEncoder,
}
JOINED_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {JoinedEncoderConfig: JoinedEncoder}
VIDEO_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {VideoEncoderConfig: VideoEncoder}
SOUND_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    ListenerEncoderConfig: ListenerEncoder,
    SpeechEncoderConfig: SpeechEncoder,
}


FITTING: dict[type[Any], Mapping[type[Any], Callable[..., Encoder]]] = {
    TextSpec: TEXT_ENCODERS,
    ImageSpec: IMAGE_ENCODERS,
    TextImageSpec: JOINED_ENCODERS,
    VideoSpec: VIDEO_ENCODERS,
    AudioSpec: SOUND_ENCODERS,
}
"""Encoders by the specification of their inputs."""
ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    settings: encoder for fitting in FITTING.values() for settings, encoder in fitting.items()
}
"""Encoders by their settings; each is built from its settings and an input specification."""


def build_encoder(config: EncoderConfig, spec: InputSpec) -> Encoder:
    """Build the encoder that the settings describe, for sources of these sizes.

    Settings of an encoder from outside this package build it themselves: `config.build(spec)`.
    """
    check_reads(config, type(spec))
    if isinstance(config, BottleneckEncoderConfig):
        return BottleneckEncoder(config, build_encoder(config.encoder, spec))
    return _find_builder(config)(spec)


def _find_builder(config: Any) -> Callable[[Any], Encoder]:
    if type(config) in ENCODERS:
        return partial(ENCODERS[type(config)], config)
    builder: Callable[[Any], Encoder] = config.build
    return builder


def check_reads(config: EncoderConfig, given: type[Any], *, place: str = "encoder") -> None:
    """Raise if an encoder does not accept tensors of the specification `given`."""
    if isinstance(config, BottleneckEncoderConfig):
        return check_reads(config.encoder, given, place=f"{place}.encoder")
    accepted = next((spec for spec, fitting in FITTING.items() if type(config) in fitting), given)
    if accepted is not given:
        raise ConfigError(
            f"`{place}.kind` '{config.kind}' reads {accepted.plural}, but the source is "
            f"{given.plural}. Set it to {one_of(settings.kind for settings in FITTING[given])}."
        )


def max_tokens(config: object) -> int:
    """Return how many tokens an encoder or a decoder can read; 0 = any number.

    Only learned positions come to an end.
    """
    if isinstance(config, JoinedEncoderConfig):
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
    "JoinedEncoder",
    "JoinedEncoderConfig",
    "ImageEncoderConfig",
    "ListenerEncoder",
    "ListenerEncoderConfig",
    "ResnetEncoder",
    "ResnetEncoderConfig",
    "RnnEncoder",
    "RnnEncoderConfig",
    "SentencesEncoder",
    "SentencesEncoderConfig",
    "SoundEncoderConfig",
    "SpeechEncoder",
    "SpeechEncoderConfig",
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
