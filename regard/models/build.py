"""Hyperparameters of an encoder–decoder, and a function that builds the model from them."""

from dataclasses import dataclass, field
from typing import Literal

from regard.core.config import Config
from regard.core.errors import ConfigError
from regard.core.specs import InputSpec, TextSpec
from regard.models.decoders import DECODERS, DecoderConfig
from regard.models.decoders.bahdanau import BahdanauDecoderConfig
from regard.models.decoders.prefix_lm import PrefixDecoderConfig
from regard.models.decoders.xu2015 import XuDecoderConfig
from regard.models.encoders import EncoderConfig, build_encoder, check_unpooled
from regard.models.encoders.bottleneck import BottleneckEncoder, BottleneckEncoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import TokenEncoderConfig
from regard.models.heads.copying import (
    CopyingConfig,
    NoCopyingConfig,
    PointerConfig,
    PointerDecoder,
)
from regard.models.heads.ctc import CtcConfig, CtcHead, CtcHeadConfig, NoCtcConfig
from regard.models.init import InitConfig, initialize
from regard.models.interfaces import Decoder, Encoder, TokenEncoder
from regard.models.seq2seq import EncoderDecoder


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Config):
    """Hyperparameters of an encoder–decoder."""

    encoder: EncoderConfig = field(default_factory=RnnEncoderConfig)
    """Encoder of the source."""
    decoder: DecoderConfig = field(default_factory=BahdanauDecoderConfig)
    """Decoder of the target."""
    copying: CopyingConfig = field(default_factory=NoCopyingConfig)
    """Copy mechanism; needs a joint vocabulary."""
    ctc: CtcConfig = field(default_factory=NoCtcConfig)
    """CTC head on the encoder, for speech."""
    ties: Literal["none", "output", "all"] = "none"
    """Weight tying: target embedding and output layer, or these and the source embedding."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.predicts_source and not isinstance(self.encoder, EmbeddingEncoderConfig):
            raise ConfigError(
                "`decoder.source_weight` above 0 needs the encoder 'embedding', since any other "
                f"encoder attends to later tokens, but `encoder.kind` is '{self.encoder.kind}'."
            )
        if self.has_copying and isinstance(self.decoder, XuDecoderConfig):
            raise ConfigError(
                f"`copying.kind` '{self.copying.kind}' needs a decoder without additional losses, "
                f"but `decoder.kind` is '{self.decoder.kind}'. Set `decoder.kind` to 'bahdanau', "
                "or `copying.kind` to 'none'."
            )
        if self.has_copying and isinstance(self.decoder, PrefixDecoderConfig):
            raise ConfigError(
                f"`copying.kind` '{self.copying.kind}' needs a decoder with cross-attention, but "
                "`decoder.kind` is 'prefix', which is decoder-only. Set `decoder.kind` to "
                "'transformer', or `copying.kind` to 'none'."
            )
        if self.has_copying and not isinstance(self.encoder, TokenEncoderConfig):
            raise ConfigError(
                f"`copying.kind` '{self.copying.kind}' needs an encoder with a state for every "
                f"token, but `encoder.kind` is '{self.encoder.kind}'. Set `copying.kind` to "
                "'none'."
            )
        if self.has_copying:
            check_unpooled(self.encoder, "where tokens are copied")
        has_one_state = (
            isinstance(self.encoder, BottleneckEncoderConfig) and self.encoder.of == "summary"
        )
        if has_one_state and isinstance(self.ctc, CtcHeadConfig):
            raise ConfigError(
                "`ctc.kind` 'head' needs a state for each predicted token, but `encoder.of` is "
                "'summary', which leaves one. Set `ctc.kind` to 'none', or `encoder.of` to "
                "'states'."
            )

    @property
    def predicts_source(self) -> bool:
        """Whether the loss includes the prediction of the source."""
        return isinstance(self.decoder, PrefixDecoderConfig) and self.decoder.source_weight > 0

    @property
    def has_copying(self) -> bool:
        """Whether source tokens can be copied."""
        return not isinstance(self.copying, NoCopyingConfig)

    @property
    def ctc_weight(self) -> float:
        """Weight of the CTC loss; 0 = no CTC head."""
        return self.ctc.weight if isinstance(self.ctc, CtcHeadConfig) else 0.0

    @property
    def has_coverage(self) -> bool:
        """Whether there is a coverage loss, which penalises repeated attention to a position."""
        return isinstance(self.copying, PointerConfig) and self.copying.coverage > 0


def build_model(
    config: ModelConfig, *, source: InputSpec, target_vocab_size: int
) -> EncoderDecoder:
    """Build an encoder–decoder with newly initialised weights."""
    encoder = build_encoder(config.encoder, source)
    decoder = DECODERS[type(config.decoder)](
        config.decoder, target_vocab_size, memory_dim=encoder.memory_dim
    )
    if isinstance(config.copying, PointerConfig):
        _check_joint(source, target_vocab_size)
        decoder = PointerDecoder(decoder, config.copying, memory_dim=encoder.memory_dim)
    has_ctc = isinstance(config.ctc, CtcHeadConfig)
    ctc = CtcHead(encoder.memory_dim, target_vocab_size) if has_ctc else None
    model = EncoderDecoder(encoder, decoder, ctc)
    initialize(model, config.init)
    if config.ties != "none":
        _tie_output(decoder)
    if config.ties == "all":
        _tie_source(encoder, decoder)
    return model


def _check_joint(source: InputSpec, target_vocab_size: int) -> None:
    assert isinstance(source, TextSpec)  # copying needs a text encoder
    if source.vocab_size != target_vocab_size:
        raise ConfigError(
            "`copying` needs one joint vocabulary, but source and target have "
            f"{source.vocab_size:,} and {target_vocab_size:,} tokens. Set `data.is_joint` to true."
        )


def _tie_output(decoder: Decoder) -> None:
    output, embedding = decoder.output.weight, decoder.embedding.weight
    if output.shape != embedding.shape:
        raise ConfigError(
            "`ties` needs a decoder whose last layer is as wide as its embeddings "
            f"({embedding.shape[1]}), but it is {output.shape[1]} wide. "
            "Set `decoder.embedding_dim` equal to `decoder.dim`, or `ties` to 'none'."
        )
    decoder.output.weight = embedding


def _tie_source(encoder: Encoder, decoder: Decoder) -> None:
    if isinstance(encoder, BottleneckEncoder):
        encoder = encoder.encoder
    if not isinstance(encoder, TokenEncoder):
        raise ConfigError(
            "`ties` 'all' needs an encoder of text, but images and audio have no embeddings to "
            "share. Set `ties` to 'output'."
        )
    source, target = encoder.embedding.weight, decoder.embedding.weight
    if source.shape != target.shape:
        raise ConfigError(
            "`ties` 'all' needs one joint vocabulary and one embedding width, but the embeddings "
            f"are {tuple(source.shape)} and {tuple(target.shape)}. "
            "Set `data.is_joint` to true and both `embedding_dim` equal (a transformer's is its "
            "`dim`), or `ties` to 'output'."
        )
    encoder.embedding.weight = target
