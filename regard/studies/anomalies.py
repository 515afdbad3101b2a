"""Odd items by what an autoencoder cannot draw: errors, a threshold, and how well they tell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from regard.metrics.representation.roc import (
    auc,
    auc_difference,
    choose_threshold,
    roc_curve,
    share_above,
)
from regard.metrics.result import Result
from regard.metrics.significance import Difference
from regard.plots.curves import detection
from regard.studies.autoencoder import Subject

FALSE_ALARMS = 0.05
"""Share of normal items that may be taken for odd."""

HELD_OUT = "validation-errors.json"
"""The file in a run folder that holds the error of each validation item."""

Errors = NDArray[np.float64]


@dataclass(frozen=True)
class Judge:
    """One way to tell odd items: their errors, and beyond which error they are odd."""

    normal: Errors
    """(B,), of items like those that were learned from."""
    odd: Errors
    """(B,), of others."""
    threshold: float
    """Chosen on validation items, which are neither."""

    @property
    def area(self) -> Result:
        """How well errors tell the two."""
        return auc(self.normal, self.odd)

    @property
    def false_alarms(self) -> Result:
        """How many in a hundred normal items are taken for odd."""
        return share_above(self.normal, self.threshold, name="false alarms", num_bootstrap=1000)

    @property
    def found(self) -> Result:
        """How many in a hundred odd items are found."""
        return share_above(self.odd, self.threshold, name="odd items found", num_bootstrap=1000)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "threshold": self.threshold,
            "auc": self.area.to_dict(),
            "false_alarms": self.false_alarms.to_dict(),
            "found": self.found.to_dict(),
        }


@dataclass(frozen=True)
class Anomalies:
    """How well an autoencoder tells odd items from normal ones, beside principal components."""

    own: Judge
    rival: Judge
    width: int
    """Numbers of a code."""
    num_components: int
    """As many, where the training data has so many directions."""
    unit: str
    """What an error is."""

    @property
    def judges(self) -> dict[str, Judge]:
        """The autoencoder and principal components, by name."""
        return {"autoencoder": self.own, f"PCA, {self.num_components} components": self.rival}

    @property
    def difference(self) -> Difference:
        """How far the autoencoder is ahead, and whether that is chance."""
        before, after = ((one.normal, one.odd) for one in (self.rival, self.own))
        return auc_difference(before, after)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "width": self.width,
            "num_components": self.num_components,
            "num_normal": len(self.own.normal),
            "num_odd": len(self.own.odd),
            "autoencoder": self.own.to_dict(),
            "pca": self.rival.to_dict(),
            "difference": self.difference.to_dict(),
        }

    def draw(self) -> Figure:
        """Draw the autoencoder's errors with its threshold, and both ROC curves."""
        return detection(
            {"normal": self.own.normal, "odd": self.own.odd},
            {
                f"{name}: {one.area.value:.3f}": roc_curve(one.normal, one.odd)
                for name, one in self.judges.items()
            },
            x_label=self.unit,
            threshold=self.own.threshold,
        )


def find_threshold(subject: Subject, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the error beyond which at most a share of the validation items lies.

    Args:
        subject: An autoencoder.
        false_alarms: The share.
    """

    def measure() -> list[float]:
        errors: list[float] = subject.errors(_held_out(subject)).tolist()
        return errors

    return choose_threshold(subject.remembered(HELD_OUT, measure), false_alarms)


def flag(
    subject: Subject, data: str, *, false_alarms: float = FALSE_ALARMS
) -> Iterator[dict[str, Any]]:
    """Yield each item with its error, the threshold, and whether it is an anomaly.

    Args:
        subject: An autoencoder.
        data: The items; of a built-in data set, its test part.
        false_alarms: Share of validation items that may lie beyond the threshold.
    """
    threshold = find_threshold(subject, false_alarms)
    sources = subject.read(data)
    for source, error in zip(sources, subject.errors(sources).tolist(), strict=True):
        is_odd = error > threshold
        yield {"source": source, "error": error, "threshold": threshold, "is_odd": is_odd}


def detect(
    subject: Subject, normal: str, odd: str, *, false_alarms: float = FALSE_ALARMS
) -> Anomalies:
    """Tell odd items from normal ones by what is lost between original and answer.

    Principal components have as many directions as the code has numbers, and learn from the same.

    Args:
        subject: An autoencoder that has learned from normal items.
        normal: Data like that; of a data set with a name, its test side.
        odd: Other data, likewise.
        false_alarms: Share of normal items that a threshold may take for odd.
    """
    sets = [subject.read(data) for data in (normal, odd)]
    rival = subject.rival(subject.width)
    own = [subject.errors(sources) for sources in sets]
    others = [subject.rival_errors(sources, rival) for sources in sets]
    return Anomalies(
        own=Judge(own[0], own[1], find_threshold(subject, false_alarms)),
        rival=Judge(
            others[0],
            others[1],
            choose_threshold(subject.rival_errors(_held_out(subject), rival), false_alarms),
        ),
        width=subject.width,
        num_components=rival.width,
        unit="nats a token" if subject.reads_text else "squared error",
    )


def _held_out(subject: Subject) -> list[Any]:
    """Return the validation sources: like what was learned, but not learned from."""
    return [example.source for example in subject.learned_from.valid]
