"""A linear classifier for features with few labels."""

from dataclasses import dataclass

import torch
from torch import Tensor


def draw_per_label(labels: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """Draw `num` rows of each label of labels (B,)."""
    num_labels = int(labels.max()) + 1
    order = torch.randperm(len(labels), generator=generator)
    return torch.cat([order[labels[order] == label][:num] for label in range(num_labels)])


@dataclass(frozen=True)
class LinearClassifier:
    """Linear layer on standardised features, fitted to one-hot labels by least squares."""

    mean: Tensor
    """(D,)."""
    std: Tensor
    """(D,)."""
    weight: Tensor
    """(D + 1, C); the last row is the bias."""

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor, weight_decay: float = 1.0) -> "LinearClassifier":
        """Fit to features (B, D) and labels (B,): W = (XᵀX + λI)⁻¹ XᵀY."""
        mean, std = features.mean(0), features.std(0) + 1e-6
        inputs = _with_ones((features - mean) / std)
        targets = torch.nn.functional.one_hot(labels).float()
        penalty = weight_decay * torch.eye(inputs.shape[1])
        return cls(mean, std, torch.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ targets))

    def predict(self, features: Tensor) -> Tensor:
        """Return the label (B,) of features (B, D)."""
        return (_with_ones((features - self.mean) / self.std) @ self.weight).argmax(1)


def _with_ones(inputs: Tensor) -> Tensor:
    return torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1)
