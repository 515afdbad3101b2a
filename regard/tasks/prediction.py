"""What a model answers, and where it looked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.recording import AttentionMaps
from regard.data.text.tokenizers import Tokenizer
from regard.search.hypothesis import Hypothesis

COPYING = "copying"
"""What a map's weights are where tokens are copied: a row sums to the chance that its own is."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer to one source."""

    text: str
    """The answer as text."""
    log_prob: float
    """Its log-probability."""
    tokens: tuple[str, ...]
    """Its pieces as the model wrote them, the end token included."""
    token_log_probs: tuple[float, ...]
    """The log-probability of each piece."""
    image: NDArray[np.uint8] | None = field(default=None, compare=False)
    """The answer as an image, (Y, X, 3), where it is one."""

    @classmethod
    def empty(cls) -> "Prediction":
        """Return the prediction of an empty source."""
        return cls("", 0.0, (), ())

    @classmethod
    def from_tokens(
        cls, text: str, tokens: Sequence[str], log_probs: Sequence[float]
    ) -> "Prediction":
        """Return a prediction whose log-probability is the sum of its tokens' ones."""
        return cls(text, sum(log_probs, 0.0), tuple(tokens), tuple(log_probs))

    @classmethod
    def from_hypothesis(cls, text: str, found: Hypothesis, tokenizer: Tokenizer) -> "Prediction":
        """Return what a search found as a prediction."""
        return cls(text, found.log_prob, tokenizer.tokens(found.tokens), found.step_log_probs)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without the image."""
        return {field.name: getattr(self, field.name) for field in fields(self)[:-1]}


class CaptionedImage(NamedTuple):
    """An image and what is said of it."""

    image: NDArray[np.uint8]
    """(Y, X, 3)."""
    caption: str
    """What it is."""
    note: str = ""
    """What else is worth knowing."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Sound that was listened to, as it was read."""

    frames: NDArray[np.float32]
    """(F, M), log-mel."""
    hop: float
    """Seconds from one frame to the next."""
    frames_per_position: int
    """Frames that went into one position of the memory."""
    aligned: Tensor | None = None
    """(T, S), 1 where CTC hears each piece of the target, where the model has it; on the host."""


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Where the model looked while it wrote a given target."""

    source: tuple[str, ...]
    """The pieces that were looked at."""
    target: tuple[str, ...]
    """The pieces that looked."""
    weights: Tensor
    """(N, H, T, S), on the host."""
    kind: str = "attention"
    """What the weights are: attention, or what stands in for it where a model has none."""
    grid: tuple[int, ...] | None = None
    """Rows and columns of an image's cells, before them the frames of a video; the cells are the
    last of `source`, frame by frame and row by row."""
    image: NDArray[np.uint8] | None = None
    """The image that was looked at, (Y, X, 3), or the video, (F, Y, X, 3), where there is one."""
    recording: Recording | None = None
    """The sound that was listened to, where there is any."""

    @classmethod
    def of_self_attention(cls, text: tuple[str, ...], recorded: Maps) -> "AttentionMap":
        """Return where the pieces of one text looked at each other; no layers where none could."""
        weights = torch.zeros(0, 1, len(text), len(text))
        if recorded.num_layers:
            weights = recorded.stack_self()[0].cpu().float()
        return cls(source=text, target=text, weights=weights)

    @property
    def num_text_tokens(self) -> int:
        """How many of `source` are pieces of a text: all that are no cells of an image."""
        return len(self.source) - (math.prod(self.grid) if self.grid else 0)

    @property
    def still(self) -> NDArray[np.uint8] | None:
        """One picture to stand for what was looked at: the image, or the middle of the video."""
        if self.image is None or self.image.ndim == 3:
            return self.image
        frame: NDArray[np.uint8] = self.image[len(self.image) // 2]
        return frame

    def text_only(self) -> "AttentionMap":
        """Return the part of the map that is over a text."""
        num = self.num_text_tokens
        return replace(
            self, source=self.source[:num], weights=self.weights[..., :num], grid=None, image=None
        )

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """Target and source pieces as people read them, without the mark of a word's init_from.

        Where tokens are copied, each of the target's has the probability of it beside it.
        """
        sides = (self.target, self.source)
        rows, columns = ([piece.removeprefix("▁") or piece for piece in side] for side in sides)
        if self.kind == COPYING:
            shares = self.mean().sum(-1).tolist()
            rows = [f"{row} {share:.2f}" for row, share in zip(rows, shares, strict=True)]
        return rows, columns

    def mean(self) -> Tensor:
        """Average layers and heads: (T, S)."""
        return self.weights.mean((0, 1))  # (T, S)


def cell_names(grid: tuple[int, ...]) -> tuple[str, ...]:
    """Name the cells of a grid row by row, `row,column` from 1 on; of a video, the frame first."""
    return tuple(
        ",".join(map(str, cell)) for cell in product(*(range(1, size + 1) for size in grid))
    )


def to_image(pixels: Tensor) -> NDArray[np.uint8]:
    """Turn stacked bytes (C, Y, X) into a picture in colour, (Y, X, 3); frames stay in front."""
    colours = pixels.expand(*pixels.shape[:-3], 3, -1, -1)
    return np.ascontiguousarray(colours.movedim(-3, -1).cpu().numpy())
