"""`torch.nn.Transformer` with embeddings, positions and an output layer."""

import math

import torch
from torch import Tensor, nn

from regard.models.build import ModelConfig
from regard.models.decoders.transformer import TransformerDecoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig


class PlainTransformer(nn.Module):
    """`nn.Transformer` with the sizes of an encoder–decoder, and one tied embedding matrix.

    Args:
        config: Hyperparameters of a Transformer.
        vocab_size: Size of the joint vocabulary.
        pad: Id of the padding token.
    """

    positions: Tensor

    def __init__(self, config: ModelConfig, vocab_size: int, pad: int) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        assert isinstance(encoder, TransformerEncoderConfig)
        assert isinstance(decoder, TransformerDecoderConfig)
        dim = encoder.dim
        self.embedding = nn.Embedding(vocab_size, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.register_buffer("positions", _sinusoids(encoder.max_length, dim), persistent=False)
        self.dropout = nn.Dropout(encoder.dropout)
        self.transformer = nn.Transformer(
            d_model=dim,
            nhead=encoder.num_heads,
            num_encoder_layers=encoder.num_layers,
            num_decoder_layers=decoder.num_layers,
            dim_feedforward=encoder.feed_forward_dim,
            dropout=encoder.dropout,
            batch_first=True,
        )
        self.output = nn.Linear(dim, vocab_size)
        self.output.weight = self.embedding.weight

    def forward(self, source: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Return the logits (B, T, V) of source (B, S), decoder inputs (B, T), mask (B, S)."""
        padding = None if mask is None else ~mask
        length = targets.shape[1]
        # True = may not attend.
        later = torch.ones(length, length, dtype=torch.bool, device=targets.device).triu(1)
        states = self.transformer(
            self._embed(source),
            self._embed(targets),
            tgt_mask=later,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        logits: Tensor = self.output(states)
        return logits

    def _embed(self, tokens: Tensor) -> Tensor:
        embedded = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        dropped: Tensor = self.dropout(embedded + self.positions[: tokens.shape[1]])
        return dropped


def _sinusoids(length: int, dim: int) -> Tensor:
    """Return position embeddings (L, D): sines and cosines of geometric wavelengths."""
    rates = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000) / dim))
    angles = torch.arange(length)[:, None] * rates  # (L, D), half as wide
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
