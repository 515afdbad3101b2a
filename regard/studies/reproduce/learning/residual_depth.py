"""Plain and residual networks by depth: training and test error, gradient of the first layer."""

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from torch import nn

from regard.core.device import find_device, seed_everything
from regard.core.files import read_json_lines
from regard.data.example import Example
from regard.data.splits import Splits
from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.tasks.base import Task
from regard.tasks.table import task_class
from regard.training.display import Display
from regard.training.loop import Trainer, Validation

DATA = "shapes:4000"
DEPTHS = {20: 3, 44: 7}
"""Blocks of each of the three stages by number of layers: 6 n + 2 layers have n blocks."""
SETTINGS = (
    "data.batch.max_sentences=50", "model.encoder.stem=large", "model.encoder.widths=[8, 16, 32]",
    "train.label_smoothing=0", "train.max_epochs=12", "train.log_every=1000",
)  # fmt: skip
"""Overrides of `he2016-laptop`: feature maps of 8 x 8 cells at first, and half of the channels."""
NUM_TRAIN = 500
"""Training images of the training error, which are classified without augmentation."""


@dataclass(frozen=True)
class Trained:
    """Errors in percent after each epoch, and the gradient norm of each layer at the start."""

    training_errors: list[float]
    test_errors: list[float]
    gradients: list[float]


def residual_depth(seed: int, _folder: Path | None = None) -> Findings:
    """Train plain and residual networks of several depths.

    Args:
        seed: Seed of the weights and of the order of examples.
    """
    trained = {
        (kind, layers): train_network(kind, layers, seed)
        for kind, layers in product(("plain", "residual"), DEPTHS)
    }
    rows = {
        f"{kind}, {layers} layers": {
            "training error %": one.training_errors[-1],
            "test error %": one.test_errors[-1],
            "gradient norm, first layer": one.gradients[0],
            "gradient norm, last convolution": one.gradients[-1],
        }
        for (kind, layers), one in trained.items()
    }
    return Findings(
        tables={"Errors after training, and gradients before": rows},
        claims=_claims(trained),
        plots={
            "residual-depth": _plot_errors(trained),
            "residual-depth-gradients": _plot_gradients(trained),
        },
    )


def train_network(kind: str, layers: int, seed: int) -> Trained:
    """Train a network on rendered shapes."""
    blocks = f"model.encoder.blocks={[DEPTHS[layers]] * 3}"
    is_residual = f"model.encoder.is_residual={str(kind == 'residual').lower()}"
    settings = (*SETTINGS, blocks, is_residual, f"seed={seed}")
    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            data=(DATA,), recipe="he2016-laptop", settings=settings, out=Path(folder), device="cpu"
        )
        task, splits = prepare(request)
        gradients = gradient_norms(task, splits)
        rows = train_with_errors(task, splits, Path(folder), num_train=NUM_TRAIN)
    return Trained(
        [row["training_error"] for row in rows], [row["error"] for row in rows], gradients
    )


def prepare(request: Request) -> tuple[Task[Any], Splits]:
    """Return an untrained task and its data."""
    recipe, splits = request.resolve()
    seed_everything(recipe.seed)
    device = find_device(request.device)
    return task_class(recipe).prepare(recipe, splits.train, device=device), splits


def train_with_errors(
    task: Task[Any], splits: Splits, folder: Path, *, num_train: int
) -> list[dict[str, Any]]:
    """Train and return the training and the test error of each epoch.

    Args:
        task: The model and its settings.
        splits: Training and test data.
        folder: Folder of the training log.
        num_train: Training images of the training error.
    """
    trainer = Trainer(
        task.model,
        task.recipe.train,
        folder,
        batches=task.training_batches(splits.train),
        loss=task.training_loss(splits.train),
        validate=_errors(task, splits.train[:num_train], splits.test),
        display=Display(),
    )
    seed_everything(task.recipe.seed)
    trainer.run()
    log = read_json_lines(folder / "journal.jsonl")
    return [row for row in log if row["kind"] == "valid"]


def _errors(
    task: Task[Any], seen_images: Sequence[Example], unseen_images: Sequence[Example]
) -> Callable[[], Validation]:
    """Return a function that measures the training and the test error in percent."""
    train, test = task.validation(seen_images), task.validation(unseen_images)

    def validate() -> Validation:
        seen, unseen = train().metrics, test().metrics
        errors = {"training_error": 100 - seen["accuracy"], "error": 100 - unseen["accuracy"]}
        # Only the curve is used: no weights are selected.
        return Validation(-errors["training_error"], {**errors, "training_loss": seen["loss"]})

    return validate


def gradient_norms(task: Task[Any], splits: Splits) -> list[float]:
    """Return the gradient norm of the weights of each 3 x 3 convolution, for one batch."""
    task.model.train()
    buffers = [buffer.clone() for buffer in task.model.buffers()]
    batch = next(iter(task.training_batches(splits.train).epoch(0)))
    loss = task.training_loss(splits.train)(batch)
    (loss.total / loss.count).backward()  # type: ignore[no-untyped-call]
    layers = [
        one for one in task.model.modules() if isinstance(one, nn.Conv2d) and one.kernel_size[0] > 1
    ]
    norms = [float(one.weight.grad.norm()) for one in layers if one.weight.grad is not None]
    task.model.zero_grad()
    for buffer, before in zip(task.model.buffers(), buffers, strict=True):
        buffer.copy_(before)
    return norms


Networks = Mapping[tuple[str, int], Trained]


def _claims(trained: Networks) -> tuple[Claim, ...]:
    shallow, deep = DEPTHS
    plain, residual = trained["plain", deep], trained["residual", deep]
    plain_shallow, residual_shallow = trained["plain", shallow], trained["residual", shallow]

    def errors(one: Trained) -> str:
        return f"{one.training_errors[-1]:.1f} and {one.test_errors[-1]:.1f} %"

    return (
        Claim(
            f"{deep} plain layers are worse than {shallow} on training and on test images.",
            f"Training and test error: {errors(plain)} with {deep} layers, "
            f"{errors(plain_shallow)} with {shallow}.",
            plain.training_errors[-1] > plain_shallow.training_errors[-1]
            and plain.test_errors[-1] > plain_shallow.test_errors[-1],
        ),
        Claim(
            f"{deep} residual layers are better than {deep} plain layers on both.",
            f"Training and test error: {errors(residual)} residual, {errors(plain)} plain.",
            residual.training_errors[-1] < plain.training_errors[-1]
            and residual.test_errors[-1] < plain.test_errors[-1],
        ),
        Claim(
            "Depth harms residual networks less than plain ones.",
            f"From {shallow} to {deep} layers, training and test error change by "
            f"{_changes(residual_shallow, residual)} residual and by "
            f"{_changes(plain_shallow, plain)} plain.",
            all(
                after_residual - before_residual < after_plain - before_plain
                for before_residual, after_residual, before_plain, after_plain in zip(
                    _last(residual_shallow),
                    _last(residual),
                    _last(plain_shallow),
                    _last(plain),
                    strict=True,
                )
            ),
        ),
        Claim(
            "Adding the input of a block to its output improves the gradient flow.",
            f"Gradient norm of the first convolution, relative to the last one: "
            f"{_ratio(residual):.3g} residual and {_ratio(plain):.3g} plain, {deep} layers.",
            abs(math.log(_ratio(residual))) < abs(math.log(_ratio(plain))),
        ),
    )


def _last(one: Trained) -> tuple[float, float]:
    return one.training_errors[-1], one.test_errors[-1]


def _changes(before: Trained, after: Trained) -> str:
    train, test = (b - a for a, b in zip(_last(before), _last(after), strict=True))
    return f"{train:+.1f} and {test:+.1f} points"


def _ratio(one: Trained) -> float:
    return one.gradients[0] / one.gradients[-1]


def _points(values: list[float]) -> Points:
    return [(float(number), value) for number, value in enumerate(values, start=1)]


def _plot_errors(trained: Networks) -> Plot:
    sides = {"training error": "training_errors", "test error": "test_errors"}
    shown = {
        f"{kind}, {side}": {
            f"{layers} layers": _points(getattr(trained[kind, layers], name)) for layers in DEPTHS
        }
        for side, name in sides.items()
        for kind in ("plain", "residual")
    }
    figure = panels(shown, x_label="epoch", y_label="error %", columns=2)
    return Plot(figure, "Errors after each epoch on rendered shapes.")


def _plot_gradients(trained: Networks) -> Plot:
    shown = {
        kind: {f"{layers} layers": _points(trained[kind, layers].gradients) for layers in DEPTHS}
        for kind in ("plain", "residual")
    }
    figure = panels(shown, x_label="layer", y_label="gradient norm", columns=2, y_scale="log")
    return Plot(figure, "Norm of ∂C/∂W of each 3 × 3 convolution before training, one batch.")
