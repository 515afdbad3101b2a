"""The decoders of Xu et al. 2015, "Show, attend and tell": softly, or at one place at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from regard.attention.hard import HardAttention
from regard.attention.spans import GlobalAttention
from regard.core.config import at_least, within
from regard.models.decoders.recurrent import AttentiveDecoderConfig, RecurrentDecoder
from regard.models.decoders.reinforce import Advantage
from regard.models.interfaces import (
    LayerStates,
    Memory,
    Output,
    State,
    by_sentence,
    masked_mean,
    repeat_rows,
)
from regard.models.recurrent import Cell, num_tensors


@dataclass(frozen=True, kw_only=True)
class XuDecoderConfig(AttentiveDecoderConfig):
    """What both decoders can be told."""

    cell: Cell = "lstm"
    """The recurrent cell."""


@dataclass(frozen=True, kw_only=True)
class SoftXuDecoderConfig(XuDecoderConfig):
    """Sees the mean of all places, weighted by attention."""

    kind: Literal["xu_soft"] = "xu_soft"
    """What kind of decoder this is."""
    doubly_stochastic: float = 1.0
    """Weight of the loss on places whose weights do not sum to one over the target, the λ of the
    paper; 0 = none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("doubly_stochastic", self.doubly_stochastic, 0.0)


@dataclass(frozen=True, kw_only=True)
class HardXuDecoderConfig(XuDecoderConfig):
    """Sees one place at each step, chosen at random while it learns."""

    kind: Literal["xu_hard"] = "xu_hard"
    """What kind of decoder this is."""
    soft_share: float = 0.5
    """Share of the training sources that are seen softly, for steadier gradients."""
    soft_steps: int = 0
    """Training batches over which that share falls from 1, as nobody looks well at first."""
    reward: float = 0.05
    """Weight of the loss by which choices are learned, the λ_r of the paper."""
    entropy: float = 0.002
    """Weight of the pull towards open choices, the λ_e of the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("soft_share", self.soft_share, low=0.0, high=1.0)
        at_least("soft_steps", self.soft_steps, 0)
        at_least("reward", self.reward, 0.0)
        at_least("entropy", self.entropy, 0.0)


class MeanBridge(nn.Module):
    """Starts a decoder from the mean annotation, by a map with tanh for each tensor (4.1)."""

    def __init__(self, config: XuDecoderConfig, memory_dim: int) -> None:
        super().__init__()
        self.num_tensors = num_tensors(config.cell)
        self.maps = nn.ModuleList(
            nn.Linear(memory_dim, config.dim) for _ in range(config.num_layers * self.num_tensors)
        )

    def forward(self, memory: Memory) -> LayerStates:
        """Return where each layer of the decoder starts."""
        mean = masked_mean(memory.states, memory.mask)
        tensors = [bridge(mean).tanh() for bridge in self.maps]
        return tuple(zip(*[iter(tensors)] * self.num_tensors, strict=True))


class XuDecoder(RecurrentDecoder):
    """ẑ_t = β_t φ(a, α_t) is looked at with h_{t-1}, then h_t = f(h_{t-1}, y_{t-1}, ẑ_t).

    Xu et al. 2015, eq. 1-7 and section 4.2.1: β_t = sigmoid(w · h_{t-1}) says how much to rely on
    the image, and E y + L_h h + L_z ẑ goes into the output layer.
    """

    attention: GlobalAttention

    def __init__(self, config: XuDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(
            config,
            vocab_size,
            input_dim=config.embedding_dim + memory_dim,
            readout_dim=config.embedding_dim,
        )
        self.bridge = MeanBridge(config, memory_dim)
        self.gate = nn.Linear(config.dim, 1)
        self.state_map = nn.Linear(config.dim, config.embedding_dim)
        self.context_map = nn.Linear(memory_dim, config.embedding_dim, bias=False)

    def start(self, memory: Memory, *, beams: int = 1) -> State:
        """Stand before the first token, with `beams` hypotheses a sentence."""
        prepared = self.attention.prepare(memory.states, memory.mask)
        layers = repeat_rows(self.bridge(memory), beams)
        first = self.attention.begin(prepared, beams=beams)
        return State(per_source=prepared, per_hypothesis={"layers": layers, "place": first})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B·W, T) and return logits (B·W, T, V) and where the decoder stands now."""
        logits, state, _ = self.run(tokens, state)
        return logits, state

    def run(self, tokens: Tensor, state: State) -> tuple[Tensor, State, list[Any]]:
        """Take a step, and return with it what the attention said at each token."""
        embedded = self.dropout(self.embedding(tokens))  # (B·W, T, D)
        batch = state.per_source["mask"].shape[0]
        layers, place = state.per_hypothesis["layers"], state.per_hypothesis["place"]
        outputs, contexts, said = [], [], []
        for word in embedded.unbind(1):  # (B·W, D)
            hidden = layers[-1][0]
            query = by_sentence(hidden[:, None], batch)  # (B, W, D)
            said.append(self.attention(query, state.per_source, by_sentence(place[:, None], batch)))
            answer, weights = said[-1][:2]
            context = self.gate(hidden).sigmoid() * answer.flatten(0, 1)  # (B·W, D)
            output, layers = self.recurrence.step(torch.cat([word, context], dim=-1), layers)
            outputs.append(output)
            contexts.append(context)
            place = self.attention.advance(place, weights.flatten(0, 1))
        readout = (
            embedded
            + self.state_map(self.dropout(torch.stack(outputs, 1)))
            + self.context_map(torch.stack(contexts, 1))
        )
        per_hypothesis = {"layers": layers, "place": place}
        return self.output(self.dropout(readout)), State(state.per_source, per_hypothesis), said


class SoftXuDecoder(XuDecoder):
    """The deterministic one (section 4.2): it sees the expected context."""

    def __init__(self, config: SoftXuDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, memory_dim=memory_dim)
        self.attention = GlobalAttention(config.build_score(memory_dim))
        self.doubly_stochastic = config.doubly_stochastic

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Read a whole target, token ids (B, T) from the start token on: one long step.

        The loss λ Σ_s (1 - Σ_t α_ts)² (eq. 14) is told as what each token adds to it, (B, T):
        which of them are padding, the caller knows.
        """
        logits, _, said = self.run(targets, self.start(memory))
        if not self.doubly_stochastic:
            return Output(logits)
        weights = torch.cat([weights for _, weights in said], dim=1)  # (B, T, S)
        lacking = (1 - weights.cumsum(1)).masked_fill(~memory.mask[:, None], 0.0)
        until = lacking.square().sum(-1)  # (B, T)
        added = until.diff(dim=1, prepend=torch.zeros_like(until[:, :1]))
        return Output(logits, {"doubly_stochastic": self.doubly_stochastic * added})

    if TYPE_CHECKING:
        __call__ = forward


class HardXuDecoder(XuDecoder):
    """The stochastic one (section 4.1): it sees one place at each step.

    Its choices are learned by how much likelier than usual they made what follows (eq. 12).
    """

    def __init__(self, config: HardXuDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, memory_dim=memory_dim)
        self.attention = HardAttention(
            config.build_score(memory_dim),
            soft_share=config.soft_share,
            soft_steps=config.soft_steps,
        )
        self.advantage = Advantage(vocab_size)
        self.reward = config.reward
        self.entropy = config.entropy

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Read a whole target, token ids (B, T) from the start token on: one long step.

        In training the entropy term is one number a token, (B, T), and `Output.reinforce` waits
        for the log-probabilities of the true tokens.
        """
        state = self.start(memory)
        logits, _, said = self.run(targets, state)
        if not self.training:
            return Output(logits)
        log_probs, entropies = (_join(said, part) for part in ("log_probs", "entropies"))

        def reinforce(told: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
            drawn = mask & ~state.per_hypothesis["place"][:, None]
            return -self.reward * self.advantage(told, labels, drawn) * log_probs  # (B, T)

        return Output(logits, {"entropy": -self.entropy * entropies}, reinforce)

    if TYPE_CHECKING:
        __call__ = forward


def _join(said: Sequence[Any], part: str) -> Tensor:
    return torch.cat([getattr(choice, part) for choice in said], dim=1)  # (B, T)
