"""Encoder of a text with an image: one memory of image cells, then words."""

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.config import Config, DropoutRate, NonNegative, Positive
from regard.core.errors import ConfigError
from regard.core.module import Embedding, Linear
from regard.core.specs import TextImageSpec
from regard.models.encoders.convolutional import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS, ImageEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.interfaces import Memory, TokenEncoder, masked_mean
from regard.models.transformer import build_fusion

TEXT_ENCODERS: dict[type, type[TokenEncoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
}


@dataclass(frozen=True, kw_only=True)
class TextImageEncoderConfig(Config):
    """Hyperparameters of the encoder."""

    kind: Literal["joined"] = "joined"
    """Kind of encoder."""
    text: RnnEncoderConfig | ConvolutionEncoderConfig | TransformerEncoderConfig = field(
        default_factory=TransformerEncoderConfig
    )
    """Encoder of the text."""
    image: ImageEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """Encoder of the image."""
    num_layers: NonNegative = 0
    """Number of transformer blocks over words and cells; 0 = none."""
    num_heads: Positive = 4
    """Number of attention heads in these blocks."""
    dropout: DropoutRate = 0.1
    """Dropout probability in these blocks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pooling = getattr(self.text, "pooling", 1)
        if pooling != 1:
            raise ConfigError(
                f"`text.pooling` must be 1 for a text with an image, but is {pooling}."
            )


class TextImageEncoder(TokenEncoder):
    """Encoder of a text with an image, whose memory contains cells and words.

    The summary is the mean of the states of the blocks or, without blocks, the mean of the
    summaries of text and image.

    Args:
        config: The hyperparameters.
        spec: Input specification of text and image.
    """

    def __init__(self, config: TextImageEncoderConfig, spec: TextImageSpec) -> None:
        super().__init__()
        self.text = TEXT_ENCODERS[type(config.text)](config.text, spec.text)
        self.image = IMAGE_ENCODERS[type(config.image)](config.image, spec.image)
        self.memory_dim = self.text.memory_dim
        # Project cells to the width and scale of words, for attention over both.
        self.bridge = nn.Sequential(
            Linear(self.image.memory_dim, self.memory_dim), nn.LayerNorm(self.memory_dim)
        )
        # Blocks without position encoding: positions are encoded by the encoders, if at all.
        self.blocks, self.norm = build_fusion(
            self.memory_dim,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            dropout=config.dropout,
        )

    @property
    def embedding(self) -> Embedding:  # type: ignore[override]
        """Token embedding."""
        return self.text.embedding

    def forward(self, values: tuple[Tensor, Tensor], mask: Tensor) -> Memory:  # type: ignore[override]
        """Encode token ids (B, S) with images (B, C, Y, X); the mask (B, S) is that of the text.

        Cells come first, so padding stays at the end. There is no final state; a recurrent decoder
        starts from the summary.
        """
        ids, images = values
        words, image = self.text(ids, mask), self.image(images, mask)
        cells = self.bridge(image.states).to(words.states.dtype)  # (B, P, D)
        joined = Memory(
            states=torch.cat([cells, words.states], dim=1),
            mask=torch.cat([image.mask, words.mask.to(cells.device)], dim=1),
            summary=(words.summary + self.bridge(image.summary).to(words.summary.dtype)) / 2,
            values=None if words.values is None else torch.cat([cells, words.values], dim=1),
            layout=image.layout,
        )
        return self._fuse(joined) if self.blocks else joined

    def _fuse(self, memory: Memory) -> Memory:
        """Apply the transformer blocks to words and cells."""
        states = self.norm(self.blocks(memory.states, mask=memory.mask[:, None]))  # (B, S, D)
        return replace(memory, states=states, summary=masked_mean(states, memory.mask), values=None)
