"""What a run that begins from another takes over: its encoder and its vocabulary."""

from typing import Any

from regard.core.errors import ConfigError
from regard.data.fields import TextField
from regard.data.images import ImageConfig, ImageField
from regard.data.tokenizers import Tokenizer
from regard.models.encoders import (
    BottleneckEncoder,
    BottleneckEncoderConfig,
    ImageEncoderConfig,
    TokenEncoderConfig,
)
from regard.models.interfaces import Encoder
from regard.tasks.task import Task


def find_encoder(start: Task[Any]) -> tuple[TokenEncoderConfig, Encoder]:
    """Return the settings of a run's encoder and the encoder with its weights."""
    settings, encoder = _widest(start)
    if not isinstance(encoder, Encoder) or settings is None:
        raise ConfigError(
            "`start` must be a run with an encoder (masked, generation or classification), but is "
            f"one for the task '{start.recipe.task}', which has none."
        )
    if isinstance(settings, ImageEncoderConfig):
        raise ConfigError("`start` must be a run that reads text, but it reads images.")
    if not isinstance(settings, TokenEncoderConfig):
        raise ConfigError(
            "`start` must be a run whose encoder has a state for every token, but that of "
            f"'{settings.kind}' has not."
        )
    return settings, encoder


def find_tokenizer(start: Task[Any]) -> Tokenizer:
    """Return the vocabulary of what a run reads."""
    for name in ("source", "field", "text"):
        found = getattr(start, name, None)
        if isinstance(found, TextField):
            return found.tokenizer
    found = getattr(start, "tokenizer", None)
    if isinstance(found, Tokenizer):
        return found
    raise ConfigError(
        f"`start` must be a run that reads text, but its task is '{start.recipe.task}'."
    )


def find_image_encoder(start: Task[Any]) -> tuple[ImageEncoderConfig, Encoder]:
    """Return the settings of a run's encoder of images and the encoder with its weights."""
    settings, encoder = _widest(start)
    if not isinstance(settings, ImageEncoderConfig) or not isinstance(encoder, Encoder):
        raise ConfigError(
            "`start` must be a run that reads images, but is one for the task "
            f"'{start.recipe.task}' that does not."
        )
    return settings, encoder


def find_image_field(start: Task[Any]) -> ImageField:
    """Return what brings images into the form that a run reads."""
    field = getattr(start, "source", None)
    assert isinstance(field, ImageField)
    return field


def see_as(start: Task[Any], config: ImageConfig) -> ImageField:
    """Return a field of other settings that standardises images as a run's does.

    Convolutions read images of any size; vectors learned for places of patches do not.
    """
    before = find_image_field(start)
    names = ["channels"]
    if getattr(_widest(start)[0], "positions", "") == "learned":
        names.append("size")
    for name in names:
        asked, known = getattr(config, name), getattr(before.config, name)
        if asked != known:
            raise ConfigError(
                f"`data.source.{name}` must be as in `start` ({known}), but is {asked}."
            )
    return ImageField(config, before.mean, before.std)


def _widest(start: Task[Any]) -> tuple[Any, Any]:
    """Return the settings of a run's encoder and the encoder, without what makes it narrow.

    An autoencoder's code is as narrow as can be; what it was made of is worth more to others.
    """
    settings = getattr(getattr(start.recipe, "model", None), "encoder", None)
    encoder = getattr(start.model, "encoder", None)
    if isinstance(settings, BottleneckEncoderConfig) and isinstance(encoder, BottleneckEncoder):
        return settings.encoder, encoder.encoder
    return settings, encoder
