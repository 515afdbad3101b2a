"""Learning rates: constant, decaying, AdaGrad, momentum and Adam on a ravine and on a saddle."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.plots.surface import contours
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.training.optimizers import (
    AdagradConfig,
    AdamConfig,
    OptimizerConfig,
    SgdConfig,
    build_optimizer,
)
from regard.training.schedules import (
    ConstantConfig,
    InverseTimeConfig,
    ScheduleConfig,
    build_schedule,
)

NUM_STEPS = 150
STEPS_PER_EPOCH = 10
"""Updates between two reductions of η/(t + 1), where t is the epoch."""
RATES = [base * 10.0**power for power in (-3, -2, -1, 0) for base in (1, 2, 5)] + [10.0]
"""Learning rates that are tried for each method."""
SADDLE_RATE = 0.1
CURVATURE = 50.0
NOISY_RATE, NOISY_STEPS, LAST = 0.5, 400, 100

CONSTANT, DECAYING, ADAGRAD, MOMENTUM, ADAM = (
    "constant", "η/(t+1)", "AdaGrad", "momentum", "Adam",
)  # fmt: skip

Minimiser = tuple[OptimizerConfig, ScheduleConfig]
METHODS: dict[str, Minimiser] = {
    CONSTANT: (SgdConfig(), ConstantConfig()),
    DECAYING: (SgdConfig(), InverseTimeConfig()),
    ADAGRAD: (AdagradConfig(), ConstantConfig()),
    MOMENTUM: (SgdConfig(momentum=0.9), ConstantConfig()),
    ADAM: (AdamConfig(), ConstantConfig()),
}
"""Optimiser and schedule of this package by name."""


@dataclass(frozen=True)
class Surface:
    """A cost of two parameters, with a start and the cost of the minimum."""

    cost: Callable[[Any, Any], Any]
    start: tuple[float, float]
    lowest: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]


def ravine(x: Any, y: Any) -> Any:
    """Cost that is 50 times steeper across than along: (x² + 50 y²) / 2."""
    # Products, since a power of a large float raises an error where a product is infinite.
    return (x * x + CURVATURE * y * y) / 2


def turned_ravine(x: Any, y: Any) -> Any:
    """Ravine at 45° to the axes."""
    return ravine((x + y) / math.sqrt(2), (y - x) / math.sqrt(2))


def saddle(x: Any, y: Any) -> Any:
    """Cost with a saddle point at the origin and minima at y = ±1."""
    return (x * x - y * y) / 2 + y * y * y * y / 4


SURFACES = {
    "ravine": Surface(ravine, (-4.0, 1.0), 0.0, (-4.6, 1.5), (-1.6, 1.6)),
    "turned ravine": Surface(turned_ravine, (-3.5, -2.0), 0.0, (-4.5, 1.5), (-4.5, 1.5)),
    "saddle": Surface(saddle, (1.0, 0.001), -0.25, (-1.2, 1.2), (-0.5, 1.5)),
}


@dataclass(frozen=True)
class Run:
    """Path and costs of a minimisation, from the start on."""

    rate: float
    path: Points
    costs: list[float]


class Position(nn.Module):
    """The two parameters of a surface."""

    def __init__(self, start: tuple[float, float]) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(start, dtype=torch.float64))


def minimise(
    surface: Surface,
    method: Minimiser,
    *,
    rate: float,
    num_steps: int = NUM_STEPS,
    noise: Tensor | None = None,
) -> Run:
    """Minimise a cost with an optimiser and a schedule of this package.

    Args:
        surface: The cost and its start.
        method: Settings of the optimiser and of the schedule.
        rate: Learning rate η.
        num_steps: Number of updates.
        noise: Added to the gradient of each step, (steps, 2).
    """
    position = Position(surface.start)
    optimizer = build_optimizer(replace(method[0], learning_rate=rate), position)
    schedule = build_schedule(method[1], num_steps)
    path, costs = [surface.start], [float(surface.cost(*surface.start))]
    for step in range(num_steps):
        optimizer.zero_grad()
        surface.cost(*position.values).backward()
        if noise is not None and position.values.grad is not None:
            position.values.grad += noise[step]
        for group in optimizer.param_groups:
            group["lr"] = rate * schedule.factor(step + 1, step // STEPS_PER_EPOCH)
        optimizer.step()
        x, y = position.values.tolist()
        path.append((x, y))
        costs.append(float(surface.cost(x, y)))
    return Run(rate, path, costs)


def by_formula(name: str, surface: Surface, *, rate: float, num_steps: int) -> list[Tensor]:
    """Return the path of a method by its formula, written out."""
    w = torch.tensor(surface.start, dtype=torch.float64)
    squares, velocity, mean, square_mean = (torch.zeros_like(w) for _ in range(4))
    path = [w]
    for t in range(num_steps):
        leaf = w.clone().requires_grad_()
        (g,) = torch.autograd.grad(surface.cost(*leaf), leaf)
        if name == CONSTANT:
            w = w - rate * g
        elif name == DECAYING:
            w = w - rate / (t // STEPS_PER_EPOCH + 1) * g
        elif name == ADAGRAD:
            squares = squares + g**2  # σ is the root of the summed squares
            w = w - rate / squares.sqrt() * g
        elif name == MOMENTUM:
            velocity = 0.9 * velocity + g
            w = w - rate * velocity
        else:
            mean, square_mean = 0.9 * mean + 0.1 * g, 0.999 * square_mean + 0.001 * g**2
            unbiased = mean / (1 - 0.9 ** (t + 1))
            root = (square_mean / (1 - 0.999 ** (t + 1))).sqrt()
            w = w - rate * unbiased / (root + 1e-8)
        path.append(w)
    return path


def tune(surface: Surface, method: Minimiser) -> Run:
    """Return the run of the lowest final cost whose cost never exceeds that of the start."""
    runs = [minimise(surface, method, rate=rate) for rate in RATES]
    return min(
        (run for run in runs if max(run.costs) <= run.costs[0]), key=lambda run: run.costs[-1]
    )


def learning_rates(seed: int, _folder: Path | None = None) -> Findings:
    """Minimise three costs with each method, and one with noisy gradients.

    Args:
        seed: Seed of the noise.
    """
    tuned = {
        name: {method: tune(SURFACES[name], one) for method, one in METHODS.items()}
        for name in ("ravine", "turned ravine")
    }
    left = {
        method: minimise(SURFACES["saddle"], one, rate=SADDLE_RATE)
        for method, one in METHODS.items()
    }
    noisy = minimise_noisy(seed)
    tables = {
        f"{name}: the best of {len(RATES)} learning rates": {
            method: {
                "η": run.rate,
                "steps to a thousandth of the cost": _show(steps_to(run, 1e-3)),
                f"cost after {NUM_STEPS} steps": run.costs[-1],
            }
            for method, run in runs.items()
        }
        for name, runs in tuned.items()
    }
    tables[f"saddle: η = {SADDLE_RATE}"] = {
        method: {"steps to y = 0.5": _show(steps_away(run)), "cost at the end": run.costs[-1]}
        for method, run in left.items()
    }
    tables["noisy gradients"] = {
        name: {f"mean cost of the last {LAST} steps": last_mean(run)} for name, run in noisy.items()
    }
    return Findings(
        tables=tables,
        claims=(_formula_claim(), *_ravine_claims(tuned), _saddle_claim(left), _noise_claim(noisy)),
        plots={
            "learning-rates": _plot_paths("ravine", tuned["ravine"], num_shown=40),
            "learning-rates-saddle": _plot_paths("saddle", left, num_shown=40),
            "learning-rates-costs": _plot_costs({**tuned, "saddle": left}),
            "learning-rates-noise": _plot_noise(noisy),
        },
    )


def minimise_noisy(seed: int) -> dict[str, Run]:
    """Minimise a round bowl with noise of standard deviation 1 on each gradient."""
    bowl = Surface(lambda x, y: (x**2 + y**2) / 2, (4.0, 4.0), 0.0, (-5, 5), (-5, 5))
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(NOISY_STEPS, 2, generator=generator, dtype=torch.float64)
    return {
        name: minimise(bowl, METHODS[name], rate=NOISY_RATE, num_steps=NOISY_STEPS, noise=noise)
        for name in (CONSTANT, DECAYING)
    }


def steps_to(run: Run, share: float) -> int | None:
    """Return the number of steps until the cost is a share of the first one for good."""
    for step in reversed(range(len(run.costs))):
        if not run.costs[step] <= share * run.costs[0]:
            return step + 1 if step + 1 < len(run.costs) else None
    return 0


def steps_away(run: Run) -> int | None:
    """Return the number of steps until y, which is unstable at a saddle, exceeds 0.5."""
    return next((step for step, (_, y) in enumerate(run.path) if abs(y) > 0.5), None)


def last_mean(run: Run) -> float:
    """Return the mean cost of the last steps."""
    return sum(run.costs[-LAST:]) / LAST


def _show(steps: int | None) -> float | str:
    return f"more than {NUM_STEPS}" if steps is None else steps


def _formula_claim() -> Claim:
    surface, difference = SURFACES["turned ravine"], 0.0
    for name, method in METHODS.items():
        ours = torch.stack(by_formula(name, surface, rate=0.02, num_steps=100))
        run = minimise(surface, method, rate=0.02, num_steps=100)
        theirs = torch.tensor(run.path, dtype=torch.float64)
        difference = max(difference, float((ours - theirs).abs().max()))
    return Claim(
        "The optimisers and schedules of torch and of this package follow the formulas.",
        f"Largest difference of the five paths in 100 steps: {difference:.1g}.",
        difference < 1e-9,
    )


def _ravine_claims(tuned: Mapping[str, Mapping[str, Run]]) -> tuple[Claim, ...]:
    steps = {
        name: {method: steps_to(run, 1e-3) for method, run in runs.items()}
        for name, runs in tuned.items()
    }

    def number(name: str, method: str) -> float:
        found = steps[name][method]
        return math.inf if found is None else found

    along, turned = "ravine", "turned ravine"
    return (
        Claim(
            "One rate for all parameters is poor: AdaGrad needs fewer steps in a ravine.",
            f"Steps to a thousandth of the cost, each with its best η: constant "
            f"{_show(steps[along][CONSTANT])}, AdaGrad {_show(steps[along][ADAGRAD])}; in a ravine "
            f"at 45° to the axes {_show(steps[turned][CONSTANT])} and "
            f"{_show(steps[turned][ADAGRAD])}.",
            number(along, ADAGRAD) < number(along, CONSTANT) / 2,
        ),
        Claim(
            "Momentum needs fewer steps than plain gradient descent, also at 45° to the axes.",
            f"Momentum {_show(steps[along][MOMENTUM])} and {_show(steps[turned][MOMENTUM])} steps, "
            f"constant {_show(steps[along][CONSTANT])} and {_show(steps[turned][CONSTANT])}.",
            all(number(name, MOMENTUM) < number(name, CONSTANT) for name in steps),
        ),
    )


def _saddle_claim(left: Mapping[str, Run]) -> Claim:
    steps = {name: steps_away(run) for name, run in left.items()}
    constant = steps[CONSTANT]
    others = [steps[name] for name in (ADAGRAD, MOMENTUM, ADAM)]
    listed = ", ".join(f"{name} {_show(one)}" for name, one in steps.items())
    return Claim(
        "At a saddle the gradient is nearly zero: gradient descent with a fixed rate is slow.",
        f"Steps to leave it with η = {SADDLE_RATE}: {listed}.",
        constant is not None and all(one is not None and one < constant / 2 for one in others),
    )


def _noise_claim(noisy: Mapping[str, Run]) -> Claim:
    means = {name: last_mean(run) for name, run in noisy.items()}
    return Claim(
        "Start large, then reduce: with noisy gradients η/(t+1) gets closer to the minimum.",
        f"Mean cost of the last {LAST} of {NOISY_STEPS} steps: {means[CONSTANT]:.3f} with "
        f"η = {NOISY_RATE}, {means[DECAYING]:.4f} with η/(t+1).",
        means[DECAYING] < means[CONSTANT] / 3,
    )


def _plot_paths(name: str, runs: Mapping[str, Run], *, num_shown: int) -> Plot:
    surface = SURFACES[name]
    paths = {
        f"{method}, η = {run.rate:g}": {"path": run.path[: num_shown + 1]}
        for method, run in runs.items()
    }
    figure = contours(
        surface.cost, paths, x_range=surface.x_range, y_range=surface.y_range, columns=3
    )
    rates = "its best learning rate" if name == "ravine" else "the same learning rate"
    caption = f"The first {num_shown} steps of each method on a {name}, each with {rates}."
    return Plot(figure, caption)


def _plot_costs(runs: Mapping[str, Mapping[str, Run]]) -> Plot:
    series = {
        name: {
            method: [
                (float(step), max(cost - SURFACES[name].lowest, 1e-12))
                for step, cost in enumerate(run.costs)
            ]
            for method, run in of_surface.items()
        }
        for name, of_surface in runs.items()
    }
    figure = panels(series, x_label="step", y_label="cost above the minimum", y_scale="log")
    return Plot(figure, "Cost by step. Costs below 10⁻¹² are shown as 10⁻¹².")


def _plot_noise(noisy: Mapping[str, Run]) -> Plot:
    series = {
        name: [(float(step), cost) for step, cost in enumerate(run.costs)]
        for name, run in noisy.items()
    }
    figure = panels(
        {"noisy gradients": series}, x_label="step", y_label="cost", columns=1, y_scale="log"
    )
    caption = (
        "Cost with noise on each gradient. A constant rate stays at a distance from the minimum; "
        f"η/(t+1), reduced every {STEPS_PER_EPOCH} steps, gets closer."
    )
    return Plot(figure, caption)
