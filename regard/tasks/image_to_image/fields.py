"""Fields of source and target of image-to-image tasks, and fine-tuning from another run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.image.field import ImageConfig, ImageField
from regard.data.media import Array
from regard.data.modality import modality_of
from regard.data.video.next_frame import FirstFrames
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.image import ImageEncoderConfig
from regard.tasks.base import Task, WarmStart
from regard.tasks.image_to_image.recipe import ImageToImageDataConfig, ImageToImageRecipe
from regard.tasks.warm_start import encoder_weights, find_image_encoder, matching_image_field

if TYPE_CHECKING:
    from regard.tasks.image_to_image.task import ImageToImageTask

Source = ImageField | FirstFrames
References = tuple[list[str], list[str]]
Sides = tuple[list[Array], list[Array]]

FIELDS: dict[str, type[Source]] = {"image": ImageField, "video": FirstFrames}
"""Fields of the source by its modality."""


def source_class(config: ImageToImageDataConfig) -> type[Any]:
    """Return the field class of the source."""
    return FIELDS[modality_of(config.source).name]


def target_field(config: ImageToImageDataConfig) -> ImageField:
    """Return the field of the targets, which are not standardised."""
    channels = config.target.channels
    return ImageField(config.target, (0.0,) * channels, (1.0,) * channels)


def read_source_and_target(
    source: Source, target: ImageField, examples: Sequence[Example]
) -> Sides:
    """Read sources and targets: images, or videos without their last frame and these frames.

    Args:
        source: The field of the sources.
        target: The field of the targets.
        examples: Paths of sources and targets.
    """
    sources, targets = ([getattr(e, side) for e in examples] for side in ("source", "target"))
    return READERS[source.modality](source, target, (sources, targets))


def _read_images(source: ImageField, target: ImageField, references: References) -> Sides:
    return source.read_all(references[0]), target.read_all(references[1])


def _read_videos(source: FirstFrames, target: ImageField, references: References) -> Sides:
    sources, targets = references
    frame = target.config.frame
    if sources == targets and frame == source.config.frame:
        # Read each video once.
        videos = source.read_whole(sources, frame)
        return [video[:, :-1] for video in videos], [video[:, -1] for video in videos]
    return source.read_all(sources), source.read_last(targets, frame)


READERS: dict[str, Callable[..., Sides]] = {
    "image": _read_images,
    "video": _read_videos,
}
"""Functions that read both sides, by the modality of the source."""


def check_same_shapes(init_from: "ImageToImageTask", config: ImageToImageDataConfig) -> None:
    """Raise a `ConfigError` if sources or targets differ in shape from those of a run."""
    before = init_from.recipe.data
    for name in ("source", "target"):
        for setting in ("kind", "size", "channels", "num_frames"):
            expected = getattr(getattr(before, name), setting, None)
            value = getattr(getattr(config, name), setting, None)
            if value != expected:
                raise ConfigError(
                    f"`data.{name}.{setting}` must be as in `init_from` ({expected}), but is "
                    f"{value}."
                )


def start_from_image_encoder(recipe: ImageToImageRecipe, init_from: Task[Any]) -> WarmStart:
    """Start from the image encoder of a run of another task."""
    config = recipe.data.source
    if not isinstance(config, ImageConfig):
        raise ConfigError(
            "`init_from` must be a run for the task 'image_to_image' if the source is a video, "
            f"but is one for the task '{init_from.recipe.task}'."
        )
    settings, encoder = find_image_encoder(init_from)
    before, prefix = recipe.model.encoder, "encoder"
    after: ImageEncoderConfig | BottleneckEncoderConfig = settings
    if isinstance(before, BottleneckEncoderConfig):
        after, prefix = replace(before, encoder=settings), "encoder.encoder"
    fields = {"source": matching_image_field(init_from, config)}
    recipe = replace(recipe, model=replace(recipe.model, encoder=after))
    return WarmStart(recipe, fields, encoder_weights(encoder, prefix))
