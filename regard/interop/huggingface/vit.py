"""Layout of vision transformer checkpoints: an image classifier and its preprocessing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.core.files import read_record, write_json
from regard.core.logging import logger
from regard.core.records import shown
from regard.data.image.field import ImageConfig, ImageField
from regard.data.labels import LabelField
from regard.interop.huggingface.layout import Config, Layout, list_unsupported, unsupported_settings
from regard.tasks.base import Task
from regard.tasks.classification.task import ClassificationTask

PREPROCESSOR = "preprocessor_config.json"
BICUBIC = 3
"""Number of the bicubic filter, `resample` of the preprocessor."""
CLASS_TOKEN = "encoder.class_token"
POSITIONS = "encoder.positions.embedding.weight"
# `ViTImageProcessor` resizes both sides to a size, `CLIPImageProcessor` crops the centre.
PROCESSORS = {"squash": "ViTImageProcessor", "crop": "CLIPImageProcessor"}


class Preprocessor(TypedDict, total=False):
    """Options of the preprocessing of images that are used here."""

    resample: int
    do_center_crop: bool
    do_normalize: bool
    image_mean: list[float]
    image_std: list[float]


@dataclass(frozen=True, kw_only=True)
class VitLayout(Layout):
    """Vision transformer with a classifier over its class token."""

    def read_vocabularies(self, folder: Path, config: Config) -> dict[str, Any]:
        """Read the image preprocessing and the labels."""
        return {"source": _read_field(folder, config), "labels": _read_labels(config)}

    def save_vocabularies(self, vocabularies: dict[str, Any], folder: Path) -> None:
        """Write the result of `read_vocabularies` into a run folder."""
        vocabularies["source"].save(folder, "source")
        vocabularies["labels"].save(folder, "labels")

    def to_recipe(self, config: Config, vocabularies: dict[str, Any]) -> dict[str, Any]:
        """Return the recipe of the model as a dictionary."""
        encoder = {
            "kind": "vit",
            **self.encoder_settings(config),
            "patch": _side("patch_size", config),
        }
        image: ImageConfig = vocabularies["source"].config
        source = {"kind": "image", "size": image.size, "channels": image.channels, "fit": image.fit}
        model = {"encoder": encoder, "pooling": "summary", "dropout": 0.0}
        return {"task": self.task, "data": {"source": source}, "model": model}

    def import_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert a checkpoint's weight to the weight `name` of the run."""
        if name == CLASS_TOKEN:
            return tensor.flatten()
        return tensor.flatten(0, -2) if name == POSITIONS else tensor

    def export_weight(self, name: str, tensor: Tensor, config: Config) -> Tensor:
        """Convert the weight `name` of the run to the checkpoint's."""
        is_table = name in (CLASS_TOKEN, POSITIONS)
        return tensor.view(1, -1, config["hidden_size"]) if is_table else tensor

    def unsupported_values(self, task: Task[Any]) -> list[str]:
        """List all settings of a task that this layout does not support."""
        model = task.recipe.model
        any_value = {name: getattr(model.encoder, name) for name in ("patch", "norm_epsilon")}
        head = {"model.pooling": model.pooling, "model.has_hidden": model.has_hidden}
        fit = {"data.source.fit": _field(task).config.fit}
        return [
            *unsupported_settings(model.encoder, any_value, section="model.encoder"),
            *list_unsupported(head, {"model.pooling": ["summary"], "model.has_hidden": [False]}),
            *list_unsupported(fit, {"data.source.fit": list(PROCESSORS)}),
        ]

    def to_config(self, task: Task[Any]) -> Config:
        """Return the `config.json` of a task that this layout supports."""
        assert isinstance(task, ClassificationTask)
        image, labels = _field(task).config, task.labels.names
        return {
            **super().to_config(task),
            "image_size": image.size,
            "num_channels": image.channels,
            "id2label": {str(number): name for number, name in enumerate(labels)},
            "label2id": {name: number for number, name in enumerate(labels)},
        }

    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write the image preprocessing."""
        field = _field(task)
        size = field.config.size
        sides = {"height": size, "width": size}
        crop = {"size": {"shortest_edge": size}, "do_center_crop": True, "crop_size": sides}
        write_json(
            folder / PREPROCESSOR,
            {
                "image_processor_type": PROCESSORS[field.config.fit],
                **(crop if field.config.fit == "crop" else {"size": sides}),
                "do_resize": True,
                "resample": BICUBIC,
                "do_rescale": True,
                "rescale_factor": 1 / 255,
                "do_normalize": True,
                "image_mean": list(field.mean),
                "image_std": list(field.std),
            },
        )

    def max_difference(self, task: Task[Any], reference: Any) -> float:
        """Return the maximum absolute difference of the logits for two images of noise."""
        noise = torch.Generator().manual_seed(0)
        values = torch.randn(2, *_field(task).spec.shape, generator=noise)
        with torch.inference_mode():
            expected = reference(pixel_values=values).logits
            logits = task.model(values, torch.ones(2, 1, dtype=torch.bool))
            return float((logits - expected).abs().max())


def _read_field(folder: Path, config: Config) -> ImageField:
    path = folder / PREPROCESSOR
    given = read_record(path, Preprocessor) if path.is_file() else Preprocessor()
    channels = config["num_channels"]
    resample = given.get("resample", BICUBIC - 1)
    if resample != BICUBIC:
        logger.warning(
            "Images are resized with `resample` %s in the checkpoint and %s here; images of "
            "another size differ slightly.",
            resample,
            BICUBIC,
        )
    image = ImageConfig(
        size=_side("image_size", config),
        channels=channels,
        fit="crop" if given.get("do_center_crop") else "squash",
    )
    if not given.get("do_normalize", True):
        return ImageField(image, (0.0,) * channels, (1.0,) * channels)
    half = [0.5] * channels
    return ImageField(image, given.get("image_mean", half), given.get("image_std", half))


def _read_labels(config: Config) -> LabelField:
    """Return the labels in order; labels of the same name get their index."""
    given = config["id2label"]
    if not all(key.isdecimal() for key in given):
        raise ConfigError(f"`id2label` must have numbers as keys, but has {shown([*given][:3])}.")
    names = [str(given[key]) for key in sorted(given, key=int)]
    return LabelField(
        [
            f"{name} ({number})" if names.count(name) > 1 else name
            for number, name in enumerate(names)
        ]
    )


def _side(name: str, config: Config) -> int:
    """Return the side of a square."""
    given = config[name]
    sides = set(given) if isinstance(given, list | tuple) else {given}
    if len(sides) != 1:
        raise ConfigError(f"`{name}` must be a square's, but is {' x '.join(map(str, given))}.")
    side: int = sides.pop()
    return side


def _field(task: Task[Any]) -> ImageField:
    assert isinstance(task, ClassificationTask)
    assert isinstance(task.source, ImageField)
    return task.source
