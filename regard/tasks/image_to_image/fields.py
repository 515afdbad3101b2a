"""What reads the two sides of an image task, and what a run that begins from another takes over."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.image.field import ImageConfig, ImageField
from regard.data.media import Array
from regard.data.modality import modality_of
from regard.data.video.next_frame import FirstFrames
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.interfaces import Encoder
from regard.tasks.base import Task
from regard.tasks.image_to_image.recipe import ImageToImageDataConfig, ImageToImageRecipe
from regard.tasks.warm_start import find_image_encoder, matching_image_field

if TYPE_CHECKING:
    from regard.tasks.image_to_image.task import ImageToImageTask

Source = ImageField | FirstFrames


FIELDS: dict[str, type[Source]] = {"image": ImageField, "video": FirstFrames}
"""Fields of the source by its modality."""


def fit_source(config: ImageToImageDataConfig, references: Sequence[str]) -> Source:
    """Fit the field of the source to training images or videos: their mean and deviation."""
    source: Source = _field(config).fit(config.source, references)
    return source


def load_source(config: ImageToImageDataConfig, folder: Path) -> Source:
    """Load the field of the source from a run folder."""
    source: Source = _field(config).load(folder)
    return source


def _field(config: ImageToImageDataConfig) -> type[Any]:
    return FIELDS[modality_of(config.source).name]


def target_field(config: ImageToImageDataConfig) -> ImageField:
    """Return what reads targets, which are drawn as they are: nothing is learned of them."""
    channels = config.target.channels
    return ImageField(config.target, (0.0,) * channels, (1.0,) * channels)


def read_sides(
    source: Source, target: ImageField, examples: Sequence[Example]
) -> tuple[list[Array], list[Array]]:
    """Read sources, images or videos without their last frame, and targets, images or these frames.

    Args:
        source: What reads sources.
        target: What reads targets.
        examples: References of both.
    """
    sources, targets = ([getattr(e, side) for e in examples] for side in ("source", "target"))
    return READERS[source.modality](source, target, (sources, targets))


def _read_images(
    source: ImageField, target: ImageField, references: tuple[list[str], list[str]]
) -> tuple[list[Array], list[Array]]:
    return source.read_all(references[0]), target.read_all(references[1])


def _read_videos(
    source: FirstFrames, target: ImageField, references: tuple[list[str], list[str]]
) -> tuple[list[Array], list[Array]]:
    sources, targets = references
    frame = target.config.frame
    if sources == targets and frame == source.config.frame:
        # Nothing is read twice.
        videos = source.read_whole(sources, frame)
        return [video[:, :-1] for video in videos], [video[:, -1] for video in videos]
    return source.read_all(sources), source.read_last(targets, frame)


READERS: dict[str, Callable[..., tuple[list[Array], list[Array]]]] = {
    "image": _read_images,
    "video": _read_videos,
}
"""How both sides are read, by the modality of the source."""


def check_same_form(init_from: "ImageToImageTask", config: ImageToImageDataConfig) -> None:
    """Raise where a run draws for other images than those to learn from."""
    before = init_from.recipe.data
    for name in ("source", "target"):
        for setting in ("kind", "size", "channels", "num_frames"):
            known = getattr(getattr(before, name), setting, None)
            asked = getattr(getattr(config, name), setting, None)
            if known != asked:
                raise ConfigError(
                    f"`data.{name}.{setting}` must be as in `init_from` ({known}), but is {asked}."
                )


def start_from_image_encoder(
    recipe: ImageToImageRecipe, init_from: Task[Any]
) -> tuple[ImageToImageRecipe, ImageField, Encoder]:
    """Take over the image encoder of a run of another task.

    Returns:
        The recipe with its settings, the field of the sources, and the encoder with its weights.
    """
    if not isinstance(recipe.data.source, ImageConfig):
        raise ConfigError(
            "`init_from` must be a run for the task 'image_to_image' where the source is a video, "
            f"but is one for the task '{init_from.recipe.task}'."
        )
    settings, encoder = find_image_encoder(init_from)
    source = matching_image_field(init_from, recipe.data.source)
    before = recipe.model.encoder
    after: ImageEncoderConfig | BottleneckEncoderConfig = settings
    if isinstance(before, BottleneckEncoderConfig):
        after = replace(before, encoder=settings)
    return replace(recipe, model=replace(recipe.model, encoder=after)), source, encoder
