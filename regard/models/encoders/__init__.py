"""Encoders: values → Memory."""

from collections.abc import Callable
from typing import Any

from regard.core.errors import ConfigError
from regard.core.specs import InputSpec
from regard.core.tables import one_of
from regard.models.encoders.bottleneck import BottleneckEncoder, BottleneckEncoderConfig
from regard.models.encoders.tables import FITTING, WideEncoderConfig
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.interfaces import Encoder

EncoderConfig = WideEncoderConfig | BottleneckEncoderConfig


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
    **{config: build for fitting in FITTING.values() for config, build in fitting.items()},
    BottleneckEncoderConfig: _build_bottleneck,
}
"""Encoders by their settings; each is built from its settings and an input specification."""


def check_reads(config: EncoderConfig, given: type[Any], *, place: str = "encoder") -> None:
    """Raise if an encoder does not accept tensors of the specification `given`."""
    if isinstance(config, BottleneckEncoderConfig):
        return check_reads(config.encoder, given, place=f"{place}.encoder")
    accepted = next((spec for spec, fitting in FITTING.items() if type(config) in fitting), given)
    if accepted is not given:
        kinds = [settings.kind for settings in FITTING.get(given, ())]
        what = f"Set it to {one_of(kinds)}" if kinds else "Give settings with a method `build`"
        raise ConfigError(
            f"`{place}.kind` '{config.kind}' reads {accepted.plural}, but the source is "
            f"{getattr(given, 'plural', given.__name__)}. {what}."
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
