"""Convolutional decoder with attention in every layer."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from regard.attention.scores import GeneralScore
from regard.attention.spans import GlobalAttention
from regard.core.dropout import Dropout
from regard.core.module import Embedding, Linear, Module, ModuleList
from regard.models.convolutional import SQRT_HALF, ConvolutionConfig, GatedConvolution
from regard.models.interfaces import Decoder, Memory, State, by_sentence, repeat_rows
from regard.models.transformer import add_positions


@dataclass(frozen=True, kw_only=True)
class ConvolutionDecoderConfig(ConvolutionConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["convolution"] = "convolution"
    """Kind of decoder."""


class ConvolutionDecoder(Decoder):
    """Decoder of causal gated convolutions (Gehring et al. 2017, sections 3.2-3.3).

    The state of a layer is its last `kernel - 1` inputs, so the cost of a step does not depend on
    the length of the target.
    """

    def __init__(
        self, config: ConvolutionDecoderConfig, vocab_size: int, *, memory_dim: int
    ) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(vocab_size, config.embedding_dim)
        self.positions = config.build_positions()
        self.input_map = Linear(config.embedding_dim, config.dim)
        self.blocks: ModuleList[ConvolutionBlock] = ModuleList(
            ConvolutionBlock(config, memory_dim) for _ in range(config.num_layers)
        )
        self.output_map = Linear(config.dim, config.embedding_dim)
        self.output = Linear(config.embedding_dim, vocab_size)
        self.dropout = Dropout(config.dropout)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        values = memory.states if memory.values is None else memory.values
        prepared = [
            {**block.attention.prepare(memory.states, memory.mask), "values": values}
            for block in self.blocks
        ]
        summary = repeat_rows(
            memory.summary, beams
        )  # (B·W, D), for its batch size, dtype and device
        zeros = summary.new_zeros(summary.shape[0], self.config.kernel - 1, self.config.dim)
        tokens = summary.new_zeros(summary.shape[0], 0, dtype=torch.long)
        return State(
            per_source=prepared,
            per_hypothesis={"layers": [zeros for _ in self.blocks], "tokens": tokens},
        )

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        past_tokens = state.per_hypothesis["tokens"]
        embedded = self.embedding(tokens)
        embedded = self.dropout(add_positions(embedded, self.positions, first=past_tokens.shape[1]))
        states = self.input_map(embedded)  # (B·W, T, D)
        layers = []
        for block, past, prepared in zip(
            self.blocks, state.per_hypothesis["layers"], state.per_source, strict=True
        ):
            states, past = block(states, past, embedded=embedded, prepared=prepared)
            layers.append(past)
        logits = self.output(self.dropout(self.output_map(states)))
        per_hypothesis = {"layers": layers, "tokens": torch.cat([past_tokens, tokens], dim=1)}
        return logits, State(state.per_source, per_hypothesis)


class ConvolutionBlock(Module):
    """Causal gated convolution and attention to the source (eq. 1-2)."""

    def __init__(self, config: ConvolutionDecoderConfig, memory_dim: int) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config.dim, config.kernel)
        self.attention = GlobalAttention(GeneralScore(config.embedding_dim, memory_dim))
        self.query_map = Linear(config.dim, config.embedding_dim)
        self.context_map = Linear(memory_dim, config.dim)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, states: Tensor, past: Tensor, *, embedded: Tensor, prepared: dict[str, Any]
    ) -> tuple[Tensor, Tensor]:
        """Apply the block.

        Args:
            states: (B·W, T, D).
            past: (B·W, kernel - 1, D), the inputs of earlier positions.
            embedded: (B·W, T, D), the token embeddings.
            prepared: Output of `prepare` of the attention.

        Returns:
            The new states (B·W, T, D), and the last kernel - 1 inputs.
        """
        inputs = torch.cat([past.to(states.dtype), self.dropout(states)], dim=1)
        hidden = self.convolution(inputs)  # (B·W, T, D)
        queries = (self.query_map(hidden) + embedded) * SQRT_HALF
        batch = prepared["mask"].shape[0]
        grouped = by_sentence(queries, batch)
        steps = grouped.new_zeros(grouped.shape[:2], dtype=torch.long)
        contexts = self.attention(grouped, prepared, steps).context
        contexts = contexts.reshape(*queries.shape[:2], -1)
        # A mean of S values has a small variance, which √S restores (section 3.5).
        lengths = prepared["mask"].sum(1).to(contexts.dtype).sqrt()
        beams = queries.shape[0] // batch
        contexts = contexts * repeat_rows(lengths, beams)[:, None, None]
        hidden = (hidden + self.context_map(contexts)) * SQRT_HALF
        last_inputs = inputs[:, inputs.shape[1] - past.shape[1] :]
        return (hidden + states) * SQRT_HALF, last_inputs
