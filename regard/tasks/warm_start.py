"""What a run that begins from another takes over: its encoder and its vocabulary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.image.field import ImageConfig, ImageField
from regard.data.modality import JoinedConfig, JoinedField, SourceField, read_pair
from regard.data.text.field import TextField
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.vocabulary import train_tokenizer
from regard.models.encoders import (
    BottleneckEncoder,
    BottleneckEncoderConfig,
    ImageEncoderConfig,
    TextImageEncoderConfig,
    TokenEncoderConfig,
)
from regard.models.interfaces import Encoder
from regard.tasks.base import Task
from regard.tasks.recipe import ClassificationRecipe

AnyTask = TypeVar("AnyTask", bound=Task[Any])


@dataclass(frozen=True)
class Taken:
    """What a classifier takes over from a run."""

    recipe: ClassificationRecipe
    source: SourceField
    weights: Mapping[str, Tensor]
    """Weights to begin with, by their names; those that are not here begin afresh."""


def as_run_of(task: type[AnyTask], init_from: Task[Any], *, which: str) -> AnyTask:
    """Return a run to go on with all of it, which must be of one task: `which` says it in words."""
    if not isinstance(init_from, task):
        raise ConfigError(
            f"`init_from` must be a run {which}, but is one for the task '{init_from.recipe.task}'."
        )
    return init_from


def take_encoder(
    recipe: ClassificationRecipe, init_from: Task[Any], examples: Sequence[Example]
) -> Taken:
    """Take over a run's encoder; where a text stands beside an image, only what sees the image."""
    source: SourceField
    config, settings = recipe.data.source, recipe.model.encoder
    if isinstance(config, JoinedConfig) and isinstance(settings, TextImageEncoderConfig):
        eyes, encoder = find_image_encoder(init_from)
        settings, place = replace(settings, image=eyes), "encoder.image"
        texts = [read_pair(example.source)[0] for example in examples]
        text = TextField(train_tokenizer(config.text, texts), has_start=True)
        source = JoinedField(text, see_as(init_from, config.image))
    elif isinstance(config, ImageConfig):
        (settings, encoder), place = find_image_encoder(init_from), "encoder"
        source = see_as(init_from, config)
    else:
        (settings, encoder), place = find_encoder(init_from), "encoder"
        source = TextField(find_tokenizer(init_from), has_start=True)
    weights = {f"{place}.{name}": value for name, value in encoder.state_dict().items()}
    return Taken(replace(recipe, model=replace(recipe.model, encoder=settings)), source, weights)


def find_encoder(init_from: Task[Any]) -> tuple[TokenEncoderConfig, Encoder]:
    """Return the settings of a run's encoder and the encoder with its weights."""
    settings, encoder = _widest(init_from)
    if not isinstance(encoder, Encoder) or settings is None:
        raise ConfigError(
            "`init_from` must be a run with an encoder (masked, generation or classification), but "
            f"is one for the task '{init_from.recipe.task}', which has none."
        )
    if isinstance(settings, ImageEncoderConfig):
        raise ConfigError("`init_from` must be a run that reads text, but it reads images.")
    if not isinstance(settings, TokenEncoderConfig):
        raise ConfigError(
            "`init_from` must be a run whose encoder has a state for every token, but that of "
            f"'{settings.kind}' has not."
        )
    return settings, encoder


def find_tokenizer(init_from: Task[Any]) -> Tokenizer:
    """Return the vocabulary of what a run reads."""
    for name in ("source", "field", "text"):
        found = getattr(init_from, name, None)
        if isinstance(found, TextField):
            return found.tokenizer
    found = getattr(init_from, "tokenizer", None)
    if isinstance(found, Tokenizer):
        return found
    raise ConfigError(
        f"`init_from` must be a run that reads text, but its task is '{init_from.recipe.task}'."
    )


def find_image_encoder(init_from: Task[Any]) -> tuple[ImageEncoderConfig, Encoder]:
    """Return the settings of a run's encoder of images and the encoder with its weights."""
    settings, encoder = _widest(init_from)
    if not isinstance(settings, ImageEncoderConfig) or not isinstance(encoder, Encoder):
        raise ConfigError(
            "`init_from` must be a run that reads images, but is one for the task "
            f"'{init_from.recipe.task}' that does not."
        )
    return settings, encoder


def find_image_field(init_from: Task[Any]) -> ImageField:
    """Return what brings images into the form that a run reads."""
    field = getattr(init_from, "source", None)
    assert isinstance(field, ImageField)
    return field


def see_as(init_from: Task[Any], config: ImageConfig) -> ImageField:
    """Return a field of other settings that standardises images as a run's does.

    Convolutions read images of any size; vectors learned for places of patches do not.
    """
    before = find_image_field(init_from)
    names = ["channels"]
    if getattr(_widest(init_from)[0], "positions", "") == "learned":
        names.append("size")
    for name in names:
        asked, known = getattr(config, name), getattr(before.config, name)
        if asked != known:
            raise ConfigError(
                f"`data.source.{name}` must be as in `init_from` ({known}), but is {asked}."
            )
    return ImageField(config, before.mean, before.std)


def _widest(init_from: Task[Any]) -> tuple[Any, Any]:
    """Return the settings of a run's encoder and the encoder, without what makes it narrow.

    An autoencoder's code is as narrow as can be; what it was made of is worth more to others.
    """
    settings = getattr(getattr(init_from.recipe, "model", None), "encoder", None)
    encoder = getattr(init_from.model, "encoder", None)
    if isinstance(settings, BottleneckEncoderConfig) and isinstance(encoder, BottleneckEncoder):
        return settings.encoder, encoder.encoder
    return settings, encoder
