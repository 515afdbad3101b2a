"""Decoder of Bahdanau et al. 2015: attention before the recurrent step."""

from dataclasses import dataclass
from typing import Literal

import torch

from regard.attention.spans import GlobalAttention
from regard.models.decoders.recurrent import (
    AttentiveDecoderConfig,
    ContextFirstDecoder,
    ContextInputConfig,
)
from regard.models.interfaces import LayerStates, map_tensors


@dataclass(frozen=True, kw_only=True)
class BahdanauDecoderConfig(ContextInputConfig, AttentiveDecoderConfig):
    """Hyperparameters of the decoder; the paper uses the additive score and maxout."""

    kind: Literal["bahdanau"] = "bahdanau"
    """Kind of decoder."""
    is_recurrent: bool = True
    """Whether the last state is an input of the step; otherwise s_i = f(y_{i-1}, c_i), and the last
    state is the query only."""


class BahdanauDecoder(ContextFirstDecoder):
    """c_i = Σ_j α_ij h_j with α_ij from a(s_{i-1}, h_j), then s_i = f(s_{i-1}, y_{i-1}, c_i).

    Bahdanau et al. 2015, eq. 4-6. The initial state is computed from the full summary; the paper
    uses its backward half.
    """

    def __init__(self, config: BahdanauDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=config.readout_dim)
        self.attention = GlobalAttention(config.build_score(memory_dim))
        self.bridge = config.build_bridge(memory_dim)
        self.readout = config.build_readout(memory_dim)
        self.is_recurrent = config.is_recurrent

    def carry_over(self, layers: LayerStates) -> LayerStates:
        """Return the states that the recurrent step continues: the last ones, or zeros."""
        if self.is_recurrent:
            return layers
        zeros: LayerStates = map_tensors(layers, torch.zeros_like)
        return zeros
