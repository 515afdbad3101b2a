"""Two numbers for each item: an autoencoder's plane beside that of principal components."""

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
from regard.studies.autoencoder import Subject
from regard.tasks.image_to_image.metrics import to_bytes
from regard.tasks.reading import read_labelled_side

RIVAL = "principal components"

FEW_LABELS = 10
"""So many may each have a single item."""


@dataclass(frozen=True)
class Plane:
    """Where items lie, and what that tells of them."""

    places: Tensor
    """(B, 2)."""
    accuracy: Result
    """How often neighbours have the same label."""
    error: Result | None
    """What two numbers lose of an image; absent for texts."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        found: dict[str, Any] = {"accuracy": self.accuracy.to_dict()}
        if self.error is not None:
            found["error"] = self.error.to_dict()
        return found


@dataclass(frozen=True)
class Reduction:
    """The same items on several planes."""

    planes: dict[str, Plane]
    """By the name of what made them."""
    labels: list[str]
    """What each item is."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, the places included."""
        return {
            "planes": {
                name: {**plane.to_dict(), "places": _rounded(plane.places)}
                for name, plane in self.planes.items()
            },
            "labels": self.labels,
        }

    def draw(self) -> Figure:
        """Draw the planes side by side."""
        notes = {}
        for name, plane in self.planes.items():
            told = [f"15 neighbours {plane.accuracy.value:.1f} %"]
            if plane.error is not None:
                told.append(f"squared error {plane.error.value:.4f}")
            notes[name] = ", ".join(told)
        places = {name: plane.places.numpy() for name, plane in self.planes.items()}
        return projections(places, self.labels, notes=notes)


def reduce(subject: Subject, data: str, *, num_bootstrap: int = 1000) -> Reduction:
    """Bring labelled items to two numbers, by their codes and by principal components.

    Codes of more than two numbers are brought to two by their own principal components. All is
    fitted to training data; what is drawn and measured is not.

    Args:
        subject: An autoencoder.
        data: Labelled images or sentences; of a data set with a name, its test side.
        num_bootstrap: Samples behind each confidence interval.
    """
    config = subject.task.recipe.data
    examples = [one for one in read_labelled_side((data,), "test", config=config) if one.target]
    if not examples:
        raise DataError(f"{data} holds nothing with a label, by which dots could be told apart.")
    sources = [example.source for example in examples]
    labels = [example.target for example in examples]
    _check_shared(labels, data)
    found = {}
    by_name = {_name(subject): _by_code, RIVAL: _by_rival}
    for name, find in by_name.items():
        places, images = find(subject, sources)
        accuracy = neighbour_accuracy(places.numpy(), labels, num_bootstrap=num_bootstrap)
        error = None
        if images is not None:
            right = subject.pixels(sources).numpy()
            error = mse(images.numpy(), right, num_bootstrap=num_bootstrap)
        found[name] = Plane(places, accuracy, error)
    return Reduction(found, labels)


def _check_shared(labels: list[str], data: str) -> None:
    """Raise a `DataError` if labels are as different as the targets of pairs are."""
    num = len(set(labels))
    if num > max(FEW_LABELS, len(labels) // 2):
        raise DataError(
            f"Items must share labels, by which dots are told apart, but the {len(labels):,} of "
            f"{data} have {num:,} different ones, the first being '{labels[0]}'."
        )


def _name(subject: Subject) -> str:
    if subject.width == 1:
        return "the code, a single number"
    return "the code" if subject.width == 2 else f"the code, {subject.width} numbers brought to 2"


def _by_code(subject: Subject, sources: list[Any]) -> tuple[Tensor, Tensor | None]:
    """Return places (B, 2) by an autoencoder, and the images that they stand for."""
    positions = codes = subject.task.encode(sources)
    if subject.width == 1:
        positions = torch.cat([codes, torch.zeros_like(codes)], dim=1)
    elif subject.width > 2:
        narrow = Pca.fit(subject.task.encode(subject.fitted_to), 2)
        positions = narrow.encode(codes)
        codes = narrow.decode(positions)
    return positions, None if subject.reads_text else subject.task.decode(codes)


def _by_rival(subject: Subject, sources: list[Any]) -> tuple[Tensor, Tensor | None]:
    rival = subject.rival(2)
    places = rival.encode(subject.originals(sources))
    if subject.reads_text:
        return places, None
    images = to_bytes(rival.decode(places))
    return places, images.reshape(-1, *subject.task.target.spec.shape)  # (B, C, Y, X)


def _rounded(places: Tensor) -> list[list[float]]:
    return [[round(number, 4) for number in place] for place in places.tolist()]
