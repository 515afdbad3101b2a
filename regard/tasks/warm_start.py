"""Parts of another run to fine-tune: encoder, vocabulary, image field."""

from typing import Any

from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.image.field import ImageConfig, ImageField
from regard.data.text.field import TextField
from regard.data.text.tokenizers import Tokenizer
from regard.models.encoders.bottleneck import BottleneckEncoder, BottleneckEncoderConfig
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.tables import TokenEncoderConfig
from regard.models.interfaces import Encoder
from regard.tasks.base import Task


def encoder_weights(encoder: Encoder, prefix: str = "encoder") -> dict[str, Tensor]:
    """Return the weights of an encoder by their names in a model."""
    return {f"{prefix}.{name}": value for name, value in encoder.state_dict().items()}


def find_encoder(init_from: Task[Any]) -> tuple[TokenEncoderConfig, Encoder]:
    """Return the settings of a run's text encoder and the encoder with its weights."""
    settings, encoder = _without_bottleneck(init_from)
    if not isinstance(encoder, Encoder) or settings is None:
        raise ConfigError(
            "`init_from` must be a run with an encoder (masked, generation or classification), but "
            f"is one for the task '{init_from.recipe.task}', which has no encoder."
        )
    if isinstance(settings, ImageEncoderConfig):
        raise ConfigError("`init_from` must be a run that reads text, but it reads images.")
    if not isinstance(settings, TokenEncoderConfig):
        raise ConfigError(
            "`init_from` must be a run whose encoder has one state per token, but its encoder is "
            f"'{settings.kind}', which has not."
        )
    return settings, encoder


def find_tokenizer(init_from: Task[Any]) -> Tokenizer:
    """Return the source vocabulary of a run."""
    for name in ("source", "text"):
        if isinstance(field := init_from.fields.get(name), TextField):
            return field.tokenizer
    raise ConfigError(
        f"`init_from` must be a run that reads text, but its task is '{init_from.recipe.task}'."
    )


def find_image_encoder(init_from: Task[Any]) -> tuple[ImageEncoderConfig, Encoder]:
    """Return the settings of a run's image encoder and the encoder with its weights."""
    settings, encoder = _without_bottleneck(init_from)
    if not isinstance(settings, ImageEncoderConfig) or not isinstance(encoder, Encoder):
        raise ConfigError(
            "`init_from` must be a run that reads images, but is one for the task "
            f"'{init_from.recipe.task}', which does not."
        )
    return settings, encoder


def matching_image_field(init_from: Task[Any], config: ImageConfig) -> ImageField:
    """Return an image field with given settings and the mean and std of another run.

    The number of channels must be the same; with learned positions of patches, also the size.
    """
    settings, _ = find_image_encoder(init_from)
    before: ImageField = init_from.fields["source"]
    names = ["channels"]
    if getattr(settings, "positions", "") == "learned":
        names.append("size")
    for name in names:
        value, expected = getattr(config, name), getattr(before.config, name)
        if value != expected:
            raise ConfigError(
                f"`data.source.{name}` must be as in `init_from` ({expected}), but is {value}."
            )
    return ImageField(config, before.mean, before.std)


def _without_bottleneck(init_from: Task[Any]) -> tuple[Any, Any]:
    """Return the settings of a run's encoder and the encoder, without a bottleneck.

    The states before the bottleneck of an autoencoder transfer better than its latents.
    """
    settings = getattr(getattr(init_from.recipe, "model", None), "encoder", None)
    encoder = getattr(init_from.model, "encoder", None)
    if isinstance(settings, BottleneckEncoderConfig) and isinstance(encoder, BottleneckEncoder):
        return settings.encoder, encoder.encoder
    return settings, encoder
