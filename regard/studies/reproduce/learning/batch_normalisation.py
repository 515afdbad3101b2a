"""Standardised inputs and batch normalisation, each with and without."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot

NUM_EXAMPLES, DIM, WIDTH, NUM_HIDDEN = 512, 10, 32, 3
NUM_STEPS, BATCH, LAST = 150, 64, 20
RATES = [10.0**power for power in range(-4, 2)]
"""Learning rates that are tried for each network."""
EPSILON = 1e-5

RAW, STANDARD = "raw inputs", "standardised inputs"
WITHOUT, WITH = "without batch norm", "with batch norm"


@dataclass(frozen=True)
class Run:
    """Training losses by step with a learning rate."""

    rate: float
    losses: list[float]

    @property
    def last(self) -> float:
        """Mean loss of the last steps; infinite if training diverged."""
        mean = sum(self.losses[-LAST:]) / LAST
        return mean if math.isfinite(mean) else math.inf


def standardise(x: Tensor) -> Tensor:
    """Standardise each dimension: x_i ← (x_i − m_i) / σ_i.

    Args:
        x: (B, D).
    """
    return (x - x.mean(0)) / x.std(0, correction=0)


def normalise_batch(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """Batch normalisation of one layer: x̂ ← (x − μ) / σ, output γ x̂ + β.

    Args:
        x: (B, D).
        gamma: (D,), learned scale.
        beta: (D,), learned shift.
    """
    mean, variance = x.mean(0), x.var(0, correction=0)
    return gamma * (x - mean) / (variance + EPSILON).sqrt() + beta


def batch_normalisation(seed: int, _folder: Path | None = None) -> Findings:
    """Train networks with and without each normalisation.

    Args:
        seed: Seed of data, weights and batches.
    """
    x, labels = sample_data(seed)
    inputs = {RAW: x, STANDARD: standardise(x)}
    runs = {
        (name, norm): tune(inputs[name], labels, seed, norm=norm, activation=nn.ReLU)
        for name, norm in product(inputs, (WITHOUT, WITH))
    }
    sigmoids = {
        norm: tune(inputs[STANDARD], labels, seed, norm=norm, activation=nn.Sigmoid)
        for norm in (WITHOUT, WITH)
    }
    rows = {f"ReLU, {name}, {norm}": _row(run) for (name, norm), run in runs.items()}
    rows |= {f"sigmoid, {STANDARD}, {norm}": _row(run) for norm, run in sigmoids.items()}
    moments = {
        name: {
            "mean, smallest": float(one.mean(0).min()),
            "mean, largest": float(one.mean(0).max()),
            "std, smallest": float(one.std(0, correction=0).min()),
            "std, largest": float(one.std(0, correction=0).max()),
        }
        for name, one in inputs.items()
    }
    return Findings(
        tables={"Training loss with the best learning rate": rows, "Inputs": moments},
        claims=(_formula_claim(inputs, seed), *_training_claims(runs, sigmoids)),
        plots={"batch-normalisation": _plot(runs, sigmoids)},
    )


def sample_data(seed: int) -> tuple[Tensor, Tensor]:
    """Return badly scaled inputs (B, D) and labels (B,)."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(NUM_EXAMPLES, DIM, generator=generator)
    labels = (values[:, :5].sum(1) + values[:, 5:].prod(1).sign() > 0).long()
    scales = torch.logspace(-2, 2, DIM)[torch.randperm(DIM, generator=generator)]
    return scales * (values + torch.randn(DIM, generator=generator)), labels


def build_network(seed: int, *, norm: str, activation: Callable[[], nn.Module]) -> nn.Sequential:
    """Return a perceptron, with a batch norm before each activation if `norm` is `WITH`."""
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for number in range(NUM_HIDDEN):
        layers.append(nn.Linear(WIDTH if number else DIM, WIDTH))
        if norm == WITH:
            layers.append(nn.BatchNorm1d(WIDTH))
        layers.append(activation())
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 2))
    torch.random.set_rng_state(torch_state)
    return model


def train(model: nn.Module, x: Tensor, labels: Tensor, *, rate: float, seed: int) -> Run:
    """Train with SGD and momentum and return the loss of each mini-batch."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for _ in range(NUM_STEPS):
        rows = torch.randint(NUM_EXAMPLES, (BATCH,), generator=generator)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[rows]), labels[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return Run(rate, losses)


def tune(
    x: Tensor, labels: Tensor, seed: int, *, norm: str, activation: Callable[[], nn.Module]
) -> Run:
    """Return the run with the learning rate of the lowest last losses."""
    runs = [
        train(build_network(seed, norm=norm, activation=activation), x, labels, rate=r, seed=seed)
        for r in RATES
    ]
    return min(runs, key=lambda run: run.last)


def _row(run: Run) -> dict[str, float]:
    return {"best η": run.rate, f"mean loss of the last {LAST} steps": run.last}


def _formula_claim(inputs: Mapping[str, Tensor], seed: int) -> Claim:
    generator = torch.Generator().manual_seed(seed)
    norm = nn.BatchNorm1d(DIM)
    with torch.no_grad():
        norm.weight.copy_(torch.rand(DIM, generator=generator) + 0.5)
        norm.bias.copy_(torch.randn(DIM, generator=generator))
    x = inputs[STANDARD]
    ours = normalise_batch(x, norm.weight, norm.bias)
    difference = float((ours - norm(x)).detach().abs().max())
    mean = float(x.mean(0).abs().max())
    std = float((x.std(0, correction=0) - 1).abs().max())
    return Claim(
        "Standardised inputs have mean 0 and variance 1; batch norm is torch.nn.BatchNorm1d.",
        f"Largest mean {mean:.1g}, largest difference of std from 1 {std:.1g}; largest difference "
        f"from torch {difference:.1g}.",
        mean < 1e-4 and std < 1e-4 and difference < 1e-5,
    )


def _training_claims(
    runs: Mapping[tuple[str, str], Run], sigmoids: Mapping[str, Run]
) -> tuple[Claim, ...]:
    raw, standard = runs[RAW, WITHOUT], runs[STANDARD, WITHOUT]
    raw_normalised, normalised = runs[RAW, WITH], runs[STANDARD, WITH]
    return (
        Claim(
            "Standardised inputs train faster, with a larger η.",
            f"Loss of the last {LAST} steps: {standard.last:.3f} standardised, {raw.last:.3f} raw; "
            f"best η {standard.rate:g} and {raw.rate:g}.",
            standard.last < 0.7 * raw.last and standard.rate > raw.rate,
        ),
        Claim(
            "Batch normalisation trains faster.",
            f"ReLU, standardised inputs: {normalised.last:.3f} with, {standard.last:.3f} without.",
            normalised.last < 0.9 * standard.last,
        ),
        Claim(
            "Batch normalisation of the layers does not replace standardised inputs (ours).",
            f"ReLU with batch norm: {raw_normalised.last:.3f} on raw inputs, {normalised.last:.3f} "
            "on standardised ones. It scales the sum of the inputs, in which the largest dominate.",
            normalised.last < 0.7 * raw_normalised.last,
        ),
        Claim(
            "Batch normalisation keeps sigmoid units from saturating.",
            f"Three sigmoid layers on standardised inputs: loss {sigmoids[WITH].last:.3f} with, "
            f"{sigmoids[WITHOUT].last:.3f} without.",
            sigmoids[WITH].last < 0.7 * sigmoids[WITHOUT].last,
        ),
    )


def _plot(runs: Mapping[tuple[str, str], Run], sigmoids: Mapping[str, Run]) -> Plot:
    shown: dict[str, dict[str, Points]] = {}
    for (name, norm), run in runs.items():
        shown.setdefault(f"ReLU, {name}", {})[norm] = _smooth(run.losses)
    shown["sigmoid, standardised"] = {norm: _smooth(run.losses) for norm, run in sigmoids.items()}
    figure = panels(shown, x_label="step", y_label="training loss")
    caption = "Training loss, the mean of ten steps, each network with its best learning rate."
    return Plot(figure, caption)


def _smooth(losses: list[float], width: int = 10) -> Points:
    return [
        (float(start + width), sum(losses[start : start + width]) / width)
        for start in range(0, len(losses), width)
    ]
