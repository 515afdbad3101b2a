"""Decoder of Luong et al. 2015: attention after the recurrent step."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.attention.scores import ScoreKind
from regard.attention.spans import SPANS, SpanKind
from regard.core.config import Positive
from regard.core.module import Linear
from regard.core.tables import pick
from regard.models.decoders.recurrent import (
    AttentiveDecoder,
    AttentiveDecoderConfig,
    FinalStateBridge,
)
from regard.models.interfaces import Memory, State, by_sentence


@dataclass(frozen=True, kw_only=True)
class LuongDecoderConfig(AttentiveDecoderConfig):
    """Hyperparameters of the decoder."""

    kind: Literal["luong"] = "luong"
    """Kind of decoder."""
    score: ScoreKind = "general"
    """Score function of decoder state and source position."""
    span: SpanKind = "global"
    """Attention span: all positions, a moving window, a predicted window, or monotonic."""
    window: Positive = 10
    """Half the width of the window of local attention, D in the paper."""
    is_input_fed: bool = True
    """Whether the last attentional vector is an input of the next step (input feeding)."""


class LuongDecoder(AttentiveDecoder):
    """Recurrent decoder with the attentional vector h̃_t = tanh(W_c [c_t; h_t]).

    Luong et al. 2015, eq. 5-7; section 3.3 for input feeding. Without input feeding, all target
    positions are processed in parallel, unless attention depends on earlier attention weights.
    """

    def __init__(self, config: LuongDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        feeding_dim = config.dim if config.is_input_fed else 0
        super().__init__(config, vocab_size, context_dim=feeding_dim, readout_dim=config.dim)
        self.is_input_fed = config.is_input_fed
        self.attention = pick(SPANS, config.span, "span")(
            config.build_score(memory_dim), half_width=config.window
        )
        self.bridge = FinalStateBridge(config, memory_dim)
        self.attentional_map = Linear(memory_dim + config.dim, config.dim, bias=False)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        state = super().start(memory, beams=beams)
        fed = torch.zeros_like(state.per_hypothesis["layers"][-1][0])
        return State(state.per_source, {**state.per_hypothesis, "fed": fed})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process tokens (B·W, T); return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        is_stepwise = self.is_input_fed or self.attention.follows_weights
        run = self._run_stepwise if is_stepwise else self._run_parallel
        vectors, per_hypothesis = run(embedded, state)
        return self.output(self.dropout(vectors)), State(state.per_source, per_hypothesis)

    def _run_parallel(self, embedded: Tensor, state: State) -> tuple[Tensor, dict[str, object]]:
        before = state.per_hypothesis
        states, layers = self.recurrence(embedded, before["layers"])
        num_steps = embedded.shape[1]
        steps = before["attention"][:, None] + torch.arange(num_steps, device=embedded.device)
        vectors, _ = self._attend(states, state.per_source, steps)
        return vectors, {**before, "layers": layers, "attention": before["attention"] + num_steps}

    def _run_stepwise(self, embedded: Tensor, state: State) -> tuple[Tensor, dict[str, object]]:
        keys = ("layers", "fed", "attention")
        layers, fed, attention = (state.per_hypothesis[key] for key in keys)
        vectors = []
        steps = self.recurrence.unroll(embedded)
        for position in range(embedded.shape[1]):
            hidden, layers = steps.step(position, fed if self.is_input_fed else None, layers)
            vector, weights = self._attend(hidden[:, None], state.per_source, attention[:, None])
            fed = vector.squeeze(1)
            attention = self.attention.advance(attention, weights.flatten(0, 1))
            vectors.append(fed)
        per_hypothesis = dict(zip(keys, (layers, fed, attention), strict=True))
        return torch.stack(vectors, dim=1), per_hypothesis

    def _attend(
        self, states: Tensor, prepared: dict[str, Tensor], attention_state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute attentional vectors (B·W, T, D) and weights (B, W·T, S) of states (B·W, T, D)."""
        batch = prepared["mask"].shape[0]
        attended = self.attention(
            by_sentence(states, batch), prepared, by_sentence(attention_state, batch)
        )
        contexts = attended.context.reshape(*states.shape[:2], -1)  # (B·W, T, D)
        return self.attentional_map(torch.cat([contexts, states], dim=-1)).tanh(), attended.weights
