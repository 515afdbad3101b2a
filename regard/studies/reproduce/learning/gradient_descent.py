"""Gradient descent on one variable: learning rates, and starts that lead to different minima."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.plots.curves import lines
from regard.plots.inputs import Points
from regard.plots.surface import curve_steps
from regard.studies.reproduce.findings import Claim, Findings, Plot

NUM_EXAMPLES = 20
START = -1.0
NUM_STEPS = 20
RATES = {"too small": 0.02, "good": 0.6, "large": 1.8, "too large": 2.1}
"""Learning rates η, as multiples of 1 / C''."""

FREQUENCY = 2.0
STARTS = (0.4, 1.6, 2.7, 3.6, 4.8)
NUM_STEPS_OF_WAVE = 300
RATE_OF_WAVE = 0.02

Gradient = Callable[[float], float]


@dataclass(frozen=True)
class Model:
    """A model f(x, θ) with one parameter, and data."""

    name: str
    predict: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]
    """df / dθ."""
    x: Tensor
    y: Tensor

    def cost(self, theta: float) -> float:
        """Return the empirical risk C(θ) = 1/|D| Σ (f(x, θ) − y)²."""
        errors = self.predict(self.x, _tensor(theta)) - self.y
        return float((errors**2).mean())

    def gradient(self, theta: float) -> float:
        """Return dC/dθ = 1/|D| Σ 2 (f(x, θ) − y) df/dθ."""
        value = _tensor(theta)
        errors = self.predict(self.x, value) - self.y
        return float((2 * errors * self.slope(self.x, value)).mean())


def descend(gradient: Gradient, start: float, *, rate: float, num_steps: int) -> list[float]:
    """Return θ₀, θ₁, … of gradient descent: θ ← θ − η dC(θ)/dθ."""
    thetas = [start]
    for _ in range(num_steps):
        thetas.append(thetas[-1] - rate * gradient(thetas[-1]))
    return thetas


def gradient_descent(seed: int, _folder: Path | None = None) -> Findings:
    """Descend the costs of a line and of a wave.

    Args:
        seed: Seed of the data.
    """
    line, wave = build_line(seed), build_wave(seed)
    runs = {
        name: descend(line.gradient, START, rate=factor / curvature(line), num_steps=NUM_STEPS)
        for name, factor in RATES.items()
    }
    starts = {
        start: descend(wave.gradient, start, rate=RATE_OF_WAVE, num_steps=NUM_STEPS_OF_WAVE)
        for start in STARTS
    }
    return Findings(
        tables={
            "Learning rates, f(x, θ) = θx": _rate_table(line, runs),
            "Starts, f(x, θ) = sin(θx)": {
                f"θ₀ = {start:g}": {
                    "θ at the end": thetas[-1],
                    "cost at the start": wave.cost(start),
                    "cost at the end": wave.cost(thetas[-1]),
                    "gradient at the end": wave.gradient(thetas[-1]),
                }
                for start, thetas in starts.items()
            },
        },
        claims=(*_rate_claims(line, runs), *_start_claims(wave, starts)),
        plots={
            "gradient-descent": _plot_rates(line, runs),
            "gradient-descent-starts": _plot_starts(wave, starts),
            "gradient-descent-costs": _plot_costs(line, runs),
        },
    )


def build_line(seed: int) -> Model:
    """Return a line through the origin, f(x, θ) = θx, with noisy data of slope 1.5."""
    x, noise = _sample(seed)
    return Model("θx", lambda x, theta: theta * x, lambda x, _: x, x, 1.5 * x + 0.3 * noise)


def build_wave(seed: int) -> Model:
    """Return a wave, f(x, θ) = sin(θx), whose cost has several minima."""
    x, noise = _sample(seed)
    return Model(
        "sin(θx)",
        lambda x, theta: (theta * x).sin(),
        lambda x, theta: x * (theta * x).cos(),
        2 * x,
        (FREQUENCY * 2 * x).sin() + 0.1 * noise,
    )


def best_slope(line: Model) -> float:
    """Return θ* of a line, at the minimum of its cost."""
    return float((line.x * line.y).sum() / (line.x**2).sum())


def curvature(line: Model) -> float:
    """Return the second derivative C'' of the cost of a line."""
    return float(2 * (line.x**2).mean())


def _sample(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.linspace(-2, 2, NUM_EXAMPLES, dtype=torch.float64)
    return x, torch.randn(NUM_EXAMPLES, generator=generator, dtype=torch.float64)


def _tensor(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def _rate_table(line: Model, runs: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    best = best_slope(line)
    return {
        name: {
            "η": RATES[name] / curvature(line),
            "1 − η C''": 1 - RATES[name],
            "θ after 1 step": thetas[1],
            "distance to θ* after 20 steps": abs(thetas[-1] - best),
            "cost after 20 steps": line.cost(thetas[-1]),
        }
        for name, thetas in runs.items()
    }


def _rate_claims(line: Model, runs: dict[str, list[float]]) -> tuple[Claim, ...]:
    best = best_slope(line)
    # The cost of a line is a parabola, on which every step multiplies the distance by 1 − ηC''.
    difference = max(
        abs(theta - best - (START - best) * (1 - RATES[name]) ** step)
        for name, thetas in runs.items()
        for step, theta in enumerate(thetas)
    )
    left = {name: abs(thetas[-1] - best) / abs(START - best) for name, thetas in runs.items()}
    costs = {name: line.cost(thetas[-1]) / line.cost(START) for name, thetas in runs.items()}
    one_step = descend(line.gradient, START, rate=1 / curvature(line), num_steps=1)[-1]
    return (
        Claim(
            "A too small η is slow, a good one reaches the minimum.",
            f"After {NUM_STEPS} steps {100 * left['too small']:.0f} % and "
            f"{100 * left['good']:.2g} % of the distance to θ* are left.",
            left["too small"] > 0.3 and left["good"] < 1e-3,
        ),
        Claim(
            "A too large η diverges.",
            f"The cost after {NUM_STEPS} steps is {costs['too large']:.3g} times that of the "
            f"start; with η = {RATES['large']:g}/C'', {costs['large']:.3g} times.",
            costs["too large"] > 1 > costs["large"],
        ),
        Claim(
            "On a parabola a step multiplies the distance to θ* by 1 − ηC''; η = 1/C'' needs one.",
            f"Largest difference from (1 − ηC'')ᵗ (θ₀ − θ*): {difference:.1g}; after one step "
            f"with 1/C'': {abs(one_step - best):.1g}.",
            difference < 1e-9 and abs(one_step - best) < 1e-9,
        ),
    )


def _start_claims(wave: Model, starts: dict[float, list[float]]) -> tuple[Claim, ...]:
    ends = [thetas[-1] for thetas in starts.values()]
    minima = sorted({round(end, 2) for end in ends})
    costs = [wave.cost(end) for end in ends]
    largest = max(abs(wave.gradient(end)) for end in ends)
    falls = all(
        wave.cost(after) <= wave.cost(before) + 1e-12
        for thetas in starts.values()
        for before, after in zip(thetas, thetas[1:], strict=False)
    )
    return (
        Claim(
            "Different starts give different models.",
            f"{len(starts)} starts end at θ = {', '.join(f'{one:g}' for one in minima)} with "
            f"costs from {min(costs):.2g} to {max(costs):.2g}.",
            len(minima) >= 3 and max(costs) > 5 * min(costs),
        ),
        Claim(
            "Gradient descent goes down and stops where the gradient is zero.",
            f"The cost never rises: {'yes' if falls else 'no'}; largest gradient at an end: "
            f"{largest:.1g}.",
            falls and largest < 1e-3,
        ),
    )


def _points(model: Model, thetas: list[float]) -> Points:
    return [(theta, model.cost(theta)) for theta in thetas]


def _curve(model: Model, low: float, high: float) -> Points:
    return _points(model, torch.linspace(low, high, 200, dtype=torch.float64).tolist())


def _plot_rates(line: Model, runs: dict[str, list[float]]) -> Plot:
    steps = {
        f"{name}, η = {RATES[name] / curvature(line):.2g}": {"steps": _points(line, thetas[:12])}
        for name, thetas in runs.items()
    }
    curve = _curve(line, -1.9, 4.9)
    figure = curve_steps(curve, steps, x_label="θ", y_label="cost C(θ)", columns=2)
    caption = (
        "The first steps of gradient descent on the cost of a line, f(x, θ) = θx. The ring is the "
        "start. A large η jumps over the minimum; a too large one moves away from it."
    )
    return Plot(figure, caption)


def _plot_starts(wave: Model, starts: dict[float, list[float]]) -> Plot:
    steps = {f"θ₀ = {start:g}": _points(wave, thetas[::6]) for start, thetas in starts.items()}
    curve = _curve(wave, 0, 5.5)
    panels = {"f(x, θ) = sin(θx)": steps}
    figure = curve_steps(curve, panels, x_label="θ", y_label="cost C(θ)", columns=1)
    return Plot(
        figure, "Several starts (rings) with the same η end in different minima; every sixth step."
    )


def _plot_costs(line: Model, runs: dict[str, list[float]]) -> Plot:
    # A diverging cost would hide the others.
    highest = 1.5 * line.cost(START)
    series = {
        f"{name}, {RATES[name]:g}/C''": [
            (float(step), cost)
            for step, theta in enumerate(thetas)
            if (cost := line.cost(theta)) <= highest
        ]
        for name, thetas in runs.items()
    }
    return Plot(lines(series, x_label="step", y_label="cost C(θ)"), "Cost by step for each η.")
