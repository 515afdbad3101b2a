"""Parts of transformer blocks: norms, feed-forward layers and residual connections."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import gelu, relu, silu

from regard.core.dropout import Dropout
from regard.core.module import Linear, Module, apply_jointly

NormKind = Literal["layer", "rms", "batch", "none"]
FeedForwardKind = Literal["relu", "gelu", "silu", "gated"]

EPSILON = 1e-5
"""Default epsilon of norms."""


class SequenceBatchNorm(Module):
    """Batch norm over all positions of a batch of sequences. In training, padding is included."""

    def __init__(self, dim: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dim, epsilon)

    def forward(self, states: Tensor) -> Tensor:
        """Normalise (B, L, D)."""
        normed: Tensor = self.norm(states.transpose(1, 2))  # (B, D, L)
        return normed.transpose(1, 2)  # (B, L, D)


NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
    "batch": SequenceBatchNorm,
    "none": lambda dim, epsilon: nn.Identity(),
}


class FeedForward(Module):
    """Position-wise feed-forward layer W₂ f(W₁ x) (Vaswani et al. 2017, eq. 2)."""

    def __init__(
        self, dim: int, hidden_dim: int, *, activation: Callable[[Tensor], Tensor], dropout: float
    ) -> None:
        super().__init__()
        self.hidden_map = Linear(dim, hidden_dim)
        self.output_map = Linear(hidden_dim, dim)
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor) -> Tensor:
        """Transform (B, L, D)."""
        return self.output_map(self.dropout(self.activation(self.hidden_map(states))))


class GatedFeedForward(Module):
    """Gated feed-forward layer W₃ (silu(W₁ x) ⊙ W₂ x) (SwiGLU, Shazeer 2020)."""

    def __init__(self, dim: int, hidden_dim: int, *, dropout: float) -> None:
        super().__init__()
        self.gate_map = Linear(dim, hidden_dim)
        self.hidden_map = Linear(dim, hidden_dim)
        self.output_map = Linear(hidden_dim, dim)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor) -> Tensor:
        """Transform (B, L, D)."""
        gate, hidden = apply_jointly((self.gate_map, self.hidden_map), states)
        return self.output_map(self.dropout(silu(gate) * hidden))


FEED_FORWARDS: dict[str, Callable[[int, int, float], nn.Module]] = {
    "relu": lambda dim, hidden, drop: FeedForward(dim, hidden, activation=relu, dropout=drop),
    "gelu": lambda dim, hidden, drop: FeedForward(dim, hidden, activation=gelu, dropout=drop),
    "silu": lambda dim, hidden, drop: FeedForward(dim, hidden, activation=silu, dropout=drop),
    "gated": lambda dim, hidden, drop: GatedFeedForward(dim, hidden, dropout=drop),
}


class Residual(Module):
    """Residual connection x + f(x) with a norm before f (pre-norm) or after the sum (post-norm)."""

    def __init__(self, norm: nn.Module, *, is_norm_first: bool, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.is_norm_first = is_norm_first
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the output of a layer to states (B, L, D)."""
        if self.is_norm_first:
            return states + self.dropout(layer(self.norm(states)))
        normed: Tensor = self.norm(states + self.dropout(layer(states)))
        return normed
