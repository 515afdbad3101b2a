"""Encoders: values → Memory."""

from collections.abc import Callable

from regard.core.errors import ConfigError
from regard.models.encoders.albert import AlbertEncoder, AlbertEncoderConfig
from regard.models.encoders.bert import BertEncoder, BertEncoderConfig
from regard.models.encoders.convolution import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoder, SentencesEncoderConfig
from regard.models.encoders.tokens import TokensEncoder, TokensEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.interfaces import Encoder

TokenEncoderConfig = (
    RnnEncoderConfig
    | ConvolutionEncoderConfig
    | TransformerEncoderConfig
    | BertEncoderConfig
    | AlbertEncoderConfig
    | TokensEncoderConfig
)
"""Encoders with a state for every token."""
EncoderConfig = TokenEncoderConfig | SentencesEncoderConfig
ENCODERS: dict[type, Callable[..., Encoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
    BertEncoderConfig: BertEncoder,
    AlbertEncoderConfig: AlbertEncoder,
    TokensEncoderConfig: TokensEncoder,
    SentencesEncoderConfig: SentencesEncoder,
}


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
    "AlbertEncoder",
    "AlbertEncoderConfig",
    "BertEncoder",
    "BertEncoderConfig",
    "ConvolutionEncoder",
    "ConvolutionEncoderConfig",
    "EncoderConfig",
    "RnnEncoder",
    "RnnEncoderConfig",
    "SentencesEncoder",
    "SentencesEncoderConfig",
    "TokenEncoderConfig",
    "TokensEncoder",
    "TokensEncoderConfig",
    "TransformerEncoder",
    "TransformerEncoderConfig",
    "check_unpooled",
    "max_tokens",
]
