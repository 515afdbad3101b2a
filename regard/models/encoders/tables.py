"""Tables of encoders, except the bottleneck encoder, which contains another encoder."""

from collections.abc import Callable, Mapping
from typing import Any

from regard.core.specs import AudioSpec, ImageSpec, TextImageSpec, TextSpec, VideoSpec
from regard.models.encoders.bert import (
    AlbertEncoder,
    AlbertEncoderConfig,
    BertEncoder,
    BertEncoderConfig,
)
from regard.models.encoders.convolutional import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.embedding import EmbeddingEncoder, EmbeddingEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS, ImageEncoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoder, PyramidalLstmEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoder, SpeechEncoderConfig
from regard.models.encoders.text_image import TextImageEncoder, TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoder, VideoEncoderConfig
from regard.models.interfaces import Encoder, TokenEncoder

TokenEncoderConfig = (
    RnnEncoderConfig
    | ConvolutionEncoderConfig
    | TransformerEncoderConfig
    | BertEncoderConfig
    | AlbertEncoderConfig
    | EmbeddingEncoderConfig
)
"""Encoders with one state per token."""
AudioEncoderConfig = PyramidalLstmEncoderConfig | SpeechEncoderConfig
"""Encoders of audio, with one state per several frames."""
WideEncoderConfig = (
    TokenEncoderConfig
    | SentencesEncoderConfig
    | ImageEncoderConfig
    | TextImageEncoderConfig
    | VideoEncoderConfig
    | AudioEncoderConfig
)
"""All encoders but the bottleneck encoder."""

TEXT_ENCODERS: dict[type[Any], Callable[..., TokenEncoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
    BertEncoderConfig: BertEncoder,
    AlbertEncoderConfig: AlbertEncoder,
    EmbeddingEncoderConfig: EmbeddingEncoder,
    SentencesEncoderConfig: SentencesEncoder,
}
AUDIO_ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    PyramidalLstmEncoderConfig: PyramidalLstmEncoder,
    SpeechEncoderConfig: SpeechEncoder,
}


ENCODERS_BY_SPEC: dict[type[Any], Mapping[type[Any], Callable[..., Encoder]]] = {
    TextSpec: TEXT_ENCODERS,
    ImageSpec: IMAGE_ENCODERS,
    TextImageSpec: {TextImageEncoderConfig: TextImageEncoder},
    VideoSpec: {VideoEncoderConfig: VideoEncoder},
    AudioSpec: AUDIO_ENCODERS,
}
"""Encoders by the specification of their inputs."""
