"""Dimensionality reduction to two dimensions: latents of an autoencoder compared with PCA."""

from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from regard.core.errors import DataError
from regard.metrics.representation.vectors import neighbour_accuracy
from regard.metrics.result import Result
from regard.metrics.vision.images import mse
from regard.models.pca import Pca
from regard.plots.scatter import projections
from regard.studies.autoencoder import AutoencoderRun
from regard.tasks.image_to_image.metrics import to_bytes
from regard.tasks.reading import read_labelled_split

PCA = "principal components"

FEW_LABELS = 10
"""Number of labels up to which each may have a single item."""


@dataclass(frozen=True)
class Projection:
    """Items in two dimensions, and the quality of the projection."""

    points: Tensor
    """(B, 2)."""
    accuracy: Result
    """Accuracy of the labels of the 15 nearest neighbours."""
    error: Result | None
    """Squared error of images decoded from the points; None for texts."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON."""
        values: dict[str, Any] = {"accuracy": self.accuracy.to_dict()}
        if self.error is not None:
            values["error"] = self.error.to_dict()
        return values


@dataclass(frozen=True)
class Reduction:
    """Several projections of the same items."""

    projections: dict[str, Projection]
    """Projections by name of the method."""
    labels: list[str]
    """Label of each item."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON, including the points."""
        return {
            "planes": {
                name: {**projection.to_dict(), "points": _rounded(projection.points)}
                for name, projection in self.projections.items()
            },
            "labels": self.labels,
        }

    def plot(self) -> Figure:
        """Plot the projections side by side."""
        notes = {}
        for name, projection in self.projections.items():
            notes[name] = f"15 neighbours {projection.accuracy.value:.1f} %"
            if projection.error is not None:
                notes[name] += f", squared error {projection.error.value:.4f}"
        points = {name: projection.points.numpy() for name, projection in self.projections.items()}
        return projections(points, self.labels, notes=notes)


def reduce(autoencoder: AutoencoderRun, data: str, *, num_bootstrap: int = 1000) -> Reduction:
    """Project labelled items to two dimensions, by latents and by PCA.

    Latents of more than two dimensions are projected by PCA of the latents. Everything is fitted
    to training data; other data is plotted and measured.

    Args:
        autoencoder: An autoencoder.
        data: Labelled images or sentences; of a built-in data set, its test part.
        num_bootstrap: Number of bootstrap samples per confidence interval.
    """
    config = autoencoder.task.recipe.data
    examples = [one for one in read_labelled_split((data,), "test", config=config) if one.target]
    if not examples:
        raise DataError(f"{data} holds no labelled items, which are needed to colour the points.")
    sources = [example.source for example in examples]
    labels = [example.target for example in examples]
    _check_shared(labels, data)
    projections = {}
    methods = {_latent_name(autoencoder): _project_latents, PCA: _project_by_pca}
    for name, project in methods.items():
        points, images = project(autoencoder, sources)
        accuracy = neighbour_accuracy(points.numpy(), labels, num_bootstrap=num_bootstrap)
        error = None
        if images is not None:
            pixels = autoencoder.pixels(sources).numpy()
            error = mse(images.numpy(), pixels, num_bootstrap=num_bootstrap)
        projections[name] = Projection(points, accuracy, error)
    return Reduction(projections, labels)


def _check_shared(labels: list[str], data: str) -> None:
    """Raise a `DataError` if most labels occur once, as targets of pairs do."""
    num_distinct = len(set(labels))
    if num_distinct > max(FEW_LABELS, len(labels) // 2):
        raise DataError(
            f"Items must share labels, which colour the points, but the {len(labels):,} of {data} "
            f"have {num_distinct:,} different ones, the first being '{labels[0]}'."
        )


def _latent_name(autoencoder: AutoencoderRun) -> str:
    if autoencoder.latent_dim == 1:
        return "latents, 1 dimension"
    if autoencoder.latent_dim == 2:
        return "latents"
    return f"latents, {autoencoder.latent_dim} dimensions reduced to 2 by PCA"


def _project_latents(
    autoencoder: AutoencoderRun, sources: list[Any]
) -> tuple[Tensor, Tensor | None]:
    """Return points (B, 2) by the autoencoder, and the images decoded from them."""
    points = latents = autoencoder.task.encode(sources)
    if autoencoder.latent_dim == 1:
        points = torch.cat([latents, torch.zeros_like(latents)], dim=1)
    elif autoencoder.latent_dim > 2:
        pca = Pca.fit(autoencoder.task.encode(autoencoder.fit_sources), 2)
        points = pca.encode(latents)
        latents = pca.decode(points)
    return points, None if autoencoder.is_text else autoencoder.task.decode(latents)


def _project_by_pca(
    autoencoder: AutoencoderRun, sources: list[Any]
) -> tuple[Tensor, Tensor | None]:
    """Return points (B, 2) by PCA, and the images decoded from them."""
    pca = autoencoder.fit_pca(2)
    points = pca.encode(autoencoder.vectors(sources))
    if autoencoder.is_text:
        return points, None
    images = to_bytes(pca.decode(points))
    return points, images.reshape(-1, *autoencoder.task.target.spec.shape)  # (B, C, Y, X)


def _rounded(points: Tensor) -> list[list[float]]:
    return [[round(number, 4) for number in point] for point in points.tolist()]
