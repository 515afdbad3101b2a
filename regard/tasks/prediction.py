"""Predictions and attention maps."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.attention.recording import AttentionMaps
from regard.data.text.tokenizers import Tokenizer
from regard.plots.html import join, paragraph, table
from regard.search.hypothesis import Hypothesis
from regard.tasks.attention_plots import attention_svg, image_svg
from regard.tasks.notebook import count, shorten

COPYING = "copying"
"""The kind of a map of copying probabilities: a row sums to the probability that its token is
copied."""

MAX_PLOTTED = 80
"""Maximum number of tokens of a source or a target that a notebook plots."""


@dataclass(frozen=True, slots=True)
class PhraseResult:
    """Whether a prediction satisfies a lexical constraint."""

    phrase: str
    """The phrase."""
    kind: str
    """`glossary`, `keep`, `require` or `forbid`."""
    source: str | None
    """The part of the source that requires the phrase, if there is one."""
    is_met: bool
    """Whether the prediction contains the phrase, or, if it is forbidden, does not."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction for one source."""

    text: str
    """The prediction as text."""
    log_prob: float
    """Log-probability of the prediction."""
    tokens: tuple[str, ...]
    """Tokens as the model generated them, the end token included."""
    token_log_probs: tuple[float, ...]
    """Log-probability of each token."""
    image: NDArray[np.uint8] | None = field(default=None, compare=False)
    """The predicted image, (Y, X, 3), if the task predicts images."""
    phrases: tuple[PhraseResult, ...] | None = None
    """The lexical constraints of the source; None without lexical control."""
    token_ids: tuple[int, ...] = field(default=(), compare=False)
    """Ids of the tokens, if the prediction is the result of a search."""
    alternatives: tuple[tuple[tuple[str, float], ...], ...] = ()
    """The most likely tokens in place of each token with their log-probabilities, if they were
    asked for."""

    def __repr__(self) -> str:
        tokens = f", {count(len(self.tokens), 'token')}" if self.tokens else ""
        return f"Prediction({shorten(self.text)!r}, log_prob={self.log_prob:.4g}{tokens})"

    def _repr_html_(self) -> str:
        title = paragraph(f"{self.text} (log-probability {self.log_prob:.4g})")
        if self.image is not None:
            return join(title, image_svg(self.image))
        probs = [f"{math.exp(value):.3f}" for value in self.token_log_probs]
        rows = list(zip(self.tokens, probs, strict=True))
        return join(title, table(["token", "probability"], rows)) if rows else title

    @classmethod
    def empty(cls) -> "Prediction":
        """Return the prediction of an empty source."""
        return cls("", 0.0, (), ())

    @classmethod
    def from_tokens(
        cls, text: str, tokens: Sequence[str], log_probs: Sequence[float]
    ) -> "Prediction":
        """Return a prediction whose log-probability is the sum of those of its tokens."""
        return cls(text, sum(log_probs, 0.0), tuple(tokens), tuple(log_probs))

    @classmethod
    def from_hypothesis(cls, text: str, best: Hypothesis, tokenizer: Tokenizer) -> "Prediction":
        """Return a hypothesis of a search as a prediction."""
        tokens = tokenizer.tokens(best.tokens)
        return cls(text, best.log_prob, tokens, best.step_log_probs, token_ids=best.tokens)

    def with_alternatives(
        self, found: Sequence[Sequence[tuple[int, float]]], tokenizer: Tokenizer
    ) -> "Prediction":
        """Return the prediction with the most likely tokens at each position."""
        alternatives = tuple(
            tuple((tokenizer.token(index), value) for index, value in position)
            for position in found
        )
        return replace(self, alternatives=alternatives)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the image and the token ids.

        Phrases and alternatives are included only if they were asked for.
        """
        values: dict[str, Any] = {
            "text": self.text,
            "log_prob": self.log_prob,
            "tokens": self.tokens,
            "token_log_probs": self.token_log_probs,
        }
        if self.phrases is not None:
            values["phrases"] = [asdict(phrase) for phrase in self.phrases]
        if self.alternatives:
            values["alternatives"] = self.alternatives
        return values


class CaptionedImage(NamedTuple):
    """An image with a caption."""

    image: NDArray[np.uint8]
    """(Y, X, 3)."""
    caption: str
    """Title of the image."""
    note: str = ""
    """Further text below the caption."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as log-mel frames, with the CTC alignment of its target."""

    frames: NDArray[np.float32]
    """(F, M), log-mel."""
    hop: float
    """Seconds from one frame to the next."""
    frames_per_position: int
    """Number of frames per position of the memory."""
    aligned: Tensor | None = None
    """(T, S), 1 where CTC aligns a target token with a position; None without CTC; on the host."""


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Attention weights of a target over its source."""

    source: tuple[str, ...]
    """Labels of the keys: source tokens, cells of an image, or times."""
    target: tuple[str, ...]
    """Labels of the queries: target tokens or labels."""
    weights: Tensor
    """(N, H, T, S), on the host."""
    kind: str = "attention"
    """Name of the weights: attention, or a saliency for models without attention."""
    grid: tuple[int, ...] | None = None
    """Rows and columns of the cells of an image; (frames, rows, columns) for a video. The cells are
    the last labels of `source`, frame by frame and row by row."""
    image: NDArray[np.uint8] | None = None
    """The source image, (Y, X, 3), or the source video, (F, Y, X, 3), if there is one."""
    recording: Recording | None = None
    """The source recording, if there is one."""

    def __repr__(self) -> str:
        target, source = (shorten(" ".join(tokens)) for tokens in self.labels)
        num_layers, num_heads, num_rows, num_columns = self.weights.shape
        return (
            f"AttentionMap({count(num_rows, 'target token')} {target!r} × "
            f"{count(num_columns, 'source token')} {source!r}, {count(num_layers, 'layer')}, "
            f"{count(num_heads, 'head')}, {self.kind})"
        )

    def _repr_html_(self) -> str:
        is_large = max(self.weights.shape[2:]) > MAX_PLOTTED and self.image is None
        if not self.weights.shape[0] or (is_large and self.recording is None):
            return paragraph(repr(self))
        return join(paragraph(repr(self)), attention_svg(self))

    @classmethod
    def of_self_attention(cls, tokens: tuple[str, ...], recorded: AttentionMaps) -> "AttentionMap":
        """Return the self-attention weights of one text; no layers if none were recorded."""
        weights = torch.zeros(0, 1, len(tokens), len(tokens))
        if recorded.num_layers:
            weights = recorded.stack_self()[0].cpu().float()
        return cls(source=tokens, target=tokens, weights=weights)

    @property
    def num_text_tokens(self) -> int:
        """Number of labels of `source` that are not cells of an image."""
        return len(self.source) - (math.prod(self.grid) if self.grid else 0)

    @property
    def still(self) -> NDArray[np.uint8] | None:
        """The source image, or the middle frame of the source video."""
        if self.image is None or self.image.ndim == 3:
            return self.image
        frame: NDArray[np.uint8] = self.image[len(self.image) // 2]
        return frame

    def text_only(self) -> "AttentionMap":
        """Return the part of the map over text, without cells of an image."""
        num = self.num_text_tokens
        return replace(
            self, source=self.source[:num], weights=self.weights[..., :num], grid=None, image=None
        )

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """Target and source tokens for display, without the marker of a word's beginning.

        In a map of copying probabilities, each target token is followed by its probability.
        """
        sides = (self.target, self.source)
        rows, columns = ([token.removeprefix("▁") or token for token in side] for side in sides)
        if self.kind == COPYING:
            probs = self.mean().sum(-1).tolist()
            rows = [f"{row} {prob:.2f}" for row, prob in zip(rows, probs, strict=True)]
        return rows, columns

    def mean(self) -> Tensor:
        """Average layers and heads: (T, S)."""
        return self.weights.mean((0, 1))  # (T, S)


def cell_names(grid: tuple[int, ...]) -> tuple[str, ...]:
    """Return labels of the cells of a grid, row by row: `row,column` from 1 on.

    The cells of a video have the frame first: `frame,row,column`.
    """
    return tuple(
        ",".join(map(str, cell)) for cell in product(*(range(1, size + 1) for size in grid))
    )


def to_image(pixels: Tensor) -> NDArray[np.uint8]:
    """Convert 8-bit pixels (..., C, Y, X) to an RGB image (..., Y, X, 3)."""
    rgb = pixels.expand(*pixels.shape[:-3], 3, -1, -1)
    return np.ascontiguousarray(rgb.movedim(-3, -1).cpu().numpy())
