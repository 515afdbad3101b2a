"""The decoders of Xu et al. 2015, "Show, attend and tell", with soft and with hard attention."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention.hard import HardAttention
from regard.attention.spans import GlobalAttention
from regard.core.config import (
    NonNegative,
    NonNegativeFloat,
    UnitInterval,
)
from regard.core.module import Linear, Module
from regard.models.decoders.recurrent import AttentiveDecoderConfig, ContextFirstDecoder
from regard.models.interfaces import LayerStates, Memory, Output, masked_mean
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
    doubly_stochastic: NonNegativeFloat = 1.0
    """Weight of the loss on places whose weights do not sum to one over the target, the λ of the
    paper; 0 = none."""


@dataclass(frozen=True, kw_only=True)
class HardXuDecoderConfig(XuDecoderConfig):
    """Sees one place at each step, chosen at random while it learns."""

    kind: Literal["xu_hard"] = "xu_hard"
    """What kind of decoder this is."""
    soft_share: UnitInterval = 0.5
    """Share of the training sources that are seen softly, for steadier gradients."""
    soft_steps: NonNegative = 0
    """Training batches over which that share falls from 1, as nobody looks well at first."""
    reward: NonNegativeFloat = 0.05
    """Weight of the loss by which choices are learned, the λ_r of the paper."""
    entropy: NonNegativeFloat = 0.002
    """Weight of the pull towards open choices, the λ_e of the paper."""


class MeanBridge(Module):
    """Starts a decoder from the mean annotation, by a map with tanh for each tensor (4.1)."""

    def __init__(self, config: XuDecoderConfig, memory_dim: int) -> None:
        super().__init__()
        self.num_tensors = num_tensors(config.cell)
        self.maps = nn.ModuleList(
            Linear(memory_dim, config.dim) for _ in range(config.num_layers * self.num_tensors)
        )

    def forward(self, memory: Memory) -> LayerStates:
        """Return where each layer of the decoder starts."""
        mean = masked_mean(memory.states, memory.mask)
        tensors = [bridge(mean).tanh() for bridge in self.maps]
        return tuple(zip(*[iter(tensors)] * self.num_tensors, strict=True))


class XuDecoder(ContextFirstDecoder):
    """ẑ_t = β_t φ(a, α_t) is looked at with h_{t-1}, then h_t = f(h_{t-1}, y_{t-1}, ẑ_t).

    Xu et al. 2015, eq. 1-7 and section 4.2.1: β_t = sigmoid(w · h_{t-1}) says how much to rely on
    the image, and E y + L_h h + L_z ẑ goes into the output layer.
    """

    def __init__(self, config: XuDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        readout_dim = config.embedding_dim
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=readout_dim)
        self.bridge = MeanBridge(config, memory_dim)
        self.gate = Linear(config.dim, 1)
        self.state_map = Linear(config.dim, config.embedding_dim)
        self.context_map = Linear(memory_dim, config.embedding_dim, bias=False)

    def gate_context(self, context: Tensor, hidden: Tensor) -> Tensor:
        """Return how much of the context (B·W, D) is used in state `hidden` (B·W, D)."""
        return self.gate(hidden).sigmoid() * context

    def read_out(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Join states, last words and contexts, (B·W, T, D) each, by a sum."""
        return embedded + self.state_map(self.dropout(states)) + self.context_map(contexts)


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
        logits, _, results = self.run(targets, self.start(memory))
        if not self.doubly_stochastic:
            return Output(logits)
        weights = torch.cat([attended.weights for attended in results], dim=1)  # (B, T, S)
        lacking = (1 - weights.cumsum(1)).masked_fill(~memory.mask[:, None], 0.0)
        until = lacking.square().sum(-1)  # (B, T)
        added = until.diff(dim=1, prepend=torch.zeros_like(until[:, :1]))
        return Output(logits, {"doubly_stochastic": self.doubly_stochastic * added})


class Advantage(Module):
    """Judges a choice by what was said from then on, beside what is usual for those words.

    A reward that a choice had no part in is noise to it. Three means take noise away and leave the
    expected gradient as it is, since none knows the choice: words said before it do not count; the
    moving average that is taken away (Xu et al. 2015, section 4.1) is kept for each word, as some
    words are always hard to foretell; and all is divided by the moving deviation where that is
    above 1 (as Mnih and Gregor 2014 do), which changes its size alone.

    Args:
        vocab_size: Number of words.
    """

    DECAY = 0.9
    """How much of a moving average is kept at each step."""
    usual: Tensor
    variance: Tensor

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        # Who has learned nothing holds all words for equally likely.
        self.register_buffer("usual", torch.full((vocab_size,), -math.log(vocab_size)))
        self.register_buffer("variance", torch.ones(()))

    @torch.no_grad()
    def forward(self, told: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Return how much better than usual it went from each position on, (B, T).

        Args:
            told: (B, T), log-probabilities of the true tokens.
            labels: (B, T), the true tokens.
            mask: (B, T), True = said after a choice.
        """
        told = told.to(self.usual.dtype)
        above = (told - self.usual[labels]).masked_fill(~mask, 0.0)
        from_here = above.flip(1).cumsum(1).flip(1).masked_fill(~mask, 0.0)  # (B, T)
        scaled = from_here / self.variance.sqrt().clamp(min=1.0)
        self._expect(told[mask], labels[mask])
        self._spread(from_here[mask])
        return scaled

    def _expect(self, told: Tensor, labels: Tensor) -> None:
        """Move what is usual for each word towards its mean in this batch, (N,)."""
        sums, counts = (torch.zeros_like(self.usual) for _ in range(2))
        sums.index_add_(0, labels, told)
        counts.index_add_(0, labels, torch.ones_like(told))
        moved = torch.lerp(sums / counts.clamp(min=1.0), self.usual, self.DECAY)
        self.usual.copy_(torch.where(counts > 0, moved, self.usual))

    def _spread(self, advantages: Tensor) -> None:
        """Move the variance towards that of this batch, (N,), if anything was chosen in it."""
        found = advantages.square().sum() / max(len(advantages), 1)
        moved = torch.lerp(found, self.variance, self.DECAY)
        self.variance.copy_(moved if len(advantages) else self.variance)


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
        logits, _, results = self.run(targets, state)
        if not self.training:
            return Output(logits)
        samples = [attended.sample for attended in results if attended.sample is not None]
        log_probs, entropies = (torch.cat(parts, dim=1) for parts in zip(*samples, strict=True))

        def reinforce(told: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
            is_sampled = mask & ~state.per_hypothesis["attention"][:, None]
            return -self.reward * self.advantage(told, labels, is_sampled) * log_probs  # (B, T)

        return Output(logits, {"entropy": -self.entropy * entropies}, reinforce)
