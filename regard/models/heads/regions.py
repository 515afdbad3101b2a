"""Where in an image: a label for each cell of its grid, or the box of what a phrase names."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.pooling import AttentionPooling
from regard.attention.scores import AdditiveScore
from regard.core.config import Config, DropoutRate, Positive
from regard.core.module import Dropout, Linear, Module
from regard.core.specs import ImageSpec, TextImageSpec
from regard.models.encoders import build_encoder
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import TokenEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.models.init import InitConfig, initialise

NEAR_ZERO = 1e-4
"""Shares are kept so far from 0 and 1 that their logits stay finite."""


@dataclass(frozen=True, kw_only=True)
class PatchLabellerConfig(Config):
    """An encoder of images with a decision on each cell."""

    encoder: ImageEncoderConfig = field(default_factory=VitEncoderConfig)
    """What reads the image; its grid is the grid of the labels."""
    dropout: DropoutRate = 0.1
    """Dropout on the states."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""


class PatchLabeller(Module):
    """Says how likely each label is for each cell of an image.

    Args:
        config: The settings.
        source: The sizes of the images.
        num_labels: Number of labels.
    """

    def __init__(self, config: PatchLabellerConfig, source: ImageSpec, num_labels: int) -> None:
        super().__init__()
        self.encoder = build_encoder(config.encoder, source)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(self.encoder.memory_dim, num_labels)
        initialise(self, config.init)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return a logit for each label of each cell, (B, Y, X, V), the labels being V.

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
    """Two encoders, and a look from the phrase at the image."""

    image: ImageEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """What reads the image."""
    text: TokenEncoderConfig = field(default_factory=RnnEncoderConfig)
    """What reads the phrase."""
    dim: Positive = 64
    """Width of the hidden layers: of the score that looks, and of what makes a box of it."""
    dropout: DropoutRate = 0.1
    """Dropout on what was seen."""
    init: InitConfig = field(default_factory=InitConfig)
    """How the weights start."""


class Grounding(NamedTuple):
    """Where a phrase's thing is."""

    boxes: Tensor
    """(B, 4), left, upper, right and lower edge, as shares of the image."""
    weights: Tensor
    """(B, S), how much each cell was looked at."""
    layout: tuple[int, ...]
    """Rows and columns of the cells."""


class Grounder(Module):
    """Finds the box of what a phrase names.

    The phrase's summary looks for the cells that fit it (Bahdanau et al. 2015); what it sees, and
    the middle and the spread of where it looks, become the middle and the size of a box, as in
    Carion et al. 2020. A cell also knows its place, so that one can look for the left of two.

    Args:
        config: The settings.
        source: The sizes of phrases and images.
    """

    def __init__(self, config: GrounderConfig, source: TextImageSpec) -> None:
        super().__init__()
        self.image = build_encoder(config.image, source.image)
        self.text = build_encoder(config.text, source.text)
        seen, asked = self.image.memory_dim, self.text.memory_dim
        self.attention = AttentionPooling(AdditiveScore(asked, seen + 2, dim=config.dim))
        self.dropout = Dropout(config.dropout)
        self.hidden = Linear(seen + asked + 4, config.dim)
        self.output = Linear(config.dim, 4)
        initialise(self, config.init)

    def forward(self, values: tuple[Tensor, Tensor], mask: Tensor) -> Grounding:
        """Find a box for each phrase.

        Args:
            values: Token ids (B, S) of the phrases, and images (B, C, Y, X).
            mask: (B, S), True = a real position of the phrase.
        """
        tokens, images = values
        phrase = self.text(tokens, mask).summary  # (B, D)
        memory = self.image(images, mask)
        assert memory.layout is not None
        places = cell_places(memory.layout, like=memory.states)  # (S, 2)
        by_image = places.expand(len(phrase), -1, -1)
        keys = torch.cat([memory.states, by_image], dim=-1)  # (B, S, D + 2)
        context, weights = self.attention(
            phrase[:, None], keys, torch.cat([memory.states, by_image, by_image**2], dim=-1)
        )
        states, middle, square = torch.split(context[:, 0], [memory.states.shape[-1], 2, 2], dim=-1)
        spread = (square - middle**2).clamp(min=NEAR_ZERO**2).sqrt()  # (B, 2)
        found = torch.cat([self.dropout(states), self.dropout(phrase), middle, spread], dim=-1)
        moved, sizes = self.output(self.hidden(found).relu()).chunk(2, dim=-1)  # (B, 2)
        # What is learned is how far the box lies from where was looked.
        middle = (middle.clamp(NEAR_ZERO, 1 - NEAR_ZERO).logit() + moved).sigmoid()
        half = sizes.sigmoid() / 2
        boxes = torch.cat([middle - half, middle + half], dim=-1)  # (B, 4)
        return Grounding(boxes.float(), weights[:, 0].float(), memory.layout)


def cell_places(layout: tuple[int, ...], *, like: Tensor) -> Tensor:
    """Return the middle of each cell as shares of the image, across and down: (S, 2)."""
    down, across = (
        (torch.arange(num, dtype=like.dtype, device=like.device) + 0.5) / num for num in layout
    )
    rows, columns = torch.meshgrid(down, across, indexing="ij")  # (Y, X)
    return torch.stack([columns, rows], dim=-1).flatten(0, 1)  # (S, 2)


def cell_shares(boxes: Tensor, layout: tuple[int, ...]) -> Tensor:
    """Return which share of each cell lies in a box: (B, 4) → (B, S)."""
    num_rows, num_columns = layout
    left, upper, right, lower = boxes.unbind(-1)
    across = _line_shares(left, right, num_columns)  # (B, X)
    down = _line_shares(upper, lower, num_rows)  # (B, Y)
    return (down[:, :, None] * across[:, None]).flatten(1)  # (B, S)


def _line_shares(low: Tensor, high: Tensor, num: int) -> Tensor:
    """Return which share of each of `num` equal parts lies between two points: (B,) → (B, X)."""
    starts = torch.arange(num, dtype=low.dtype, device=low.device)
    ends = torch.minimum(high[:, None] * num, starts + 1)
    return (ends - torch.maximum(low[:, None] * num, starts)).clamp(0, 1)  # (B, X)
