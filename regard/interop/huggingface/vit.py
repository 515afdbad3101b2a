"""The layout of the vision transformer: a classifier of images, and how it wants them to be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.core.files import read_json, write_json
from regard.core.logging import logger
from regard.data.image.field import ImageConfig, ImageField
from regard.data.labels import LabelField
from regard.interop.huggingface.layout import Layout, misfits_of, rename
from regard.models.encoders import VitEncoderConfig
from regard.tasks.base import Task
from regard.tasks.classification.task import LABELS, ClassificationTask

PREPROCESSOR = "preprocessor_config.json"
BICUBIC = 3
"""How their preprocessor calls the way in which we resize."""
CLASS_TOKEN = "encoder.class_token"
POSITIONS = "encoder.positions.embedding.weight"
# One of theirs fits both sides of an image to a size, the other cuts out the middle.
PROCESSORS = {"squash": "ViTImageProcessor", "crop": "CLIPImageProcessor"}


class VitLayout(Layout):
    """The vision transformer (Dosovitskiy et al. 2021)."""

    model_type = "vit"
    architecture = "ViTForImageClassification"
    task = "classification"
    defaults: ClassVar[Mapping[str, Any]] = {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_dropout_prob": 0.0,
        "layer_norm_eps": 1e-12,
        "image_size": 224,
        "patch_size": 16,
        "num_channels": 3,
        "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    }
    required: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu",),
        "qkv_bias": (True,),
        "num_channels": (3, 1),
    }
    # A pooler belongs to models without a decision.
    unused = r"\bpooler\."
    head = "output."
    head_role = "tells labels"
    parts = ("encoder", "pooling", "dropout", "output")

    names: ClassVar[Mapping[str, str]] = {
        CLASS_TOKEN: "embeddings.cls_token",
        POSITIONS: "embeddings.position_embeddings",
        "encoder.patch_map.": "embeddings.patch_embeddings.projection.",
        "encoder.norm.": "layernorm.",
        "encoder.blocks.": "encoder.layer.",
        "self_attention.query_map.": "attention.attention.query.",
        "self_attention.key_map.": "attention.attention.key.",
        "self_attention.value_map.": "attention.attention.value.",
        "self_attention.output_map.": "attention.output.dense.",
        "self_residual.norm.": "layernorm_before.",
        "feed_forward.hidden_map.": "intermediate.dense.",
        "feed_forward.output_map.": "output.dense.",
        "feed_residual.norm.": "layernorm_after.",
    }
    """How parts of our names are spelled there."""

    def read_vocabularies(self, folder: Path, config: dict[str, Any]) -> dict[str, Any]:
        """Read how images are brought into one form, and the labels."""
        return {"source": _read_field(folder, config), LABELS: _read_labels(config)}

    def save_vocabularies(self, vocabularies: dict[str, Any], folder: Path) -> None:
        """Write what `read_vocabularies` returned into a run folder."""
        vocabularies["source"].save(folder, "source")
        vocabularies[LABELS].save(folder / LABELS)

    def to_recipe(self, config: dict[str, Any], vocabularies: dict[str, Any]) -> dict[str, Any]:
        """Return our recipe of the model, as plain values."""
        encoder = {
            "kind": "vit",
            "patch": _side("patch_size", config),
            "dim": config["hidden_size"],
            "num_layers": config["num_hidden_layers"],
            "num_heads": config["num_attention_heads"],
            "feed_forward_dim": config["intermediate_size"],
            "norm_epsilon": float(config["layer_norm_eps"]),
            "dropout": float(config["hidden_dropout_prob"]),
        }
        image: ImageConfig = vocabularies["source"].config
        source = {"kind": "image", "size": image.size, "channels": image.channels, "fit": image.fit}
        model = {"encoder": encoder, "pooling": "summary", "dropout": 0.0}
        return {"task": self.task, "data": {"source": source}, "model": model}

    def spellings(self, name: str, config: dict[str, Any]) -> tuple[str, ...]:
        """Return what our weight may be called there; the first is what we write."""
        if name.startswith("output."):
            return (name.replace("output.", "classifier."),)
        bare = rename(name, self.names)
        return (f"vit.{bare}", bare)

    def to_ours(self, name: str, tensor: Tensor, config: dict[str, Any]) -> Tensor:
        """Turn a weight of theirs into ours, which we call by this name."""
        if name == CLASS_TOKEN:
            return tensor.flatten()
        return tensor.flatten(0, -2) if name == POSITIONS else tensor

    def misfits(self, task: Task[Any]) -> list[str]:
        """List all that keeps a task of ours from being written in this layout."""
        model = task.recipe.model
        if not isinstance(model.encoder, VitEncoderConfig):
            return [f"`model.encoder.kind` must be 'vit', but is '{model.encoder.kind}'"]
        own = {name: getattr(model.encoder, name) for name in ("patch", "norm_epsilon")}
        faults = misfits_of(model.encoder, own, place="model.encoder")
        if model.pooling != "summary":
            faults.append(f"`model.pooling` must be 'summary', but is '{model.pooling}'")
        if model.has_hidden:
            faults.append("`model.has_hidden` must be false, but is true")
        if (fit := _field(task).config.fit) not in PROCESSORS:
            faults.append(f"`data.source.fit` must be 'squash' or 'crop', but is '{fit}'")
        return faults

    def to_config(self, task: Task[Any]) -> dict[str, Any]:
        """Return the `config.json` of a task that fits."""
        encoder, image, labels = task.recipe.model.encoder, _field(task).config, _labels(task)
        return {
            "model_type": self.model_type,
            "architectures": [self.architecture],
            "image_size": image.size,
            "num_channels": image.channels,
            "patch_size": encoder.patch,
            "hidden_size": encoder.dim,
            "num_hidden_layers": encoder.num_layers,
            "num_attention_heads": encoder.num_heads,
            "intermediate_size": encoder.feed_forward_dim,
            "hidden_act": "gelu",
            "hidden_dropout_prob": encoder.dropout,
            "attention_probs_dropout_prob": encoder.dropout,
            "layer_norm_eps": encoder.norm_epsilon,
            "qkv_bias": True,
            "id2label": {str(number): name for number, name in enumerate(labels)},
            "label2id": {name: number for number, name in enumerate(labels)},
        }

    def to_theirs(self, task: Task[Any], config: dict[str, Any]) -> dict[str, Tensor]:
        """Return the weights of a task that fits, under their names."""
        axes = {CLASS_TOKEN: (1, 1, -1), POSITIONS: (1, -1, task.recipe.model.encoder.dim)}
        return {
            self.spellings(name, config)[0]: tensor.view(axes.get(name, tensor.shape))
            for name, tensor in task.model.named_parameters()
        }

    def write_vocabularies(self, task: Task[Any], folder: Path) -> None:
        """Write how images are brought into one form."""
        field = _field(task)
        size = field.config.size
        both = {"height": size, "width": size}
        cut = {"size": {"shortest_edge": size}, "do_center_crop": True, "crop_size": both}
        write_json(
            folder / PREPROCESSOR,
            {
                "image_processor_type": PROCESSORS[field.config.fit],
                **(cut if field.config.fit == "crop" else {"size": both}),
                "do_resize": True,
                "resample": BICUBIC,
                "do_rescale": True,
                "rescale_factor": 1 / 255,
                "do_normalize": True,
                "image_mean": list(field.mean),
                "image_std": list(field.std),
            },
        )

    def difference(self, task: Task[Any], theirs: Any) -> float:
        """Return how far apart the logits are at most, for two images of noise."""
        values = torch.randn(
            2, *_field(task).spec.shape, generator=torch.Generator().manual_seed(0)
        )
        with torch.inference_mode():
            expected = theirs(pixel_values=values).logits
            found = task.model(values, torch.ones(2, 1, dtype=torch.bool))
            return float((found - expected).abs().max())


def _read_field(folder: Path, config: dict[str, Any]) -> ImageField:
    path = folder / PREPROCESSOR
    given = read_json(path) if path.is_file() else {}
    channels = config["num_channels"]
    resample = given.get("resample", BICUBIC - 1)
    if resample != BICUBIC:
        logger.warning(
            "Images are resized with `resample` %s there and %s here: one that is not of this "
            "size already looks a little different.",
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
    mean, std = (given.get(name, [0.5] * channels) for name in ("image_mean", "image_std"))
    return ImageField(image, mean, std)


def _read_labels(config: dict[str, Any]) -> LabelField:
    """Return the labels in their order; of several that are called alike, each has its number."""
    given = config["id2label"]
    names = [str(given[key]) for key in sorted(given, key=int)]
    return LabelField(
        [
            f"{name} ({number})" if names.count(name) > 1 else name
            for number, name in enumerate(names)
        ]
    )


def _side(name: str, config: dict[str, Any]) -> int:
    """Return how long the equal sides of a square are."""
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


def _labels(task: Task[Any]) -> tuple[str, ...]:
    assert isinstance(task, ClassificationTask)
    return task.labels.names
