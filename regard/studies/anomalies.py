"""Anomaly detection by the reconstruction errors of an autoencoder, compared with PCA."""

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
from regard.studies.autoencoder import AutoencoderRun

FALSE_ALARMS = 0.05
"""Share of normal items above the threshold."""

VALIDATION_ERRORS = "validation-errors.json"
"""File in a run folder with the error of each validation item."""

Errors = NDArray[np.float64]


@dataclass(frozen=True)
class Detector:
    """Errors of normal items and anomalies under one model, and a threshold."""

    normal: Errors
    """(B,), errors of items like the training data."""
    anomalous: Errors
    """(B,), errors of anomalies."""
    threshold: float
    """Error above which an item is an anomaly, chosen on validation items."""

    @property
    def roc_auc(self) -> Result:
        """Area under the ROC curve."""
        return auc(self.normal, self.anomalous)

    @property
    def false_alarm_rate(self) -> Result:
        """Percentage of normal items above the threshold."""
        return share_above(self.normal, self.threshold, name="false alarms", num_bootstrap=1000)

    @property
    def detection_rate(self) -> Result:
        """Percentage of anomalies above the threshold."""
        return share_above(
            self.anomalous, self.threshold, name="anomalies found", num_bootstrap=1000
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON."""
        return {
            "threshold": self.threshold,
            "auc": self.roc_auc.to_dict(),
            "false_alarms": self.false_alarm_rate.to_dict(),
            "found": self.detection_rate.to_dict(),
        }


@dataclass(frozen=True)
class DetectionResult:
    """Anomaly detection by an autoencoder and by PCA on the same items."""

    autoencoder: Detector
    pca: Detector
    latent_dim: int
    """Dimension of the latents."""
    num_components: int
    """Number of principal components: `latent_dim`, or less if the training data has less."""
    unit: str
    """Unit of the autoencoder's errors."""

    @property
    def detectors(self) -> dict[str, Detector]:
        """Detectors by name."""
        return {"autoencoder": self.autoencoder, f"PCA, {self.num_components} components": self.pca}

    @property
    def difference(self) -> Difference:
        """Difference of the AUC between autoencoder and PCA, with its significance."""
        before, after = ((one.normal, one.anomalous) for one in (self.pca, self.autoencoder))
        return auc_difference(before, after)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON."""
        return {
            "width": self.latent_dim,
            "num_components": self.num_components,
            "num_normal": len(self.autoencoder.normal),
            "num_odd": len(self.autoencoder.anomalous),
            "autoencoder": self.autoencoder.to_dict(),
            "pca": self.pca.to_dict(),
            "difference": self.difference.to_dict(),
        }

    def plot(self) -> Figure:
        """Plot the autoencoder's errors with its threshold, and both ROC curves."""
        return detection(
            {"normal": self.autoencoder.normal, "anomalies": self.autoencoder.anomalous},
            {
                f"{name}: {one.roc_auc.value:.3f}": roc_curve(one.normal, one.anomalous)
                for name, one in self.detectors.items()
            },
            x_label=self.unit,
            threshold=self.autoencoder.threshold,
        )


def find_threshold(autoencoder: AutoencoderRun, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the error that at most a share of the validation items exceeds.

    Args:
        autoencoder: An autoencoder.
        false_alarms: The share.
    """

    def compute_errors() -> list[float]:
        sources = _validation_sources(autoencoder)
        errors: list[float] = autoencoder.reconstruction_errors(sources).tolist()
        return errors

    return choose_threshold(autoencoder.cached(VALIDATION_ERRORS, compute_errors), false_alarms)


def flag_anomalies(
    autoencoder: AutoencoderRun, data: str, *, false_alarms: float = FALSE_ALARMS
) -> Iterator[dict[str, Any]]:
    """Yield each item with its error, the threshold, and whether it is an anomaly.

    Args:
        autoencoder: An autoencoder.
        data: The items; of a built-in data set, its test part.
        false_alarms: Share of validation items that may exceed the threshold.
    """
    threshold = find_threshold(autoencoder, false_alarms)
    sources = autoencoder.read_sources(data)
    errors = autoencoder.reconstruction_errors(sources).tolist()
    for source, error in zip(sources, errors, strict=True):
        is_anomaly = error > threshold
        yield {"source": source, "error": error, "threshold": threshold, "is_anomaly": is_anomaly}


def detect_anomalies(
    autoencoder: AutoencoderRun, normal: str, anomalous: str, *, false_alarms: float = FALSE_ALARMS
) -> DetectionResult:
    """Separate anomalies from normal items by their reconstruction error.

    PCA has as many components as the latents have dimensions, and is fitted to the same data.

    Args:
        autoencoder: An autoencoder trained on normal items.
        normal: Normal data; of a built-in data set, its test part.
        anomalous: Anomalies, likewise.
        false_alarms: Share of normal items that may exceed the threshold.
    """
    normal_sources, anomalous_sources = map(autoencoder.read_sources, (normal, anomalous))
    pca = autoencoder.fit_pca(autoencoder.latent_dim)
    validation_errors = autoencoder.pca_errors(_validation_sources(autoencoder), pca)
    return DetectionResult(
        autoencoder=Detector(
            autoencoder.reconstruction_errors(normal_sources),
            autoencoder.reconstruction_errors(anomalous_sources),
            find_threshold(autoencoder, false_alarms),
        ),
        pca=Detector(
            autoencoder.pca_errors(normal_sources, pca),
            autoencoder.pca_errors(anomalous_sources, pca),
            choose_threshold(validation_errors, false_alarms),
        ),
        latent_dim=autoencoder.latent_dim,
        num_components=pca.width,
        unit="nats per token" if autoencoder.is_text else "squared error",
    )


def _validation_sources(autoencoder: AutoencoderRun) -> list[Any]:
    """Return the validation sources: normal items that were not trained on."""
    return [example.source for example in autoencoder.splits.valid]
