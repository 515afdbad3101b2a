"""Decoder of Bahdanau et al. 2015: attention before the recurrent step."""

from dataclasses import dataclass
from typing import Literal

from regard.attention.spans import GlobalAttention
from regard.models.decoders.recurrent import (
    AttentiveDecoderConfig,
    ContextFirstDecoder,
    MaxoutReadout,
    SummaryBridge,
)


@dataclass(frozen=True, kw_only=True)
class BahdanauDecoderConfig(AttentiveDecoderConfig):
    """Hyperparameters of the decoder; the paper uses the additive score."""

    kind: Literal["bahdanau"] = "bahdanau"
    """Kind of decoder."""


class BahdanauDecoder(ContextFirstDecoder):
    """c_i = Σ_j α_ij h_j with α_ij from a(s_{i-1}, h_j), then s_i = f(s_{i-1}, y_{i-1}, c_i).

    Bahdanau et al. 2015, eq. 4-6. The initial state is computed from the full summary; the paper
    uses its backward half.
    """

    def __init__(self, config: BahdanauDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        readout_dim = config.embedding_dim
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=readout_dim)
        self.attention = GlobalAttention(config.build_score(memory_dim))
        self.bridge = SummaryBridge(config, memory_dim)
        self.readout = MaxoutReadout(config, memory_dim)
