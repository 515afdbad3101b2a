"""The decoder of Bahdanau et al. 2015: it aligns, then translates."""

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
    """Attends with its last state, then moves; the paper's score is additive."""

    kind: Literal["bahdanau"] = "bahdanau"
    """What kind of decoder this is."""


class BahdanauDecoder(ContextFirstDecoder):
    """c_i = Σ_j α_ij h_j with α_ij from a(s_{i-1}, h_j), then s_i = f(s_{i-1}, y_{i-1}, c_i).

    Bahdanau et al. 2015, eq. 4-6. The first state comes from the whole summary, of which the
    paper takes the backward half.
    """

    def __init__(self, config: BahdanauDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        readout_dim = config.embedding_dim
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=readout_dim)
        self.attention = GlobalAttention(config.build_score(memory_dim))
        self.bridge = SummaryBridge(config, memory_dim)
        self.readout = MaxoutReadout(config, memory_dim)
