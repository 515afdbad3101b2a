"""The joined encoder: a text and an image become one memory, the image's cells before the words."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from regard.models.encoders.convolution import ConvolutionEncoder, ConvolutionEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.encoders.transformer import TransformerEncoder, TransformerEncoderConfig
from regard.models.encoders.vit import VitEncoder, VitEncoderConfig
from regard.models.interfaces import Encoder, Memory, TokenEncoder

JoinedSize = tuple[int, tuple[int, int, int]]
"""The number of tokens, and channels, rows and columns of the image."""

WORDS: dict[type, type[TokenEncoder]] = {
    RnnEncoderConfig: RnnEncoder,
    ConvolutionEncoderConfig: ConvolutionEncoder,
    TransformerEncoderConfig: TransformerEncoder,
}
EYES: dict[type, type[Encoder]] = {
    VitEncoderConfig: VitEncoder,
    ResnetEncoderConfig: ResnetEncoder,
}


@dataclass(frozen=True, kw_only=True)
class JoinedEncoderConfig:
    """An encoder for the text and one for the image."""

    kind: Literal["joined"] = "joined"
    """What kind of encoder this is."""
    text: RnnEncoderConfig | ConvolutionEncoderConfig | TransformerEncoderConfig = field(
        default_factory=TransformerEncoderConfig
    )
    """What reads the text."""
    image: VitEncoderConfig | ResnetEncoderConfig = field(default_factory=ResnetEncoderConfig)
    """What sees the image."""


class JoinedEncoder(TokenEncoder):
    """Reads a text and an image; a decoder may look at words and at cells alike.

    Args:
        config: The settings.
        size: The number of tokens, and the shape of the image.
    """

    def __init__(self, config: JoinedEncoderConfig, size: JoinedSize) -> None:
        super().__init__()
        vocab_size, shape = size
        self.text = WORDS[type(config.text)](config.text, vocab_size)
        self.image = EYES[type(config.image)](config.image, shape)
        self.memory_dim = self.text.memory_dim
        # Cells must be as wide as words, and of the same size, to be looked at beside them.
        self.bridge = nn.Sequential(
            nn.Linear(self.image.memory_dim, self.memory_dim), nn.LayerNorm(self.memory_dim)
        )

    @property
    def embedding(self) -> nn.Embedding:  # type: ignore[override]
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
        return Memory(
            states=torch.cat([cells, words.states], dim=1),
            mask=torch.cat([seen.mask, words.mask.to(cells.device)], dim=1),
            summary=words.summary + self.bridge(seen.summary).to(words.summary.dtype),
            values=None if words.values is None else torch.cat([cells, words.values], dim=1),
            layout=seen.layout,
        )
