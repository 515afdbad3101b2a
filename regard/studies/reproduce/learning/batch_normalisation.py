"""Standardised inputs and batch normalisation, each with and without."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot

NUM_EXAMPLES, NUM_VALID, DIM, WIDTH, NUM_HIDDEN = 512, 1_000, 10, 32, 3
NUM_STEPS, BATCH, LAST = 150, 64, 20
INTERVAL = 10
"""Steps between two points of a curve."""
RATES = [10.0**power for power in range(-4, 2)]
"""Learning rates that are tried for each network."""
EPSILON = 1e-5

RAW, STANDARD = "raw inputs", "standardised inputs"
WITHOUT, WITH = "without batch norm", "with batch norm"


@dataclass(frozen=True)
class Data:
    """Training and validation examples."""

    x: Tensor
    """(B, D)."""
    labels: Tensor
    valid_x: Tensor
    valid_labels: Tensor

    def standardise(self) -> "Data":
        """Return the same examples with standardised inputs."""
        x, valid_x = (standardise(one, self.x) for one in (self.x, self.valid_x))
        return replace(self, x=x, valid_x=valid_x)


@dataclass(frozen=True)
class Run:
    """Losses of a training with a learning rate."""

    rate: float
    losses: list[float]
    """Training loss of every step."""
    valid: list[float]
    """Validation loss, every `INTERVAL` steps."""

    @property
    def last(self) -> float:
        """Mean loss of the last steps; infinite if training diverged."""
        mean = sum(self.losses[-LAST:]) / LAST
        return mean if math.isfinite(mean) else math.inf


def standardise(x: Tensor, train: Tensor) -> Tensor:
    """Standardise each dimension: x_i ← (x_i − m_i) / σ_i.

    Args:
        x: (B, D).
        train: Training inputs (B, D), whose m and σ are used.
    """
    return (x - train.mean(0)) / train.std(0, correction=0)


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
    raw = sample_data(seed)
    data = {RAW: raw, STANDARD: raw.standardise()}
    inputs = {name: one.x for name, one in data.items()}
    runs = {
        (name, norm): tune(data[name], seed, norm=norm, activation=nn.ReLU)
        for name, norm in product(data, (WITHOUT, WITH))
    }
    sigmoids = {
        norm: tune(data[STANDARD], seed, norm=norm, activation=nn.Sigmoid)
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
        tables={"Loss with the best learning rate": rows, "Inputs": moments},
        claims=(_formula_claim(inputs, seed), *_training_claims(runs, sigmoids)),
        plots={"batch-normalisation": _plot(runs, sigmoids)},
    )


def sample_data(seed: int) -> Data:
    """Return examples with badly scaled inputs."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(NUM_EXAMPLES, DIM, generator=generator)
    scales = torch.logspace(-2, 2, DIM)[torch.randperm(DIM, generator=generator)]
    shifts = torch.randn(DIM, generator=generator)
    valid = torch.randn(NUM_VALID, DIM, generator=generator)
    x, valid_x = (scales * (one + shifts) for one in (values, valid))
    return Data(x, _label(values), valid_x, _label(valid))


def _label(values: Tensor) -> Tensor:
    return (values[:, :5].sum(1) + values[:, 5:].prod(1).sign() > 0).long()


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


def train(model: nn.Module, data: Data, *, rate: float, seed: int) -> Run:
    """Train with SGD and momentum and return the losses."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    run = Run(rate, [], [])
    for step in range(1, NUM_STEPS + 1):
        rows = torch.randint(NUM_EXAMPLES, (BATCH,), generator=generator)
        optimizer.zero_grad()
        loss = cross_entropy(model(data.x[rows]), data.labels[rows])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        run.losses.append(loss.item())
        if step % INTERVAL == 0:
            run.valid.append(_validate(model, data))
    return run


@torch.no_grad()
def _validate(model: nn.Module, data: Data) -> float:
    model.eval()
    loss = cross_entropy(model(data.valid_x), data.valid_labels).item()
    model.train()
    return loss


def tune(data: Data, seed: int, *, norm: str, activation: Callable[[], nn.Module]) -> Run:
    """Return the run with the learning rate of the lowest last training losses."""
    runs = [
        train(build_network(seed, norm=norm, activation=activation), data, rate=rate, seed=seed)
        for rate in RATES
    ]
    return min(runs, key=lambda run: run.last)


def _row(run: Run) -> dict[str, float]:
    return {
        "best η": run.rate,
        f"training loss, last {LAST} steps": run.last,
        "validation loss, lowest": min(run.valid),
        "validation loss, last": run.valid[-1],
    }


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
    by_panel: dict[str, dict[str, Run]] = {}
    for (name, norm), run in runs.items():
        by_panel.setdefault(f"ReLU, {name}", {})[norm] = run
    by_panel["sigmoid, standardised"] = dict(sigmoids)
    shown = {title: _curves(panel) for title, panel in by_panel.items()}
    caption = (
        f"Training loss, the mean of {INTERVAL} steps, and loss of {NUM_VALID:,} validation "
        "examples, each network with the learning rate of its lowest training loss."
    )
    return Plot(panels(shown, x_label="step", y_label="loss"), caption)


def _curves(runs: Mapping[str, Run]) -> dict[str, Points]:
    curves: dict[str, Points] = {}
    for norm, run in runs.items():
        means = [
            sum(run.losses[start : start + INTERVAL]) / INTERVAL
            for start in range(0, NUM_STEPS, INTERVAL)
        ]
        curves[f"{norm}, training"] = _by_step(means)
        curves[f"{norm}, validation"] = _by_step(run.valid)
    return curves


def _by_step(losses: Sequence[float]) -> Points:
    return [(float(INTERVAL * number), loss) for number, loss in enumerate(losses, start=1)]
