"""Initialisation of weights: variance of activations and gradients by layer, and training."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from regard.models.init import INITIALIZERS, InitConfig, initialize
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot

NUM_EXAMPLES = 200
NUM_LAYERS = 10
FIRST_WIDTH, LAST_WIDTH = 512, 64
WIDTHS = [
    round(FIRST_WIDTH * (LAST_WIDTH / FIRST_WIDTH) ** (layer / NUM_LAYERS))
    for layer in range(NUM_LAYERS + 1)
]
"""Units of each layer. They shrink, so that `fan_in` and `fan_out` differ."""


@dataclass(frozen=True)
class Method:
    """A rule for weights, with the activation function that it is made for."""

    config: InitConfig
    activation: Callable[[Tensor], Tensor]


SMALL, LARGE = "too small", "too large"
XAVIER, FAN_IN, FAN_OUT = "Xavier normal", "Kaiming fan_in", "Kaiming fan_out"
METHODS = {
    SMALL: Method(InitConfig(rule="normal", scale=0.01), torch.tanh),
    LARGE: Method(InitConfig(rule="normal", scale=0.2), torch.relu),
    "Xavier uniform": Method(InitConfig(rule="xavier_uniform"), torch.tanh),
    XAVIER: Method(InitConfig(rule="xavier_normal"), torch.tanh),
    "Xavier with ReLU": Method(InitConfig(rule="xavier_normal"), torch.relu),
    FAN_IN: Method(InitConfig(rule="kaiming_normal"), torch.relu),
    FAN_OUT: Method(InitConfig(rule="kaiming_normal", fan_mode="fan_out"), torch.relu),
}
"""Standard deviations 0.01 and 0.2, and the rules of Glorot and of He."""

NUM_STEPS = 200
BATCH, WIDTH, NUM_CLASSES, TRAINED_LAYERS = 128, 32, 3, 8
RATE = 0.05

Variances = dict[str, list[float]]


class Perceptron(nn.Module):
    """Multi-layer perceptron that keeps the sums z and activations a of its last pass."""

    def __init__(self, widths: Sequence[int], activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*sizes) for sizes in pairwise(widths))
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the last layer, without an activation function."""
        self.sums: list[Tensor] = []
        self.activations: list[Tensor] = []
        for number, layer in enumerate(self.layers, start=1):
            z = layer(x)
            x = self.activation(z) if number < len(self.layers) else z
            self.sums.append(z)
            self.activations.append(x)
        return x


def initialisation(seed: int, _folder: Path | None = None) -> Findings:
    """Measure variances by layer, and train with each rule.

    Args:
        seed: Seed of weights and data.
    """
    variances = {name: measure_variances(method, seed) for name, method in METHODS.items()}
    formulas = compare_formulas(seed)
    spread, losses = train_features(seed)
    trained = {name: train_deep(method, seed) for name, method in METHODS.items()}
    # The layers that are trained have fewer units, for which 0.2 is not too large.
    trained[LARGE] = train_deep(Method(InitConfig(rule="normal", scale=1.0), torch.relu), seed)
    rows = {
        name: {
            "variance of a, first layer": found["activations"][0],
            "variance of a, last hidden layer": found["activations"][-2],
            "variance of δ, last layer": found["gradients"][-1],
            "variance of δ, first layer": found["gradients"][0],
            "loss after training": _show(trained[name][-1]),
        }
        for name, found in variances.items()
    }
    hidden = {
        name: {"largest difference of features": max(spread[name]), "loss": losses[name]}
        for name in spread
    }
    return Findings(
        tables={
            f"{NUM_LAYERS} layers of {FIRST_WIDTH} to {LAST_WIDTH} units": rows,
            "Formula and torch.nn.init: standard deviation of a matrix of 300 × 500": formulas,
            "Eight hidden units that start at zero, and at random": hidden,
        },
        claims=(
            _zero_claim(spread, losses),
            *_variance_claims(variances, trained),
            _formula_claim(formulas),
        ),
        plots={
            "initialisation": _plot_variances(variances),
            "initialisation-zeros": _plot_features(spread),
            "initialisation-training": _plot_training(trained),
        },
    )


def measure_variances(method: Method, seed: int) -> Variances:
    """Return the variance of the activations a and of δ = ∂C/∂z of each layer."""
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = Perceptron(WIDTHS, method.activation)
    initialize(model, method.config)
    output = model(torch.randn(NUM_EXAMPLES, FIRST_WIDTH))
    # The gradient of the cost with respect to the output has variance 1.
    gradients = torch.autograd.grad(output, model.sums, torch.randn_like(output))
    torch.random.set_rng_state(torch_state)
    return {
        "activations": [float(one.detach().var()) for one in model.activations],
        "gradients": [float(one.var()) for one in gradients],
    }


def compare_formulas(seed: int) -> dict[str, dict[str, float]]:
    """Return the standard deviation by the lectures' formula, by torch and by this package."""
    fan_out, fan_in = 300, 500  # inputs are columns
    xavier = math.sqrt(2 / (fan_in + fan_out))
    expected = {
        "xavier_uniform": math.sqrt(6 / (fan_in + fan_out)) / math.sqrt(3),
        "xavier_normal": xavier,
        "kaiming_uniform fan_in": math.sqrt(2) * math.sqrt(3 / fan_in) / math.sqrt(3),
        "kaiming_normal fan_in": math.sqrt(2 / fan_in),
        "kaiming_uniform fan_out": math.sqrt(2) * math.sqrt(3 / fan_out) / math.sqrt(3),
        "kaiming_normal fan_out": math.sqrt(2 / fan_out),
    }
    rows = {}
    for name, std in expected.items():
        rule, _, mode = name.partition(" ")
        ours, theirs = torch.empty(fan_out, fan_in), torch.empty(fan_out, fan_in)
        config = InitConfig(fan_mode="fan_out" if mode == "fan_out" else "fan_in")
        torch_state = torch.random.get_rng_state()
        torch.manual_seed(seed)
        INITIALIZERS[rule](ours, config)
        torch.manual_seed(seed)
        if mode:
            getattr(nn.init, f"{rule}_")(theirs, mode=mode, nonlinearity="relu")
        else:
            getattr(nn.init, f"{rule}_")(theirs)
        torch.random.set_rng_state(torch_state)
        rows[name] = {
            "formula": std,
            "torch.nn.init": float(theirs.std()),
            "this package": float(ours.std()),
            "largest difference of weights": float((ours - theirs).abs().max()),
        }
    return rows


def train_features(seed: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Train eight sigmoid units from zero and from random weights.

    Return the largest difference between the weights of two units after each step, and the loss.
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(64, 2, generator=generator) * 2 - 1
    y = (x[:, :1] * x[:, 1:] > 0).float()  # exclusive or
    inputs = torch.cat([x, torch.ones(64, 1)], dim=1)  # the last weight of a unit is its bias
    spread: dict[str, list[float]] = {}
    losses: dict[str, float] = {}
    for name, scale in (("zeros", 0.0), ("random", 1.0)):
        first = (scale * torch.randn(8, 3, generator=generator)).requires_grad_()
        second = (scale * torch.randn(1, 8, generator=generator)).requires_grad_()
        optimizer = torch.optim.Adam([first, second], lr=0.1)
        spread[name] = []
        for _ in range(NUM_STEPS):
            optimizer.zero_grad()
            loss = mse_loss((inputs @ first.T).sigmoid() @ second.T, y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            weights = first.detach()
            spread[name].append(float((weights[:, None] - weights).abs().max()))
        losses[name] = loss.item()
    return spread, losses


def sample_spirals(seed: int, num: int) -> tuple[Tensor, Tensor]:
    """Return points (B, 2) on three arms of a spiral, and their arms (B,)."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(NUM_CLASSES, (num,), generator=generator)
    radius = torch.rand(num, generator=generator)
    angle = 4 * radius + 2 * math.pi / NUM_CLASSES * labels
    angle = angle + 0.2 * torch.randn(num, generator=generator)
    return 2 * torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), labels


def train_deep(method: Method, seed: int) -> list[float]:
    """Train a deep perceptron on spirals with SGD and return the loss of each step."""
    x, labels = sample_spirals(seed, BATCH)
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = Perceptron([2, *[WIDTH] * (TRAINED_LAYERS - 1), NUM_CLASSES], method.activation)
    initialize(model, method.config)
    torch.random.set_rng_state(torch_state)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    losses = []
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        loss = cross_entropy(model(x), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item() if loss.isfinite() else math.inf)
    return losses


def _show(loss: float) -> float | str:
    return loss if math.isfinite(loss) else "diverged"


def _zero_claim(spread: Mapping[str, list[float]], losses: Mapping[str, float]) -> Claim:
    return Claim(
        "Zeros: all neurons learn the same features.",
        f"Largest difference between the weights of two units in {NUM_STEPS} steps: "
        f"{max(spread['zeros']):.1g} from zeros, {max(spread['random']):.2g} from random weights; "
        f"loss {losses['zeros']:.3f} and {losses['random']:.3f}.",
        max(spread["zeros"]) < 1e-6 and losses["random"] < 0.7 * losses["zeros"],
    )


def _variance_claims(
    variances: Mapping[str, Variances], trained: Mapping[str, list[float]]
) -> tuple[Claim, ...]:
    # Factor by which the variance changes from the last layer to the first, and vice versa.
    back = {name: one["gradients"][0] / one["gradients"][-1] for name, one in variances.items()}
    along = {
        name: one["activations"][-2] / one["activations"][0] for name, one in variances.items()
    }
    losses = {name: one[-1] for name, one in trained.items()}
    per_layer = [one ** (1 / (NUM_LAYERS - 2)) for one in (along[XAVIER], along[FAN_IN])] + [
        one ** (1 / (NUM_LAYERS - 1)) for one in (back[XAVIER], back[FAN_OUT])
    ]
    good = [losses[name] for name in (XAVIER, FAN_IN, FAN_OUT)]
    return (
        Claim(
            "Too small: gradients vanish.",
            f"The variance of δ in the first layer is {back[SMALL]:.1g} times that in the last; "
            f"loss after training {losses[SMALL]:.3f}, chance is {math.log(NUM_CLASSES):.3f}.",
            back[SMALL] < 1e-6 and losses[SMALL] > 1.0,
        ),
        Claim(
            "Too large: gradients explode.",
            f"The variance of δ in the first layer is {back[LARGE]:.1g} times that in the last.",
            back[LARGE] > 1e3,
        ),
        Claim(
            "Xavier (tanh) and Kaiming (ReLU): nearly equal variance in every layer.",
            f"Factor per layer of activations: Xavier {per_layer[0]:.2f}, fan_in "
            f"{per_layer[1]:.2f}; of gradients: Xavier {per_layer[2]:.2f}, fan_out "
            f"{per_layer[3]:.2f}. Too small and too large: {back[SMALL] ** (1 / 9):.2g} and "
            f"{back[LARGE] ** (1 / 9):.2g}.",
            all(0.5 < one < 2 for one in per_layer),
        ),
        Claim(
            "fan_in keeps the variance of activations, fan_out that of gradients.",
            f"Where layers shrink from {FIRST_WIDTH} to {LAST_WIDTH} units, activations change by "
            f"{along[FAN_IN]:.2g} with fan_in and {along[FAN_OUT]:.2g} with fan_out, gradients by "
            f"{back[FAN_IN]:.2g} and {back[FAN_OUT]:.2g}.",
            abs(math.log(along[FAN_IN])) < abs(math.log(along[FAN_OUT]))
            and abs(math.log(back[FAN_OUT])) < abs(math.log(back[FAN_IN])),
        ),
        Claim(
            "With equal variances a deep network learns.",
            f"Loss after {NUM_STEPS} steps: {', '.join(f'{one:.3f}' for one in good)} with "
            f"Xavier, fan_in and fan_out; {losses[SMALL]:.3f} and {_show(losses[LARGE])} with "
            "too small and too large weights.",
            max(good) < 0.7 * min(losses[SMALL], losses[LARGE]),
        ),
    )


def _formula_claim(formulas: Mapping[str, Mapping[str, float]]) -> Claim:
    weights = max(row["largest difference of weights"] for row in formulas.values())
    relative = max(abs(row["torch.nn.init"] / row["formula"] - 1) for row in formulas.values())
    return Claim(
        "The formulas are those of torch.nn.init.",
        f"Sampled standard deviations differ from the formulas by at most {100 * relative:.1f} %; "
        f"weights of this package from torch's by {weights:.1g}.",
        relative < 0.02 and weights < 1e-6,
    )


def _plot_variances(variances: Mapping[str, Variances]) -> Plot:
    titles = {"activations": "activations a", "gradients": "gradients δ = ∂C/∂z"}
    shown = {
        title: {
            name: [(float(layer), value) for layer, value in enumerate(found[key], start=1)]
            for name, found in variances.items()
            if name != "Xavier uniform"
        }
        for key, title in titles.items()
    }
    figure = panels(shown, x_label="layer", y_label="variance", columns=2, y_scale="log")
    caption = (
        "Variance by layer before training. Signals go from layer 1 upwards, gradients from the "
        "last layer down. 'Too small' is std 0.01 with tanh, 'too large' std 0.2 with ReLU. Xavier "
        "uniform has the same variances as Xavier normal."
    )
    return Plot(figure, caption)


def _plot_features(spread: Mapping[str, list[float]]) -> Plot:
    series = {
        name: [(float(i), value) for i, value in enumerate(one, 1)] for name, one in spread.items()
    }
    figure = panels(
        {"eight sigmoid units": series},
        x_label="step",
        y_label="difference of features",
        columns=1,
    )
    return Plot(figure, "Largest difference between the input weights of two hidden units.")


def _plot_training(trained: Mapping[str, list[float]]) -> Plot:
    highest = 2 * math.log(NUM_CLASSES)
    series = {
        name: [(float(i), min(value, highest)) for i, value in enumerate(one, 1)]
        for name, one in trained.items()
        if name != "Xavier uniform"
    }
    title = f"{TRAINED_LAYERS} layers of {WIDTH} units"
    figure = panels({title: series}, x_label="step", y_label="training loss", columns=1)
    return Plot(figure, f"Training loss on three spirals, cut off at {highest:.1f}.")
