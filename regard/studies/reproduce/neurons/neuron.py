"""One neuron, y = σ(w · x + b): activation functions, and the logical functions it can learn."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from regard.models.mlp import ACTIVATIONS, MultiLayerPerceptron
from regard.plots.curves import lines
from regard.plots.regions import Classified, decision_regions
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import seeded

INPUTS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TARGETS = {
    "AND": torch.tensor([0.0, 0.0, 0.0, 1.0]),
    "OR": torch.tensor([0.0, 1.0, 1.0, 1.0]),
    "XOR": torch.tensor([0.0, 1.0, 1.0, 0.0]),
}
"""Logical functions of two inputs."""

NUM_STEPS, RATE = 2_000, 1.0
HIDDEN_DIM = 4
NUM_LINES = 100_000
CURVES = ("sigmoid", "tanh", "relu")
RIGHT, LOSS = "correct of 4", "loss"


class Neuron(torch.nn.Module):
    """One neuron with weights w, a bias b and the sigmoid as its activation function."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(0.1 * torch.randn(2, generator=generator))
        self.b = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """Map inputs (B, 2) to outputs (B,)."""
        return torch.sigmoid(x @ self.w + self.b)


class HiddenLayer(torch.nn.Module):
    """A hidden layer of neurons before one neuron."""

    def __init__(self, activation: str, seed: int) -> None:
        super().__init__()
        with seeded(seed):
            self.hidden = MultiLayerPerceptron(2, (HIDDEN_DIM,), activation=activation)  # type: ignore[arg-type]
            self.output = MultiLayerPerceptron(HIDDEN_DIM, (1,), activation="sigmoid")

    def forward(self, x: Tensor) -> Tensor:
        """Map inputs (B, 2) to outputs (B,)."""
        output: Tensor = self.output(self.hidden(x))
        return output[:, 0]


def neuron(seed: int, _folder: Path) -> Findings:
    """Train a neuron on AND, OR and XOR, and a hidden layer on XOR.

    Args:
        seed: Seed of the initial weights.
    """
    models = {
        **{f"{name}, one neuron": Neuron(torch.Generator().manual_seed(seed)) for name in TARGETS},
        "XOR, hidden layer of tanh": HiddenLayer("tanh", seed),
        "XOR, hidden layer without σ": HiddenLayer("identity", seed),
    }
    losses = {name: descend(model, TARGETS[name.split(",")[0]]) for name, model in models.items()}
    rows = {
        name: {RIGHT: count_right(model, TARGETS[name.split(",")[0]]), LOSS: losses[name]}
        for name, model in models.items()
    }
    best = best_line(TARGETS["XOR"], seed)
    return Findings(
        tables={"Logical functions": rows, "Weights": _weights(models)},
        claims=_claims(rows, best),
        plots={"neuron-activations": _activations(), "neuron-regions": _regions(models)},
    )


def descend(model: torch.nn.Module, targets: Tensor) -> float:
    """Minimise the cross-entropy by gradient descent on all four inputs; return the last loss."""
    for _ in range(NUM_STEPS):
        loss = binary_cross_entropy(model(INPUTS), targets)
        model.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.sub_(RATE * parameter.grad)
    return loss.item()


def count_right(model: torch.nn.Module, targets: Tensor) -> int:
    """Return the number of inputs on whose side of 0.5 the output is."""
    with torch.no_grad():
        return int(((model(INPUTS) > 0.5).float() == targets).sum())


def best_line(targets: Tensor, seed: int) -> int:
    """Return the largest number of inputs that one of many random lines classifies correctly."""
    generator = torch.Generator().manual_seed(seed)
    w, b = (
        torch.randn(NUM_LINES, 2, generator=generator),
        torch.randn(NUM_LINES, generator=generator),
    )
    outputs = (INPUTS @ w.T + b > 0).float()
    return int((outputs == targets[:, None]).sum(0).max())


def _weights(models: dict[str, torch.nn.Module]) -> dict[str, dict[str, float]]:
    return {
        name.split(",")[0]: {"w₁": one.w[0].item(), "w₂": one.w[1].item(), "b": one.b.item()}
        for name, one in models.items()
        if isinstance(one, Neuron)
    }


def _claims(rows: dict[str, dict[str, float]], best: int) -> tuple[Claim, ...]:
    both, either, xor, tanh, linear = rows.values()
    return (
        Claim(
            "One neuron learns AND and OR: a line separates the classes.",
            f"{both[RIGHT]} and {either[RIGHT]} of 4 inputs are correct.",
            both[RIGHT] == either[RIGHT] == 4,
        ),
        Claim(
            "One neuron cannot learn XOR; the loss stays at ln 2 = 0.693.",
            f"{xor[RIGHT]} of 4 are correct; the loss is {xor[LOSS]:.3f}.",
            xor[RIGHT] < 4 and abs(xor[LOSS] - np.log(2)) < 0.01,
        ),
        Claim(
            "No line separates XOR.",
            f"The best of {NUM_LINES:,} random lines has {best} of 4 correct.",
            best < 4,
        ),
        Claim(
            "A hidden layer learns XOR.",
            f"{tanh[RIGHT]} of 4 are correct; the loss is {tanh[LOSS]:.4f}.",
            tanh[RIGHT] == 4 and tanh[LOSS] < 0.05,
        ),
        Claim(
            "A hidden layer without an activation function is no better than one neuron.",
            f"{linear[RIGHT]} of 4 are correct; the loss is {linear[LOSS]:.3f}.",
            linear[RIGHT] < 4 and abs(linear[LOSS] - np.log(2)) < 0.01,
        ),
    )


def _activations() -> Plot:
    z = torch.linspace(-4, 4, 161)
    figure = lines(
        {
            name: list(zip(z.tolist(), ACTIVATIONS[name](z).tolist(), strict=True))
            for name in CURVES
        },
        x_label="z = w · x + b",
        y_label="σ(z)",
    )
    figure.axes[0].set_ylim(-1.2, 2.2)
    return Plot(figure, "Activation functions: the output of a neuron by its weighted input.")


def _regions(models: dict[str, torch.nn.Module]) -> Plot:
    def panel(name: str, model: torch.nn.Module) -> Classified:
        def predict(grid: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return np.asarray(model(torch.tensor(grid, dtype=torch.float32)))

        return Classified(INPUTS.numpy(), TARGETS[name.split(",")[0]].numpy(), predict)

    shown = list(models.items())[:4]
    figure = decision_regions(
        {name.replace("layer of ", ""): panel(name, model) for name, model in shown}
    )
    caption = (
        "Regions where the output is below 0.5 (blue) and above (orange), and the four inputs. "
        "One neuron divides the plane by a line. On XOR its weights vanish, so its output is 0.5 "
        "everywhere; XOR needs a hidden layer."
    )
    return Plot(figure, caption)
