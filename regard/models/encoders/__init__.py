"""Encoders, and a function that builds an encoder from its hyperparameters."""

from collections.abc import Callable
from typing import Any

from regard.core.errors import ConfigError
from regard.core.specs import InputSpec
from regard.core.tables import one_of
from regard.models.encoders.bottleneck import BottleneckEncoder, BottleneckEncoderConfig
from regard.models.encoders.tables import ENCODERS_BY_SPEC, WideEncoderConfig
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.interfaces import Encoder

EncoderConfig = WideEncoderConfig | BottleneckEncoderConfig


def build_encoder(config: EncoderConfig, spec: InputSpec) -> Encoder:
    """Build an encoder for sources of the specification `spec`.

    Encoders from outside this package are built by their hyperparameters: `config.build(spec)`.
    """
    check_source(config, type(spec))
    if type(config) in ENCODERS:
        return ENCODERS[type(config)](config, spec)
    encoder: Encoder = config.build(spec)  # type: ignore[union-attr]
    return encoder


def _build_bottleneck(config: BottleneckEncoderConfig, spec: InputSpec) -> Encoder:
    return BottleneckEncoder(config, build_encoder(config.encoder, spec))


ENCODERS: dict[type[Any], Callable[..., Encoder]] = {
    **{config: build for table in ENCODERS_BY_SPEC.values() for config, build in table.items()},
    BottleneckEncoderConfig: _build_bottleneck,
}
"""Constructors by class of hyperparameters. Arguments: hyperparameters, input specification."""


def check_source(config: EncoderConfig, given: type[Any], *, path: str = "encoder") -> None:
    """Raise `ConfigError` if an encoder does not accept sources of the specification `given`."""
    if isinstance(config, BottleneckEncoderConfig):
        return check_source(config.encoder, given, path=f"{path}.encoder")
    accepted = next(
        (spec for spec, table in ENCODERS_BY_SPEC.items() if type(config) in table), given
    )
    if accepted is not given:
        kinds = [encoder.kind for encoder in ENCODERS_BY_SPEC.get(given, ())]
        hint = f"Set it to {one_of(kinds)}" if kinds else "Give settings with a method `build`"
        raise ConfigError(
            f"`{path}.kind` '{config.kind}' reads {accepted.plural}, but the source is "
            f"{getattr(given, 'plural', given.__name__)}. {hint}."
        )


def max_tokens(config: object) -> int:
    """Return the maximum number of tokens of an encoder or decoder; 0 = no limit.

    Only learned positions have a limit.
    """
    if isinstance(config, TextImageEncoderConfig):
        return max_tokens(config.text)
    if isinstance(config, BottleneckEncoderConfig):
        return max_tokens(config.encoder)
    is_learned = getattr(config, "positions", "") == "learned"
    return int(getattr(config, "max_length", 0)) if is_learned else 0


def check_unpooled(config: EncoderConfig, reason: str) -> None:
    """Raise `ConfigError` if the encoder pools neighbouring tokens into one state."""
    if isinstance(config, TransformerEncoderConfig) and config.pooling > 1:
        raise ConfigError(f"`encoder.pooling` must be 1 {reason}, but is {config.pooling}.")
