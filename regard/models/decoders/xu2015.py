"""Decoders of Xu et al. 2015, "Show, attend and tell", with soft and with hard attention."""

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
    """Hyperparameters of both decoders."""

    cell: Cell = "lstm"
    """The recurrent cell."""


@dataclass(frozen=True, kw_only=True)
class SoftXuDecoderConfig(XuDecoderConfig):
    """Hyperparameters of the decoder with soft attention."""

    kind: Literal["xu_soft"] = "xu_soft"
    """Kind of decoder."""
    doubly_stochastic: NonNegativeFloat = 1.0
    """Weight λ of the doubly stochastic loss, which makes the weights of each source position sum
    to one over the target; 0 = none."""


@dataclass(frozen=True, kw_only=True)
class HardXuDecoderConfig(XuDecoderConfig):
    """Hyperparameters of the decoder with hard attention."""

    kind: Literal["xu_hard"] = "xu_hard"
    """Kind of decoder."""
    soft_share: UnitInterval = 0.5
    """Probability of soft attention per training example, which reduces gradient variance."""
    soft_steps: NonNegative = 0
    """Training batches over which that probability is annealed from 1."""
    reward: NonNegativeFloat = 0.05
    """Weight λ_r of the REINFORCE loss of the sampled positions."""
    entropy: NonNegativeFloat = 0.002
    """Weight λ_e of the entropy bonus of the attention distribution."""


class MeanBridge(Module):
    """Initial decoder states from the mean annotation, with a linear layer and tanh each (4.1)."""

    def __init__(self, config: XuDecoderConfig, memory_dim: int) -> None:
        super().__init__()
        self.num_tensors = num_tensors(config.cell)
        self.maps = nn.ModuleList(
            Linear(memory_dim, config.dim) for _ in range(config.num_layers * self.num_tensors)
        )

    def forward(self, memory: Memory) -> LayerStates:
        """Return the initial state of each decoder layer."""
        mean = masked_mean(memory.states, memory.mask)
        tensors = [bridge(mean).tanh() for bridge in self.maps]
        return tuple(zip(*[iter(tensors)] * self.num_tensors, strict=True))


class XuDecoder(ContextFirstDecoder):
    """Base class of both decoders: h_t = f(h_{t-1}, y_{t-1}, ẑ_t) with ẑ_t = β_t φ(a, α_t).

    Xu et al. 2015, eq. 1-7 and section 4.2.1: the gate β_t = sigmoid(w · h_{t-1}) scales the
    context, and the input of the output layer is E y + L_h h + L_z ẑ.
    """

    def __init__(self, config: XuDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        readout_dim = config.embedding_dim
        super().__init__(config, vocab_size, context_dim=memory_dim, readout_dim=readout_dim)
        self.bridge = MeanBridge(config, memory_dim)
        self.gate = Linear(config.dim, 1)
        self.state_map = Linear(config.dim, config.embedding_dim)
        self.context_map = Linear(memory_dim, config.embedding_dim, bias=False)

    def gate_context(self, context: Tensor, hidden: Tensor) -> Tensor:
        """Scale the context (B·W, D) by the gate of the state `hidden` (B·W, D)."""
        return self.gate(hidden).sigmoid() * context

    def read_out(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Sum states, input embeddings and contexts, (B·W, T, D) each."""
        return embedded + self.state_map(self.dropout(states)) + self.context_map(contexts)


class SoftXuDecoder(XuDecoder):
    """Decoder with soft attention (section 4.2), which is deterministic."""

    def __init__(self, config: SoftXuDecoderConfig, vocab_size: int, *, memory_dim: int) -> None:
        super().__init__(config, vocab_size, memory_dim=memory_dim)
        self.attention = GlobalAttention(config.build_score(memory_dim))
        self.doubly_stochastic = config.doubly_stochastic

    def forward(self, targets: Tensor, memory: Memory) -> Output:
        """Process full targets, token ids (B, T) from the start token on, in parallel.

        The loss λ Σ_s (1 - Σ_t α_ts)² (eq. 14) is returned as the increment of each token, (B, T),
        because only the caller can exclude padding.
        """
        logits, _, results = self.run(targets, self.start(memory))
        if not self.doubly_stochastic:
            return Output(logits)
        weights = torch.cat([attended.weights for attended in results], dim=1)  # (B, T, S)
        residual = (1 - weights.cumsum(1)).masked_fill(~memory.mask[:, None], 0.0)
        cumulative = residual.square().sum(-1)  # (B, T)
        increments = cumulative.diff(dim=1, prepend=torch.zeros_like(cumulative[:, :1]))
        return Output(logits, {"doubly_stochastic": self.doubly_stochastic * increments})


class Advantage(Module):
    """Advantage of sampled positions: the log-probability of the following tokens over a baseline.

    Three measures reduce the variance and leave the expected gradient unchanged, since they do not
    depend on the sample: tokens before the sample do not count; the baseline, a moving average (Xu
    et al. 2015, section 4.1), is kept per token, since some tokens are always hard to predict; and
    the result is divided by its moving standard deviation if that is above 1 (Mnih and Gregor
    2014).

    Args:
        vocab_size: Number of tokens.
    """

    DECAY = 0.9
    """Decay of the moving averages."""
    usual: Tensor
    variance: Tensor

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        # An untrained model gives all tokens the same probability.
        self.register_buffer("usual", torch.full((vocab_size,), -math.log(vocab_size)))
        self.register_buffer("variance", torch.ones(()))

    @torch.no_grad()
    def forward(self, log_probs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Return the advantage of the sample at each target position, (B, T).

        Args:
            log_probs: (B, T), log-probabilities of the labels.
            labels: (B, T), target tokens.
            mask: (B, T), True = a real token with a sampled position.
        """
        log_probs = log_probs.to(self.usual.dtype)
        above_baseline = (log_probs - self.usual[labels]).masked_fill(~mask, 0.0)
        advantages = above_baseline.flip(1).cumsum(1).flip(1).masked_fill(~mask, 0.0)  # (B, T)
        scaled = advantages / self.variance.sqrt().clamp(min=1.0)
        self._update_baseline(log_probs[mask], labels[mask])
        self._update_variance(advantages[mask])
        return scaled

    def _update_baseline(self, log_probs: Tensor, labels: Tensor) -> None:
        """Update the baseline of each token by its mean log-probability in this batch, (N,)."""
        sums, counts = (torch.zeros_like(self.usual) for _ in range(2))
        sums.index_add_(0, labels, log_probs)
        counts.index_add_(0, labels, torch.ones_like(log_probs))
        updated = torch.lerp(sums / counts.clamp(min=1.0), self.usual, self.DECAY)
        self.usual.copy_(torch.where(counts > 0, updated, self.usual))

    def _update_variance(self, advantages: Tensor) -> None:
        """Update the variance by the advantages of this batch, (N,), if there are any."""
        variance = advantages.square().sum() / max(len(advantages), 1)
        updated = torch.lerp(variance, self.variance, self.DECAY)
        self.variance.copy_(updated if len(advantages) else self.variance)


class HardXuDecoder(XuDecoder):
    """Decoder with hard attention (section 4.1), which samples one position per step.

    Sampling is trained by the advantage of the following tokens (eq. 12).
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
        """Process full targets, token ids (B, T) from the start token on, in parallel.

        In training, the output has an entropy term per token, (B, T), and `Output.reinforce`.
        """
        state = self.start(memory)
        logits, _, results = self.run(targets, state)
        if not self.training:
            return Output(logits)
        samples = [attended.sample for attended in results if attended.sample is not None]
        log_probs, entropies = (torch.cat(parts, dim=1) for parts in zip(*samples, strict=True))

        def reinforce(target_log_probs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
            is_sampled = mask & ~state.per_hypothesis["attention"][:, None]
            advantages = self.advantage(target_log_probs, labels, is_sampled)
            return -self.reward * advantages * log_probs  # (B, T)

        return Output(logits, {"entropy": -self.entropy * entropies}, reinforce)
