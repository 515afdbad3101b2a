"""Nadaraya–Watson kernel regression: attention pooling with a Gaussian kernel.

Nadaraya 1964, Watson 1964: a prediction is an average of the training targets, weighted by their
distance. The experiment, its sizes and its learning rates are those of Dive into Deep Learning.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import mse_loss
from torch.optim import SGD

from regard.attention.pooling import KernelRegression
from regard.plots.curves import lines
from regard.plots.heatmap import matrices
from regard.plots.inputs import Points
from regard.studies.reproduce.findings import Claim, Findings, Plot

AVERAGE, FIXED, LEARNED = "average pooling", "fixed width", "learned width"
SLOWER = "smaller steps"


@dataclass(frozen=True)
class _Data:
    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def others(self) -> Tensor:
        """Mask that excludes each point from its own prediction."""
        return ~torch.eye(len(self.x), dtype=torch.bool)


def nadaraya_watson(seed: int, _folder: Path | None = None) -> Findings:
    """Fit the regressions and compare them.

    Args:
        seed: Seed of the training points.
    """
    data = _sample_data(seed)
    models = {
        AVERAGE: _kernel(0.0),
        FIXED: _kernel(1.0),
        LEARNED: _train(data, rate=0.5, num_steps=5),
        SLOWER: _train(data, rate=0.05, num_steps=20),
    }
    numbers = {name: _measure(model, data) for name, model in models.items()}
    return Findings(
        tables={"Errors": numbers},
        claims=_claims(numbers, models, data),
        plots={
            "nadaraya-watson": _fits(models, data),
            "nadaraya-watson-weights": _weights(models, data),
        },
    )


def _sample_data(seed: int) -> _Data:
    generator = torch.Generator().manual_seed(seed)
    # Double precision: two points may be too close for single precision.
    x = (5 * torch.rand(50, generator=generator, dtype=torch.float64)).sort().values
    test_x = torch.arange(0, 5, 0.1, dtype=torch.float64)
    noise = 0.5 * torch.randn(50, generator=generator, dtype=torch.float64)
    return _Data(x, _curve(x) + noise, test_x, _curve(test_x))


def _curve(x: Tensor) -> Tensor:
    return 2 * x.sin() + x**0.8


def _kernel(sharpness: float) -> KernelRegression:
    """Return a regression with fixed w; with w = 0, all weights are equal."""
    model = KernelRegression(is_learned=False)
    next(model.parameters()).fill_(sharpness)
    return model


def _train(data: _Data, *, rate: float, num_steps: int) -> KernelRegression:
    model = KernelRegression(is_learned=True)
    optimizer = SGD(model.parameters(), lr=rate)
    for _ in range(num_steps):
        optimizer.zero_grad()
        predicted, _ = model(data.x, data.x, data.y, mask=data.others)
        loss = mse_loss(predicted, data.y, reduction="sum")
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model.requires_grad_(False)


def _sharpness(model: KernelRegression) -> float:
    # The kernel is even: w and -w are equivalent.
    return abs(float(next(model.parameters())))


def _measure(model: KernelRegression, data: _Data) -> dict[str, float]:
    fitted, _ = model(data.test_x, data.x, data.y)
    train, _ = model(data.x, data.x, data.y)
    left_out, _ = model(data.x, data.x, data.y, mask=data.others)
    return {
        "w": _sharpness(model),
        "test error": float(mse_loss(fitted, data.test_y)),
        "training error": float(mse_loss(train, data.y)),
        "left-out error": float(mse_loss(left_out, data.y)),
        "roughness": float(fitted.diff(n=2).abs().mean()),
    }


def _claims(
    numbers: dict[str, dict[str, float]], models: dict[str, KernelRegression], data: _Data
) -> tuple[Claim, ...]:
    average, fixed, learned = (numbers[name] for name in (AVERAGE, FIXED, LEARNED))
    test, train, rough = "test error", "training error", "roughness"
    _, own_weights = models[LEARNED](data.x, data.x, data.y)
    num_own = int((own_weights.argmax(-1) == torch.arange(len(data.x))).sum())
    return (
        Claim(
            "A kernel has a lower test error than the average.",
            f"{fixed[test]:.3f} with w = 1, {average[test]:.3f} for the average",
            fixed[test] < average[test],
        ),
        Claim(
            "A learned width has a lower test error.",
            f"{learned[test]:.3f} learned, {fixed[test]:.3f} with w = 1",
            learned[test] < fixed[test],
        ),
        Claim(
            "The learned kernel is narrower: w > 1.", f"w = {learned['w']:.3g}", learned["w"] > 1
        ),
        Claim(
            "A learned width has a lower training error.",
            f"{learned[train]:.3f} learned, {fixed[train]:.3f} with w = 1",
            learned[train] < fixed[train],
        ),
        Claim(
            "The learned curve is less smooth.",
            f"roughness {learned[rough]:.4f} learned, {fixed[rough]:.4f} with w = 1",
            learned[rough] > fixed[rough],
        ),
        Claim(
            "If queries are keys, each attends most to itself.",
            f"{num_own} of {len(data.x)} training points",
            num_own == len(data.x),
        ),
    )


def _fits(models: dict[str, KernelRegression], data: _Data) -> Plot:
    learned = f"learned, w = {_sharpness(models[LEARNED]):.3g}"
    names = {"average": AVERAGE, "fixed, w = 1": FIXED, learned: LEARNED}
    curves = {
        shown: _points(data.test_x, models[name](data.test_x, data.x, data.y)[0])
        for shown, name in names.items()
    }
    figure = lines(
        {**curves, "truth": _points(data.test_x, data.test_y)},
        x_label="x",
        y_label="y",
        dots={"training points": _points(data.x, data.y)},
    )
    caption = (
        "The average ignores x; w = 1 smooths the curve; the learned kernel follows the noise."
    )
    return Plot(figure, caption)


def _points(x: Tensor, y: Tensor) -> Points:
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _weights(models: dict[str, KernelRegression], data: _Data) -> Plot:
    learned = models[LEARNED]
    width = f"w = {_sharpness(learned):.3g}"
    panels = {
        "test points, w = 1": models[FIXED](data.test_x, data.x, data.y)[1],
        f"test points, {width}": learned(data.test_x, data.x, data.y)[1],
        f"training points, {width}": learned(data.x, data.x, data.y)[1],
    }
    figure = matrices(panels, x_label="keys: training points by x", y_label="queries by x")
    caption = (
        "Attention weights, one row per query. A wider kernel averages more points; if queries "
        "and keys are the same points, a narrow kernel is nearly the identity."
    )
    return Plot(figure, caption)
