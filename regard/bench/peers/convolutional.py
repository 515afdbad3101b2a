"""Convolutional encoder–decoder in plain PyTorch: `nn.Conv1d`, gates and dot-product attention."""

import torch
from torch import Tensor, nn
from torch.nn.functional import glu, pad

from regard.models.build import ModelConfig
from regard.models.convolutional import ConvolutionConfig
from regard.models.decoders.convolutional import ConvolutionDecoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig

HALF = 0.5**0.5


class PlainConvolutional(nn.Module):
    """Gated convolutions, with attention in every layer of the decoder (Gehring et al. 2017).

    Args:
        config: Hyperparameters of a convolutional encoder and decoder.
        vocab_size: Size of the joint vocabulary.
        pad: Id of the padding token.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, pad: int) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        assert isinstance(encoder, ConvolutionEncoderConfig)
        assert isinstance(decoder, ConvolutionDecoderConfig)
        self.embedding = nn.Embedding(vocab_size, encoder.embedding_dim)
        nn.init.normal_(self.embedding.weight, std=0.03)
        self.encoder = _Encoder(encoder)
        self.decoder = _Decoder(decoder)
        self.output = nn.Linear(decoder.embedding_dim, vocab_size)
        self.output.weight = self.embedding.weight

    def forward(self, source: Tensor, targets: Tensor, mask: Tensor | None) -> Tensor:
        """Return the logits (B, T, V) of source (B, S), decoder inputs (B, T), mask (B, S)."""
        keys, values = self.encoder(self.embedding(source), mask)
        states = self.decoder(self.embedding(targets), (keys, values), mask)
        logits: Tensor = self.output(states)
        return logits


class _Sequence(nn.Module):
    """Position embeddings, and the layers between embeddings and convolutions."""

    def __init__(self, config: ConvolutionConfig) -> None:
        super().__init__()
        self.kernel = config.kernel
        self.positions = nn.Embedding(config.max_length, config.embedding_dim)
        self.input_map = nn.Linear(config.embedding_dim, config.dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.dim, 2 * config.dim, config.kernel) for _ in range(config.num_layers)
        )
        self.output_map = nn.Linear(config.dim, config.embedding_dim)
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, embedded: Tensor) -> Tensor:
        """Add positions to (B, L, D)."""
        positions = torch.arange(embedded.shape[1], device=embedded.device)
        dropped: Tensor = self.dropout(embedded + self.positions(positions))
        return dropped


class _Encoder(_Sequence):
    def forward(self, embedded: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return keys and values (B, S, D) of embeddings (B, S, D) with a mask (B, S) or None."""
        embedded = self.embed(embedded)
        states = self.input_map(embedded).transpose(1, 2)  # (B, D, S)
        width = self.kernel // 2
        for convolution in self.convolutions:
            inputs = self.dropout(states)
            if mask is not None:
                inputs = inputs.masked_fill(~mask[:, None], 0.0)
            gated = glu(convolution(pad(inputs, (width, width))), dim=1)
            states = (gated + states) * HALF
        keys = self.output_map(states.transpose(1, 2))  # (B, S, D)
        return keys, (keys + embedded) * HALF


class _Decoder(_Sequence):
    def __init__(self, config: ConvolutionConfig) -> None:
        super().__init__(config)
        dim, embedding_dim, num = config.dim, config.embedding_dim, config.num_layers
        self.query_maps = nn.ModuleList(nn.Linear(dim, embedding_dim) for _ in range(num))
        self.key_maps = nn.ModuleList(
            nn.Linear(embedding_dim, embedding_dim, bias=False) for _ in range(num)
        )
        self.context_maps = nn.ModuleList(nn.Linear(embedding_dim, dim) for _ in range(num))

    def forward(
        self, embedded: Tensor, memory: tuple[Tensor, Tensor], mask: Tensor | None
    ) -> Tensor:
        """Return states (B, T, D) of embeddings (B, T, D), keys and values (B, S, D)."""
        keys, values = memory
        embedded = self.embed(embedded)
        states = self.input_map(embedded)  # (B, T, D)
        lengths = keys.shape[1] if mask is None else mask.sum(1)[:, None, None]
        root = lengths**0.5
        for index, convolution in enumerate(self.convolutions):
            inputs = pad(self.dropout(states).transpose(1, 2), (self.kernel - 1, 0))  # (B, D, T)
            hidden = glu(convolution(inputs), dim=1).transpose(1, 2)  # (B, T, D)
            queries = (self.query_maps[index](hidden) + embedded) * HALF
            scores = torch.bmm(queries, self.key_maps[index](keys).transpose(1, 2))  # (B, T, S)
            if mask is not None:
                scores = scores.masked_fill(~mask[:, None], float("-inf"))
            contexts = torch.bmm(scores.softmax(-1), values) * root
            hidden = (hidden + self.context_maps[index](contexts)) * HALF
            states = (hidden + states) * HALF
        dropped: Tensor = self.dropout(self.output_map(states))
        return dropped
