"""The decoder of Bahdanau et al. 2015: it aligns, then translates."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.attention.spans import GlobalAttention
from regard.models.decoders.recurrent import (
    AttentiveDecoderConfig,
    MaxoutReadout,
    RecurrentDecoder,
    SummaryBridge,
)
from regard.models.interfaces import Memory, State, by_sentence, repeat_rows


@dataclass(frozen=True, kw_only=True)
class BahdanauDecoderConfig(AttentiveDecoderConfig):
    """Attends with its last state, then moves; the paper's score is additive."""

    kind: Literal["bahdanau"] = "bahdanau"
    """What kind of decoder this is."""


class BahdanauDecoder(RecurrentDecoder):
    """c_i = Σ_j α_ij h_j with α_ij from a(s_{i-1}, h_j), then s_i = f(s_{i-1}, y_{i-1}, c_i).

    Bahdanau et al. 2015, eq. 4-6. The first state comes from the whole summary, of which the
    paper takes the backward half.
    """

    def __init__(self, config: BahdanauDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(
            config,
            vocab_size,
            input_dim=config.embedding_dim + memory_dim,
            readout_dim=config.embedding_dim,
        )
        self.attention = GlobalAttention(config.build_score(memory_dim))
        self.bridge = SummaryBridge(config, memory_dim)
        self.readout = MaxoutReadout(
            state_dim=config.dim,
            embedding_dim=config.embedding_dim,
            context_dim=memory_dim,
            dim=config.embedding_dim,
        )

    def start(self, memory: Memory, *, beams: int = 1) -> State:
        """Stand before the first token, with `beams` hypotheses a sentence."""
        prepared = self.attention.prepare(memory.states, memory.mask)
        layers = repeat_rows(self.bridge(memory), beams)
        first = self.attention.begin(prepared, beams=beams)
        return State(per_source=prepared, per_hypothesis={"layers": layers, "place": first})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and where the decoder stands now."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        batch = state.per_source["mask"].shape[0]
        layers, place = state.per_hypothesis["layers"], state.per_hypothesis["place"]
        outputs, contexts = [], []
        for word in embedded.unbind(1):  # (B·W, D)
            query = by_sentence(layers[-1][0][:, None], batch)  # (B, W, D)
            places = by_sentence(place[:, None], batch)  # (B, W)
            answer, weights = self.attention(query, state.per_source, places)
            context = answer.flatten(0, 1)  # (B·W, D)
            output, layers = self.recurrence.step(torch.cat([word, context], dim=-1), layers)
            outputs.append(output)
            contexts.append(context)
            place = self.attention.advance(place, weights.flatten(0, 1))
        readout = self.readout(torch.stack(outputs, 1), embedded, torch.stack(contexts, 1))
        per_hypothesis = {"layers": layers, "place": place}
        return self.output(self.dropout(readout)), State(state.per_source, per_hypothesis)
