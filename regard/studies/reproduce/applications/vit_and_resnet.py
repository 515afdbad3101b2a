"""Vision transformer and residual network by the number of training images (7.3)."""

from pathlib import Path

from regard.core.progress import without_progress
from regard.data.datasets.catalog import find_data
from regard.data.splits import Splits
from regard.plots.curves import scaling
from regard.plots.inputs import Points
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

MODELS = {"ResNet": "he2016-laptop", "ViT": "dosovitskiy2021-laptop"}
SIZES = (200, 800, 3_200)
"""Numbers of training images."""

SETTINGS = {
    "ResNet": (
        "model.encoder.widths=[12,24,48]",
        "train.max_steps=400",
        "train.validate_every=400",
    ),
    "ViT": (
        "model.encoder.dim=32",
        "model.encoder.num_layers=2",
        "train.optimizer.learning_rate=0.02",
        "train.max_steps=480",
        "train.validate_every=480",
    ),
}
"""Overrides of each model: about the same time per model, for any number of images."""

IMAGES = ("data.source.size=24", "data.batch.max_sentences=48", "train.max_epochs=0")
"""Overrides of both."""


def vit_and_resnet(seed: int, folder: Path) -> Findings:
    """Train both models on growing numbers of images.

    Args:
        seed: Seed of the models; the images are always the same.
        folder: Folder of the runs.
    """
    accuracies: dict[str, dict[int, float]] = {name: {} for name in MODELS}
    parameters: dict[str, int] = {}
    for name, recipe in MODELS.items():
        for size in SIZES:
            request = Request(
                data=(f"shapes:{size}",),
                recipe=recipe,
                settings=(*IMAGES, *SETTINGS[name]),
                out=folder / f"{name}-{size}",
            )
            task = train_run(request, seed)
            splits = find_data(f"shapes:{size}")
            assert isinstance(splits, Splits)
            with without_progress():
                accuracies[name][size] = task.evaluate(splits.test).results["accuracy"].value
            parameters[name] = task.num_parameters
    rows = {
        name: {
            "parameters": parameters[name],
            **{f"{size:,} images": row[size] for size in SIZES},
        }
        for name, row in accuracies.items()
    }
    return Findings(
        tables={"Accuracy on 500 test images, %": rows},
        claims=find_claims(accuracies),
        plots={"vit-and-resnet": _plot(accuracies)},
    )


def find_claims(accuracies: dict[str, dict[int, float]]) -> tuple[Claim, ...]:
    """Return the claims for accuracies by model and number of images."""
    resnet, vit = accuracies["ResNet"], accuracies["ViT"]
    first, last = SIZES[0], SIZES[-1]
    return (
        Claim(
            "Both models gain from more images.",
            f"ResNet {resnet[first]:.1f} to {resnet[last]:.1f} %, ViT {vit[first]:.1f} to "
            f"{vit[last]:.1f} % from {first} to {last:,} images",
            resnet[last] > resnet[first] + 5 and vit[last] > vit[first] + 5,
        ),
        Claim(
            "With few images and little compute, the residual network is better.",
            ", ".join(
                f"{size:,} images: {resnet[size]:.1f} and {vit[size]:.1f} %" for size in SIZES
            ),
            all(resnet[size] > vit[size] for size in SIZES),
        ),
    )


def _plot(accuracies: dict[str, dict[int, float]]) -> Plot:
    series: dict[str, Points] = {name: list(row.items()) for name, row in accuracies.items()}
    figure = scaling(series, x_label="training images", y_label="test accuracy, %")
    return Plot(
        figure,
        "Rendered shapes of 24 × 24 pixels, about the same training time for all. A convolution is "
        "local from the start; a vision transformer learns which patches belong together.",
    )
