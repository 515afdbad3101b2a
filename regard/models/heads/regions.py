"""Models of image regions: labels of grid cells (segmentation), box of a phrase (grounding)."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.pooling import AttentionPooling
from regard.attention.scores import AdditiveScore
from regard.core.config import Config, DropoutRate, Positive
from regard.core.dropout import Dropout
from regard.core.module import Linear, Module
from regard.core.specs import ImageSpec, TextImageSpec
from regard.models.encoders import build_encoder
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import TokenEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.models.init import InitConfig, initialize

NEAR_ZERO = 1e-4
"""Minimum distance of fractions from 0 and 1, so that their logits are finite."""


@dataclass(frozen=True, kw_only=True)
class PatchLabellerConfig(Config):
    """Hyperparameters of a patch labeller."""

    encoder: ImageEncoderConfig = field(default_factory=VitEncoderConfig)
    """Encoder of the image; there is one label per cell of its grid."""
    dropout: DropoutRate = 0.1
    """Dropout probability of the states."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""


class PatchLabeller(Module):
    """Classifier of each grid cell of an image.

    Args:
        config: The hyperparameters.
        source: Input specification of the images.
        num_labels: Number of labels.
    """

    def __init__(self, config: PatchLabellerConfig, source: ImageSpec, num_labels: int) -> None:
        super().__init__()
        self.encoder = build_encoder(config.encoder, source)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(self.encoder.memory_dim, num_labels)
        initialize(self, config.init)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the logits of the labels of each cell, (B, Y, X, V).

        Args:
            values: (B, C, Y, X) images.
            mask: (B, 1); images have no padding.
        """
        memory = self.encoder(values, mask)
        assert memory.layout is not None
        logits: Tensor = self.output(self.dropout(memory.states))  # (B, S, V)
        return logits.view(len(logits), *memory.layout, -1)  # (B, Y, X, V)


@dataclass(frozen=True, kw_only=True)
class GrounderConfig(Config):
    """Hyperparameters of a grounder."""

    image: ImageEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """Encoder of the image."""
    text: TokenEncoderConfig = field(default_factory=RnnEncoderConfig)
    """Encoder of the phrase."""
    dim: Positive = 64
    """Width of the hidden layers of the attention score and of the box head."""
    dropout: DropoutRate = 0.1
    """Dropout probability of context and phrase vector."""
    init: InitConfig = field(default_factory=InitConfig)
    """Weight initialisation."""


class Grounding(NamedTuple):
    """Output of a grounder."""

    boxes: Tensor
    """(B, 4), left, upper, right and lower edge, as fractions of the image."""
    weights: Tensor
    """(B, S), attention weights of the cells."""
    layout: tuple[int, ...]
    """Rows and columns of the cells."""


class Grounder(Module):
    """Model that predicts the bounding box of the object that a phrase names.

    The summary of the phrase attends to the cells (Bahdanau et al. 2015). Centre and size of the
    box, as in Carion et al. 2020, are predicted from the context and from mean and standard
    deviation of the attended positions. Keys contain the position of the cell, so attention can
    depend on it.

    Args:
        config: The hyperparameters.
        source: Input specification of phrases and images.
    """

    def __init__(self, config: GrounderConfig, source: TextImageSpec) -> None:
        super().__init__()
        self.image = build_encoder(config.image, source.image)
        self.text = build_encoder(config.text, source.text)
        image_dim, text_dim = self.image.memory_dim, self.text.memory_dim
        self.attention = AttentionPooling(AdditiveScore(text_dim, image_dim + 2, dim=config.dim))
        self.dropout = Dropout(config.dropout)
        self.hidden = Linear(image_dim + text_dim + 4, config.dim)
        self.output = Linear(config.dim, 4)
        initialize(self, config.init)

    def forward(self, values: tuple[Tensor, Tensor], mask: Tensor) -> Grounding:
        """Predict a box for each phrase.

        Args:
            values: Token ids (B, S) of the phrases, and images (B, C, Y, X).
            mask: (B, S), True = a real position of the phrase.
        """
        tokens, images = values
        phrase = self.text(tokens, mask).summary  # (B, D)
        memory = self.image(images, mask)
        assert memory.layout is not None
        centres = cell_centres(memory.layout, like=memory.states)  # (S, 2)
        by_image = centres.expand(len(phrase), -1, -1)
        keys = torch.cat([memory.states, by_image], dim=-1)  # (B, S, D + 2)
        context, weights = self.attention(
            phrase[:, None], keys, torch.cat([memory.states, by_image, by_image**2], dim=-1)
        )
        states, mean, square = torch.split(context[:, 0], [memory.states.shape[-1], 2, 2], dim=-1)
        std = (square - mean**2).clamp(min=NEAR_ZERO**2).sqrt()  # (B, 2)
        features = torch.cat([self.dropout(states), self.dropout(phrase), mean, std], dim=-1)
        offset, sizes = self.output(self.hidden(features).relu()).chunk(2, dim=-1)  # (B, 2)
        # The output is the offset of the box centre from the mean attended position.
        centre = (mean.clamp(NEAR_ZERO, 1 - NEAR_ZERO).logit() + offset).sigmoid()
        half = sizes.sigmoid() / 2
        boxes = torch.cat([centre - half, centre + half], dim=-1)  # (B, 4)
        return Grounding(boxes.float(), weights[:, 0].float(), memory.layout)


def cell_centres(layout: tuple[int, ...], *, like: Tensor) -> Tensor:
    """Return the centre (x, y) of each cell as fractions of the image, (S, 2)."""
    down, across = (
        (torch.arange(num, dtype=like.dtype, device=like.device) + 0.5) / num for num in layout
    )
    rows, columns = torch.meshgrid(down, across, indexing="ij")  # (Y, X)
    return torch.stack([columns, rows], dim=-1).flatten(0, 1)  # (S, 2)


def cell_overlaps(boxes: Tensor, layout: tuple[int, ...]) -> Tensor:
    """Return the fraction of each cell inside a box: (B, 4) → (B, S)."""
    num_rows, num_columns = layout
    left, upper, right, lower = boxes.unbind(-1)
    across = _interval_overlaps(left, right, num_columns)  # (B, X)
    down = _interval_overlaps(upper, lower, num_rows)  # (B, Y)
    return (down[:, :, None] * across[:, None]).flatten(1)  # (B, S)


def _interval_overlaps(low: Tensor, high: Tensor, num: int) -> Tensor:
    """Return the fraction of each of `num` equal intervals within a range: (B,) → (B, X)."""
    starts = torch.arange(num, dtype=low.dtype, device=low.device)
    ends = torch.minimum(high[:, None] * num, starts + 1)
    return (ends - torch.maximum(low[:, None] * num, starts)).clamp(0, 1)  # (B, X)
