"""Plain and residual networks by depth: training and test error, gradient of the first layer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import accuracy, batches_of, seeded
from regard.studies.reproduce.neurons.shifted_images import ImageClassifier, sample_shapes

DEPTHS = {20: 3, 56: 9}
"""Blocks of each of the three stages by number of layers: 6 n + 2 layers have n blocks."""
WIDTHS = (8, 16, 32)
NUM_TRAIN, NUM_TEST, MAX_SHIFT = 2_000, 1_000, 5
NUM_STEPS, BATCH_SIZE, CHECK_EVERY = 300, 64, 30
MOMENTUM, WEIGHT_DECAY = 0.9, 0.0001
RATE, NUM_WARMUP = 0.02, 20
"""A fifth of the rate of He et al. 2016: in 300 steps, 56 layers do not recover from a start at
0.1, without or with residual connections."""

Images = tuple[Tensor, Tensor]
"""Images (B, 1, Y, X) and the indices of their shapes (B,)."""


@dataclass(frozen=True)
class Trained:
    """Errors in percent by number of steps, and the gradient norm of each layer at the start."""

    training_errors: Points
    test_errors: Points
    gradients: list[float]

    @property
    def errors(self) -> tuple[float, float]:
        """Training and test error after training."""
        return self.training_errors[-1][1], self.test_errors[-1][1]


def residual_depth(seed: int, _folder: Path | None = None) -> Findings:
    """Train plain and residual networks of several depths.

    Args:
        seed: Seed of the images, of the weights and of the order of examples.
    """
    generator = torch.Generator().manual_seed(seed)
    train_images = sample_shapes(NUM_TRAIN, generator, max_shift=MAX_SHIFT)
    test_images = sample_shapes(NUM_TEST, generator, max_shift=MAX_SHIFT)
    trained = {
        (kind, layers): train_network(
            build(kind, DEPTHS[layers], seed), train_images, test_images, seed=seed
        )
        for kind, layers in product(("plain", "residual"), DEPTHS)
    }
    rows = {
        f"{kind}, {layers} layers": {
            "training error %": one.errors[0],
            "test error %": one.errors[1],
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


def build(kind: str, num_blocks: int, seed: int) -> ImageClassifier:
    """Return an untrained network with some blocks in each stage."""
    encoder = ResnetEncoderConfig(
        stem="medium",
        widths=WIDTHS,
        blocks=(num_blocks,) * len(WIDTHS),
        is_residual=kind == "residual",
    )
    with seeded(seed):
        return ImageClassifier(encoder)


def train_network(
    model: ImageClassifier, train_images: Images, test_images: Images, *, seed: int
) -> Trained:
    """Train a network by SGD with momentum.

    Args:
        model: The network.
        train_images: Images for training; the training error is that of the first ones.
        test_images: Other images.
        seed: Seed of the order of examples.
    """
    generator = torch.Generator().manual_seed(seed)
    sample = batches_of(*train_images, size=BATCH_SIZE)
    gradients = gradient_norms(model, *sample(generator))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_factor)
    training_errors, test_errors = [], []
    for step in range(1, NUM_STEPS + 1):
        images, labels = sample(generator)
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        if step % CHECK_EVERY == 0:
            training_errors.append((float(step), error(model, train_images)))
            test_errors.append((float(step), error(model, test_images)))
    return Trained(training_errors, test_errors, gradients)


def rate_factor(step: int) -> float:
    """Return the learning rate of a step, relative to its peak: warm-up, then a cosine to 0."""
    return min(1.0, (step + 1) / NUM_WARMUP) * (1 + math.cos(math.pi * step / NUM_STEPS)) / 2


def error(model: ImageClassifier, images: Images) -> float:
    """Return the percentage of wrong predictions for the first images."""
    inputs, labels = (values[:NUM_TEST] for values in images)
    model.eval()
    wrong = 100 - accuracy(model, inputs, labels)
    model.train()
    return wrong


def gradient_norms(model: ImageClassifier, images: Tensor, labels: Tensor) -> list[float]:
    """Return the gradient norm of the weights of each convolution but shortcuts, for one batch."""
    buffers = [buffer.clone() for buffer in model.buffers()]
    cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
    layers = [
        one for one in model.modules() if isinstance(one, nn.Conv2d) and one.kernel_size[0] > 1
    ]
    norms = [float(one.weight.grad.norm()) for one in layers if one.weight.grad is not None]
    model.zero_grad()
    for buffer, before in zip(model.buffers(), buffers, strict=True):
        buffer.copy_(before)
    return norms


Networks = Mapping[tuple[str, int], Trained]


def _claims(trained: Networks) -> tuple[Claim, ...]:
    shallow, deep = DEPTHS
    plain, residual = trained["plain", deep], trained["residual", deep]
    plain_shallow, residual_shallow = trained["plain", shallow], trained["residual", shallow]
    return (
        Claim(
            f"{deep} plain layers are worse than {shallow} on training and on test images.",
            f"Training and test error: {_errors(plain)} with {deep} layers, "
            f"{_errors(plain_shallow)} with {shallow}.",
            all(a > b for a, b in zip(plain.errors, plain_shallow.errors, strict=True)),
        ),
        Claim(
            f"{deep} residual layers are better than {deep} plain layers on both.",
            f"Training and test error: {_errors(residual)} residual, {_errors(plain)} plain.",
            all(a < b for a, b in zip(residual.errors, plain.errors, strict=True)),
        ),
        Claim(
            "Depth harms residual networks less than plain ones.",
            f"From {shallow} to {deep} layers, training and test error change by "
            f"{_changes(residual_shallow, residual)} residual and by "
            f"{_changes(plain_shallow, plain)} plain.",
            all(
                with_sum < without
                for with_sum, without in zip(
                    _difference(residual_shallow, residual),
                    _difference(plain_shallow, plain),
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


def _errors(one: Trained) -> str:
    return "{:.1f} and {:.1f} %".format(*one.errors)


def _difference(before: Trained, after: Trained) -> tuple[float, float]:
    return after.errors[0] - before.errors[0], after.errors[1] - before.errors[1]


def _changes(before: Trained, after: Trained) -> str:
    return "{:+.1f} and {:+.1f} points".format(*_difference(before, after))


def _ratio(one: Trained) -> float:
    return one.gradients[0] / one.gradients[-1]


def _plot_errors(trained: Networks) -> Plot:
    shown = {
        f"{kind}, {side} error": {
            f"{layers} layers": getattr(trained[kind, layers], f"{side}_errors")
            for layers in DEPTHS
        }
        for side in ("training", "test")
        for kind in ("plain", "residual")
    }
    figure = panels(shown, x_label="step", y_label="error %", columns=2)
    return Plot(figure, "Errors by the number of steps on rendered shapes.")


def _plot_gradients(trained: Networks) -> Plot:
    shown = {
        kind: {
            f"{layers} layers": [
                (float(number), norm)
                for number, norm in enumerate(trained[kind, layers].gradients, start=1)
            ]
            for layers in DEPTHS
        }
        for kind in ("plain", "residual")
    }
    figure = panels(shown, x_label="layer", y_label="gradient norm", columns=2, y_scale="log")
    return Plot(figure, "Norm of ∂C/∂W of each convolution before training, one batch.")
