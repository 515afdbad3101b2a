"""The joined encoder: a text and an image become one memory, the image's cells before the words."""

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

WORDS: dict[type, type[TokenEncoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
}


@dataclass(frozen=True, kw_only=True)
class TextImageEncoderConfig(Config):
    """An encoder for the text and one for the image."""

    kind: Literal["joined"] = "joined"
    """What kind of encoder this is."""
    text: RnnEncoderConfig | ConvolutionEncoderConfig | TransformerEncoderConfig = field(
        default_factory=TransformerEncoderConfig
    )
    """What reads the text."""
    image: ImageEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """What sees the image."""
    num_layers: NonNegative = 0
    """Transformer blocks in which words and cells look at each other; 0 = they do not."""
    num_heads: Positive = 4
    """Heads of each attention in these blocks."""
    dropout: DropoutRate = 0.1
    """Dropout in these blocks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pooling = getattr(self.text, "pooling", 1)
        if pooling != 1:
            raise ConfigError(
                f"`text.pooling` must be 1 where an image stands beside the text, but is {pooling}."
            )


class TextImageEncoder(TokenEncoder):
    """Reads a text and an image; a decoder may look at words and at cells alike.

    Where there are blocks after that, what is summed up is their states, else half the text and
    half the image.

    Args:
        config: The settings.
        spec: The sizes of text and image.
    """

    def __init__(self, config: TextImageEncoderConfig, spec: TextImageSpec) -> None:
        super().__init__()
        self.text = WORDS[type(config.text)](config.text, spec.text)
        self.image = IMAGE_ENCODERS[type(config.image)](config.image, spec.image)
        self.memory_dim = self.text.memory_dim
        # Cells must be as wide as words, and of the same size, to be looked at beside them.
        self.bridge = nn.Sequential(
            Linear(self.image.memory_dim, self.memory_dim), nn.LayerNorm(self.memory_dim)
        )
        # A transformer has encoded where a word or a cell is already; a residual network has not.
        self.blocks, self.norm = build_fusion(
            self.memory_dim,
            num_layers=config.num_layers,
            num_heads=config.num_heads,
            dropout=config.dropout,
        )

    @property
    def embedding(self) -> Embedding:  # type: ignore[override]
        """What token ids are looked up in."""
        return self.text.embedding

    def forward(self, values: tuple[Tensor, Tensor], mask: Tensor) -> Memory:  # type: ignore[override]
        """Read token ids (B, S) with images (B, C, Y, X); the mask (B, S) is the text's.

        Cells come first, so that padding stays at the end. There is no final state: a recurrent
        decoder starts from the summary of both.
        """
        ids, images = values
        words, seen = self.text(ids, mask), self.image(images, mask)
        cells = self.bridge(seen.states).to(words.states.dtype)  # (B, P, D)
        joined = Memory(
            states=torch.cat([cells, words.states], dim=1),
            mask=torch.cat([seen.mask, words.mask.to(cells.device)], dim=1),
            summary=(words.summary + self.bridge(seen.summary).to(words.summary.dtype)) / 2,
            values=None if words.values is None else torch.cat([cells, words.values], dim=1),
            layout=seen.layout,
        )
        return self._fuse(joined) if self.blocks else joined

    def _fuse(self, memory: Memory) -> Memory:
        """Let words and cells attend to each other; values are then the states themselves."""
        states = self.norm(self.blocks(memory.states, mask=memory.mask[:, None]))  # (B, S, D)
        return replace(memory, states=states, summary=masked_mean(states, memory.mask), values=None)
