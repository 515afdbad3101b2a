"""Encoders: values → Memory."""

from collections.abc import Callable, Mapping
from typing import Any

from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec, ImageSpec, InputSpec, TextImageSpec, TextSpec, VideoSpec
from regard.core.tables import one_of
from regard.models.encoders.bert import AlbertEncoder as AlbertEncoder
from regard.models.encoders.bert import AlbertEncoderConfig as AlbertEncoderConfig
from regard.models.encoders.bert import BertEncoder as BertEncoder
from regard.models.encoders.bert import BertEncoderConfig as BertEncoderConfig
from regard.models.encoders.bottleneck import BottleneckEncoder as BottleneckEncoder
from regard.models.encoders.bottleneck import BottleneckEncoderConfig as BottleneckEncoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoder as ConvolutionEncoder
from regard.models.encoders.convolutional import (
    ConvolutionEncoderConfig as ConvolutionEncoderConfig,
)
from regard.models.encoders.embedding import EmbeddingEncoder as EmbeddingEncoder
from regard.models.encoders.embedding import EmbeddingEncoderConfig as EmbeddingEncoderConfig
from regard.models.encoders.hybrid import HybridEncoder as HybridEncoder
from regard.models.encoders.hybrid import HybridEncoderConfig as HybridEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS as IMAGE_ENCODERS
from regard.models.encoders.image import ImageEncoderConfig as ImageEncoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoder as PyramidalLstmEncoder
from regard.models.encoders.pyramidal_lstm import (
    PyramidalLstmEncoderConfig as PyramidalLstmEncoderConfig,
)
from regard.models.encoders.resnet import ResnetEncoder as ResnetEncoder
from regard.models.encoders.resnet import ResnetEncoderConfig as ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder as RnnEncoder
from regard.models.encoders.rnn import RnnEncoderConfig as RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder as SentencesEncoder
from regard.models.encoders.sentences import SentencesEncoderConfig as SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoder as SpeechEncoder
from regard.models.encoders.speech_transformer import SpeechEncoderConfig as SpeechEncoderConfig
from regard.models.encoders.text_image import TextImageEncoder as TextImageEncoder
from regard.models.encoders.text_image import TextImageEncoderConfig as TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder as TransformerEncoder
from regard.models.encoders.transformer import TransformerEncoderConfig as TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoder as VideoEncoder
from regard.models.encoders.video import VideoEncoderConfig as VideoEncoderConfig
from regard.models.encoders.vit import VitEncoder as VitEncoder
from regard.models.encoders.vit import VitEncoderConfig as VitEncoderConfig
from regard.models.interfaces import Encoder, TokenEncoder

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


FITTING: dict[type[Any], Mapping[type[Any], Callable[..., Encoder]]] = {
    TextSpec: TEXT_ENCODERS,
    ImageSpec: IMAGE_ENCODERS,
    TextImageSpec: JOINED_ENCODERS,
    VideoSpec: VIDEO_ENCODERS,
    AudioSpec: SOUND_ENCODERS,
}
"""Encoders by the specification of their inputs."""


def build_encoder(config: EncoderConfig, spec: InputSpec) -> Encoder:
    """Build the encoder that the settings describe, for sources of these sizes.

    Settings of an encoder from outside this package build it themselves: `config.build(spec)`.
    """
    check_reads(config, type(spec))
    if type(config) in ENCODERS:
        return ENCODERS[type(config)](config, spec)
    encoder: Encoder = config.build(spec)  # type: ignore[union-attr]
    return encoder


def _build_bottleneck(config: BottleneckEncoderConfig, spec: InputSpec) -> Encoder:
    return BottleneckEncoder(config, build_encoder(config.encoder, spec))


ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    **TEXT_ENCODERS,
    **IMAGE_ENCODERS,
    **JOINED_ENCODERS,
    **VIDEO_ENCODERS,
    **SOUND_ENCODERS,
    BottleneckEncoderConfig: _build_bottleneck,
}
"""Encoders by their settings; each is built from its settings and an input specification."""


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
