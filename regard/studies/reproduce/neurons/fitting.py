"""Training of the small classifiers of this chapter, and their accuracy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

Sample = Callable[[torch.Generator], tuple[Tensor, Tensor]]
"""Function that samples a batch: inputs and labels (B,)."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Set the seed of torch inside the block, and restore its random state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def fit(model: nn.Module, sample: Sample, *, num_steps: int, rate: float, seed: int) -> list[float]:
    """Minimise the cross-entropy with Adam, and return the loss of each step.

    Args:
        model: Maps inputs to logits (B, V).
        sample: Function that samples a batch.
        num_steps: Number of steps.
        rate: Learning rate.
        seed: Seed of the batches.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for _ in range(num_steps):
        inputs, labels = sample(generator)
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        # Recurrent nets need a limit of the gradient; the others never reach it.
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def batches_of(inputs: Tensor, labels: Tensor, *, size: int) -> Sample:
    """Return a function that samples batches from a data set.

    Args:
        inputs: (B, ...).
        labels: (B,).
        size: Number of examples of a batch.
    """

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(labels), (size,), generator=generator)
        return inputs[rows], labels[rows]

    return sample


@torch.no_grad()
def accuracy(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    """Return the share of correct predictions in percent."""
    return 100 * float((model(inputs).argmax(-1) == labels).float().mean())


def count_parameters(model: nn.Module) -> int:
    """Return the number of parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())
