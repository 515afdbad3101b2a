"""The bottleneck encoder: whatever another encoder ends in becomes a narrow code."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regard.core.config import Config
from regard.models.bottlenecks import (
    BottleneckConfig,
    PlainBottleneckConfig,
    Terms,
    build_bottleneck,
)
from regard.models.encoders.bert import AlbertEncoderConfig, BertEncoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.embedding import EmbeddingEncoderConfig
from regard.models.encoders.hybrid import HybridEncoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.sentences import SentencesEncoderConfig
from regard.models.encoders.speech_transformer import SpeechEncoderConfig
from regard.models.encoders.text_image import TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.video import VideoEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.models.interfaces import Encoder, Memory, masked_mean

WideEncoderConfig = (
    RnnEncoderConfig
    | ConvolutionEncoderConfig
    | TransformerEncoderConfig
    | BertEncoderConfig
    | AlbertEncoderConfig
    | EmbeddingEncoderConfig
    | SentencesEncoderConfig
    | VitEncoderConfig
    | ResnetEncoderConfig
    | HybridEncoderConfig
    | TextImageEncoderConfig
    | VideoEncoderConfig
    | PyramidalLstmEncoderConfig
    | SpeechEncoderConfig
)
"""What can be narrowed: every other encoder."""


@dataclass(frozen=True, kw_only=True)
class BottleneckEncoderConfig(Config):
    """An encoder, and how narrow it ends."""

    kind: Literal["bottleneck"] = "bottleneck"
    """What kind of encoder this is."""
    encoder: WideEncoderConfig = field(default_factory=RnnEncoderConfig)
    """What reads the source."""
    bottleneck: BottleneckConfig = field(default_factory=PlainBottleneckConfig)
    """What its states become."""
    of: Literal["summary", "states"] = "summary"
    """What is made narrow: the summary, to one code a source, or each state by itself."""


class BottleneckEncoder(Encoder):
    """Reads with another encoder; nothing of what that one found gets past the code.

    Args:
        config: The settings.
        encoder: What reads.
    """

    def __init__(self, config: BottleneckEncoderConfig, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.bottleneck = build_bottleneck(config.bottleneck, encoder.memory_dim)
        self.memory_dim = config.bottleneck.dim
        self.is_whole = config.of == "summary"
        """Whether a source has one code."""

    def forward(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole source and return its code or codes as a `Memory`."""
        wide = self.widen(values, mask)
        code, terms = self.bottleneck(wide.states)
        return remember(code, wide.mask, layout=wide.layout, terms=terms)

    def widen(self, values: Tensor, mask: Tensor) -> Memory:
        """Read the whole source and return what the bottleneck makes narrow as states."""
        memory = self.encoder(values, mask)
        if not self.is_whole:
            return memory
        states = memory.summary[:, None]  # (B, 1, D)
        return Memory(states, mask=_all_real(states), summary=memory.summary)

    def groups(self, values: Tensor, mask: Tensor) -> Tensor | None:
        """Return the position of the memory that each source position went into, (B, S)."""
        if not self.is_whole:
            return self.encoder.groups(values, mask)
        return torch.zeros_like(mask, dtype=torch.long)


def remember(
    code: Tensor,
    mask: Tensor | None = None,
    *,
    layout: tuple[int, ...] | None = None,
    terms: Terms | None = None,
) -> Memory:
    """Return the `Memory` that holds codes and nothing else.

    Args:
        code: (B, S, D), or (B, D) where a source has but one.
        mask: (B, S), True = a real position; all are if not given.
        layout: The grid that the positions are, if they are one.
        terms: What each code costs, (B, S) each; padding costs nothing.
    """
    states = code[:, None] if code.dim() == 2 else code  # (B, S, D)
    mask = _all_real(states) if mask is None else mask
    return Memory(
        states,
        mask=mask,
        summary=masked_mean(states, mask),
        layout=layout,
        losses={name: term.where(mask, 0.0).sum(1) for name, term in (terms or {}).items()},
    )


def _all_real(states: Tensor) -> Tensor:
    return states.new_ones(states.shape[:2], dtype=torch.bool)
