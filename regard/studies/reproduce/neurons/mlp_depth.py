"""Multi-layer perceptrons of several depths on two spirals."""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from regard.models.mlp import ActivationKind, MultiLayerPerceptron
from regard.plots.regions import Classified, decision_regions
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import (
    accuracy,
    count_parameters,
    fit,
    seeded,
)

NUM_POINTS = 400
NUM_TURNS = 2.5
NOISE = 0.03
WIDTH, WIDE = 12, 44
"""Neurons of a hidden layer; of the wide one, for as many parameters as two of the others."""
NUM_STEPS, RATE = 1_500, 0.01

MODELS: dict[str, tuple[tuple[int, ...], ActivationKind]] = {
    "1 layer": ((), "tanh"),
    "2 layers": ((WIDTH,), "tanh"),
    "3 layers": ((WIDTH, WIDTH), "tanh"),
    "2 layers, wide": ((WIDE,), "tanh"),
    "3 layers without σ": ((WIDTH, WIDTH), "identity"),
}
"""Widths of the hidden layers and activation function of each model."""

PARAMETERS, TRAIN, TEST = "parameters", "training accuracy %", "test accuracy %"


def mlp_depth(seed: int, _folder: Path) -> Findings:
    """Train perceptrons of several depths on two spirals.

    Args:
        seed: Seed of the points and of the initial weights.
    """
    points, labels = sample_spirals(seed)
    test_points, test_labels = sample_spirals(seed + 1_000)
    models, rows = {}, {}
    for name, (dims, activation) in MODELS.items():
        model = build(dims, activation, seed=seed)
        # Each step uses all points.
        fit(model, lambda _: (points, labels), num_steps=NUM_STEPS, rate=RATE, seed=seed)
        models[name] = model
        rows[name] = {
            PARAMETERS: count_parameters(model),
            TRAIN: accuracy(model, points, labels),
            TEST: accuracy(model, test_points, test_labels),
        }
    return Findings(
        tables={"Accuracy by depth": rows},
        claims=_claims(rows),
        plots={"mlp-depth": _plot(models, (points, labels), rows)},
    )


def sample_spirals(seed: int) -> tuple[Tensor, Tensor]:
    """Sample points (B, 2) of two interleaved spirals, and their spirals (B,)."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(NUM_POINTS) % 2
    radius = 0.1 + 0.9 * torch.rand(NUM_POINTS, generator=generator).sqrt()
    angle = 2 * math.pi * NUM_TURNS * radius + math.pi * labels
    points = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    return points + NOISE * torch.randn(points.shape, generator=generator), labels


def build(dims: tuple[int, ...], activation: ActivationKind, *, seed: int) -> nn.Module:
    """Return a perceptron with a linear output layer for two classes.

    Args:
        dims: Widths of the hidden layers.
        activation: Activation function of the hidden layers.
        seed: Seed of the weights.
    """
    with seeded(seed):
        hidden = MultiLayerPerceptron(2, dims, activation=activation)
        return nn.Sequential(hidden, nn.Linear(dims[-1] if dims else 2, 2))


def _claims(rows: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    one, two, three, wide, linear = (row[TEST] for row in rows.values())
    return (
        Claim(
            "One layer separates the plane by a line, which does not fit the spirals.",
            f"{one:.1f} % of the test points are correct.",
            one < 75,
        ),
        Claim(
            "Accuracy grows with the number of layers.",
            f"1, 2 and 3 layers: {one:.1f}, {two:.1f} and {three:.1f} %.",
            one < two < three,
        ),
        Claim("Three layers fit the spirals.", f"{three:.1f} % are correct.", three > 95),
        Claim(
            "At nearly the same number of parameters, depth is better than width.",
            f"{rows['3 layers'][PARAMETERS]:.0f} parameters in 3 layers: {three:.1f} %; "
            f"{rows['2 layers, wide'][PARAMETERS]:.0f} in 2 layers: {wide:.1f} %.",
            three > wide,
        ),
        Claim(
            "Three layers without an activation function are one linear layer.",
            f"{linear:.1f} % are correct, as with one layer ({one:.1f} %).",
            abs(linear - one) < 5,
        ),
    )


def _plot(
    models: dict[str, nn.Module], train: tuple[Tensor, Tensor], rows: dict[str, dict[str, float]]
) -> Plot:
    points, labels = (part.numpy() for part in train)

    def panel(model: nn.Module) -> Classified:
        def predict(grid: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return np.asarray(model(torch.tensor(grid, dtype=torch.float32)).softmax(-1)[:, 1])

        return Classified(points, labels, predict)

    shown = list(models)[:4]
    figure = decision_regions(
        {f"{name}: {rows[name][TEST]:.0f} %": panel(models[name]) for name in shown}
    )
    caption = (
        f"Two spirals of {NUM_POINTS} training points and the class that each model predicts at "
        "every position. Above each plot: its test accuracy."
    )
    return Plot(figure, caption)
