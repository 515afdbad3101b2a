"""The decoder of Luong et al. 2015: it moves, then attends."""

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
    """Moves, then attends with its new state."""

    kind: Literal["luong"] = "luong"
    """What kind of decoder this is."""
    score: ScoreKind = "general"
    """How well the new state fits a source position."""
    span: SpanKind = "global"
    """Attend to all positions, in a window that moves along or is predicted, or only ahead."""
    window: Positive = 10
    """Half the width of a local window, the paper's D."""
    is_input_fed: bool = True
    """Feed the last attentional vector in again, so that past choices are known."""


class LuongDecoder(AttentiveDecoder):
    """h̃_t = tanh(W_c [c_t; h_t]) speaks, with c_t attended from h_t.

    Luong et al. 2015, eq. 5-7, and section 3.3 for input feeding. Without input feeding a whole
    target runs through the recurrence and the attention at once, unless the attention depends on
    where it looked before.
    """

    def __init__(self, config: LuongDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        fed_dim = config.dim if config.is_input_fed else 0
        super().__init__(config, vocab_size, context_dim=fed_dim, readout_dim=config.dim)
        self.is_input_fed = config.is_input_fed
        self.attention = pick(SPANS, config.span, "span")(
            config.build_score(memory_dim), half_width=config.window
        )
        self.bridge = FinalStateBridge(config, memory_dim)
        self.attentional_map = Linear(memory_dim + config.dim, config.dim, bias=False)

    def start(self, memory: Memory, *, beams: int = 1, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses a sentence."""
        state = super().start(memory, beams=beams)
        fed = torch.zeros_like(state.per_hypothesis["layers"][-1][0])
        return State(state.per_source, {**state.per_hypothesis, "fed": fed})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and the next state."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        is_stepwise = self.is_input_fed or self.attention.follows_weights
        run = self._run_by_steps if is_stepwise else self._run_at_once
        vectors, per_hypothesis = run(embedded, state)
        return self.output(self.dropout(vectors)), State(state.per_source, per_hypothesis)

    def _run_at_once(self, embedded: Tensor, state: State) -> tuple[Tensor, dict[str, object]]:
        before = state.per_hypothesis
        states, layers = self.recurrence(embedded, before["layers"])
        num_steps = embedded.shape[1]
        steps = before["attention"][:, None] + torch.arange(num_steps, device=embedded.device)
        vectors, _ = self._attend(states, state.per_source, steps)
        return vectors, {**before, "layers": layers, "attention": before["attention"] + num_steps}

    def _run_by_steps(self, embedded: Tensor, state: State) -> tuple[Tensor, dict[str, object]]:
        keys = ("layers", "fed", "attention")
        layers, fed, attention = (state.per_hypothesis[key] for key in keys)
        vectors = []
        for word in embedded.unbind(1):  # (B·W, D)
            inputs = torch.cat([word, fed], dim=-1) if self.is_input_fed else word
            hidden, layers = self.recurrence.step(inputs, layers)
            vector, weights = self._attend(hidden[:, None], state.per_source, attention[:, None])
            fed = vector.squeeze(1)
            attention = self.attention.advance(attention, weights.flatten(0, 1))
            vectors.append(fed)
        per_hypothesis = dict(zip(keys, (layers, fed, attention), strict=True))
        return torch.stack(vectors, dim=1), per_hypothesis

    def _attend(
        self, states: Tensor, prepared: dict[str, Tensor], remembered: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Turn states (B·W, T, D) into attentional vectors (B·W, T, D) and weights (B, W·T, S)."""
        batch = prepared["mask"].shape[0]
        attended = self.attention(
            by_sentence(states, batch), prepared, by_sentence(remembered, batch)
        )
        contexts = attended.context.reshape(*states.shape[:2], -1)  # (B·W, T, D)
        return self.attentional_map(torch.cat([contexts, states], dim=-1)).tanh(), attended.weights
