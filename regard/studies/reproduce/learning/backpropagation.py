"""Backpropagation by its formulas, compared with autograd and with finite differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.plots.curves import lines
from regard.plots.heatmap import matrices
from regard.studies.reproduce.findings import Claim, Findings, Plot

SMALL_SIZES = (2, 2, 1)
LARGER_SIZES = (5, 7, 6, 4, 3)
STEP = 1e-5
"""Step of finite differences."""


@dataclass(frozen=True)
class Network:
    """A multi-layer perceptron with sigmoid units; the cost is ½ ‖a^L − y‖²."""

    weights: list[Tensor]
    """W^1, …, W^L, each (outputs, inputs)."""
    biases: list[Tensor]


def sigmoid(z: Tensor) -> Tensor:
    """Return σ(z) = 1 / (1 + exp(−z))."""
    return 1 / (1 + (-z).exp())


def sigmoid_slope(z: Tensor) -> Tensor:
    """Return σ'(z) = σ(z) (1 − σ(z))."""
    return sigmoid(z) * (1 - sigmoid(z))


def forward(network: Network, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Forward pass: return z^1, …, z^L and a^0 = x, a^1, …, a^L."""
    sums, activations = [], [x]
    for weight, bias in zip(network.weights, network.biases, strict=True):
        sums.append(weight @ activations[-1] + bias)  # z^l = W^l a^{l-1} + b^l
        activations.append(sigmoid(sums[-1]))  # a^l = σ(z^l)
    return sums, activations


def backward(network: Network, sums: list[Tensor], output_gradient: Tensor) -> list[Tensor]:
    """Backward pass: return δ^1, …, δ^L, where δ^l = ∂C/∂z^l.

    Args:
        network: The network.
        sums: z^1, …, z^L of the forward pass.
        output_gradient: ∇C(y), the gradient of the cost with respect to the output a^L.
    """
    deltas = [sigmoid_slope(sums[-1]) * output_gradient]  # δ^L = σ'(z^L) ∇C(y)
    for layer in reversed(range(len(sums) - 1)):
        upper = network.weights[layer + 1]
        deltas.insert(0, sigmoid_slope(sums[layer]) * (upper.T @ deltas[0]))
    return deltas


def cost(network: Network, x: Tensor, y: Tensor) -> Tensor:
    """Return C = ½ ‖a^L − y‖²."""
    _, activations = forward(network, x)
    return ((activations[-1] - y) ** 2).sum() / 2


def gradients(network: Network, x: Tensor, y: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return ∂C/∂W^l and ∂C/∂b^l of all layers by the two passes."""
    sums, activations = forward(network, x)
    deltas = backward(network, sums, activations[-1] - y)
    # ∂C/∂w_ij^l = a_j^{l-1} δ_i^l, the outer product; zip stops before a^L.
    weights = [torch.outer(d, a) for d, a in zip(deltas, activations, strict=False)]
    return weights, deltas


def autograd(network: Network, x: Tensor, y: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the same gradients by torch.autograd."""
    leaves = [[one.clone().requires_grad_() for one in side] for side in _sides(network)]
    loss = cost(Network(*leaves), x, y)
    found = torch.autograd.grad(loss, [*leaves[0], *leaves[1]])
    num = len(network.weights)
    return list(found[:num]), list(found[num:])


def finite_differences(
    network: Network, x: Tensor, y: Tensor, *, step: float = STEP
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradients as (C(θ + h) − C(θ − h)) / 2h, one parameter after the other."""
    copy = Network(*([one.clone() for one in side] for side in _sides(network)))
    found: tuple[list[Tensor], list[Tensor]] = ([], [])
    for result, side in zip(found, _sides(copy), strict=True):
        for parameter in side:
            slopes = torch.empty_like(parameter)
            flat, values = slopes.view(-1), parameter.view(-1)
            for index in range(len(values)):
                value = float(values[index])
                values[index] = value + step
                above = float(cost(copy, x, y))
                values[index] = value - step
                flat[index] = (above - float(cost(copy, x, y))) / (2 * step)
                values[index] = value
            result.append(slopes)
    return found


def small_network() -> tuple[Network, Tensor, Tensor]:
    """Return a network of two inputs, two hidden units and one output, with an example."""
    weights = [_tensor([[0.5, -1.0], [1.0, 0.5]]), _tensor([[1.0, -2.0]])]
    biases = [_tensor([0.0, -1.0]), _tensor([0.5])]
    return Network(weights, biases), _tensor([1.0, 0.5]), _tensor([1.0])


def random_network(seed: int) -> tuple[Network, Tensor, Tensor]:
    """Return a network of four layers with normal weights, with an example."""
    generator = torch.Generator().manual_seed(seed)

    def sample(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    sizes = list(zip(LARGER_SIZES, LARGER_SIZES[1:], strict=False))
    network = Network(
        [sample(after, before) / before**0.5 for before, after in sizes],
        [0.1 * sample(after) for _, after in sizes],
    )
    return network, sample(LARGER_SIZES[0]), sigmoid(sample(LARGER_SIZES[-1]))


def backpropagation(seed: int, _folder: Path | None = None) -> Findings:
    """Compare three ways to compute gradients on a small and on a larger network.

    Args:
        seed: Seed of the larger network.
    """
    small, larger = small_network(), random_network(seed)
    return Findings(
        tables={
            "By hand: a network of 2, 2 and 1 units": _worked_example(*small),
            "Gradients of the weights by hand": _weight_table(*small),
        },
        claims=_claims(small, larger),
        plots={
            "backpropagation": _plot_gradients(larger),
            "backpropagation-steps": _plot_steps(larger),
        },
    )


Case = tuple[Network, Tensor, Tensor]


def _worked_example(network: Network, x: Tensor, y: Tensor) -> dict[str, dict[str, float]]:
    sums, activations = forward(network, x)
    deltas = backward(network, sums, activations[-1] - y)
    rows = {}
    for layer, names in enumerate((("hidden 1", "hidden 2"), ("output",))):
        for unit, name in enumerate(names):
            z = sums[layer]
            rows[name] = {
                "z": float(z[unit]),
                "a = σ(z)": float(activations[layer + 1][unit]),
                "σ'(z)": float(sigmoid_slope(z)[unit]),
                "δ = ∂C/∂z": float(deltas[layer][unit]),
            }
    return rows


def _weight_table(network: Network, x: Tensor, y: Tensor) -> dict[str, dict[str, float]]:
    ways = {
        "formulas": gradients(network, x, y),
        "autograd": autograd(network, x, y),
        "finite differences": finite_differences(network, x, y),
    }
    return {
        f"w_{i + 1}{j + 1} of layer {layer + 1}": {
            name: float(found[0][layer][i, j]) for name, found in ways.items()
        }
        for layer, weight in enumerate(network.weights)
        for i in range(weight.shape[0])
        for j in range(weight.shape[1])
    }


def _claims(small: Case, larger: Case) -> tuple[Claim, ...]:
    cases = {"small": small, "larger": larger}
    to_autograd = {name: _distance(gradients(*one), autograd(*one)) for name, one in cases.items()}
    to_finite = {
        name: _distance(gradients(*one), finite_differences(*one)) for name, one in cases.items()
    }
    before, after = _costs_of_a_step(larger)
    chain = _bias_distance(larger)
    return (
        Claim(
            "Gradients by the formulas equal those of autograd.",
            f"Largest difference {max(to_autograd.values()):.1g}.",
            max(to_autograd.values()) < 1e-12,
        ),
        Claim(
            "Gradients by the formulas equal finite differences.",
            f"Largest difference {max(to_finite.values()):.1g} with h = {STEP:g}.",
            max(to_finite.values()) < 1e-8,
        ),
        Claim(
            "The first factor ∂z/∂w is the weight's input: a bias has the input 1 and ∂C/∂b = δ.",
            f"Largest difference between δ and autograd's ∂C/∂b: {chain:.1g}.",
            chain < 1e-12,
        ),
        Claim(
            "A small step against the gradient reduces the cost.",
            f"Cost {before:.4f} before, {after:.4f} after a step with η = 0.1.",
            after < before,
        ),
    )


def _bias_distance(case: Case) -> float:
    _, deltas = gradients(*case)
    _, biases = autograd(*case)
    return max(float((d - b).abs().max()) for d, b in zip(deltas, biases, strict=True))


def _costs_of_a_step(case: Case) -> tuple[float, float]:
    network, x, y = case
    slopes = gradients(network, x, y)
    moved = Network(
        *(
            [value - 0.1 * slope for value, slope in zip(side, of_side, strict=True)]
            for side, of_side in zip(_sides(network), slopes, strict=True)
        )
    )
    return float(cost(network, x, y)), float(cost(moved, x, y))


def _distance(one: Sequence[list[Tensor]], other: Sequence[list[Tensor]]) -> float:
    return max(
        float((a - b).abs().max())
        for of_one, of_other in zip(one, other, strict=True)
        for a, b in zip(of_one, of_other, strict=True)
    )


def _plot_gradients(case: Case) -> Plot:
    panels = {
        "formulas": gradients(*case)[0][0],
        "autograd": autograd(*case)[0][0],
        "finite differences": finite_differences(*case)[0][0],
    }
    largest = max(float(one.abs().max()) for one in panels.values())
    shown = {name: (one / largest + 1) / 2 for name, one in panels.items()}
    figure = matrices(shown, x_label="input j", y_label="unit i of the first layer")
    caption = (
        f"∂C/∂w_ij of the first of {len(LARGER_SIZES) - 1} layers, computed in three ways; 0.5 is "
        f"zero, 0 and 1 are ∓{largest:.2g}."
    )
    return Plot(figure, caption)


def _plot_steps(case: Case) -> Plot:
    exact = gradients(*case)
    points = [
        (float(-power), _log(_distance(exact, finite_differences(*case, step=10.0**-power))))
        for power in range(1, 13)
    ]
    figure = lines(
        {"largest difference": points},
        x_label="log₁₀ of the step h of finite differences",
        y_label="log₁₀ of the difference",
    )
    caption = (
        "Difference between finite differences and backpropagation by step h. A large h has the "
        "error of the parabola through the points, a small h that of rounding."
    )
    return Plot(figure, caption)


def _log(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float64).log10())


def _sides(network: Network) -> tuple[list[Tensor], list[Tensor]]:
    return network.weights, network.biases


def _tensor(values: list[float] | list[list[float]]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
