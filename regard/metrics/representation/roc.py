"""Anomaly detection metrics: ROC curve, AUC, and detection rate at a threshold.

A larger score, such as a reconstruction error, means more anomalous.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.core.config import within
from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Result
from regard.metrics.significance import Difference

Scores = Sequence[float] | NDArray[np.floating]

SIGNATURE = "ties:half|interval:DeLong"
_NORMAL_95 = 1.959964
"""Half-width, in standard deviations, of the central 95 % of a normal distribution."""


def roc_curve(normal: Scores, anomalous: Scores) -> list[tuple[float, float]]:
    """Return the false positive rate and the true positive rate at every threshold.

    Args:
        normal: Scores of normal items.
        anomalous: Scores of anomalies.

    Returns:
        Points from (0, 0) to (1, 1); the AUC is the area under the lines between them.
    """
    low, high = _check(normal, anomalous)
    thresholds = np.unique(np.concatenate([low, high]))[::-1]
    # Share of scores at or above each threshold, highest threshold first.
    false_rate = 1 - np.searchsorted(np.sort(low), thresholds, side="left") / len(low)
    true_rate = 1 - np.searchsorted(np.sort(high), thresholds, side="left") / len(high)
    return [(0.0, 0.0), *zip(false_rate.tolist(), true_rate.tolist(), strict=True)]


def auc(normal: Scores, anomalous: Scores) -> Result:
    """Compute the area under the ROC curve.

    This is the probability that an anomaly has a larger score than a normal item; ties count
    half. The confidence interval is that of DeLong et al. 1988, clipped to 0 and 1.

    Args:
        normal: Scores of normal items, at least two.
        anomalous: Scores of anomalies, at least two.
    """
    of_anomalous, of_normal = _placements(*_check(normal, anomalous))
    value = float(of_anomalous.mean())
    margin = _NORMAL_95 * math.sqrt(_variance(of_anomalous) + _variance(of_normal))
    return Result(
        name="AUC",
        value=value,
        signature=SIGNATURE,
        interval=(max(0.0, value - margin), min(1.0, value + margin)),
        detail={"normal": len(of_normal), "odd": len(of_anomalous)},
    )


def auc_difference(baseline: tuple[Scores, Scores], system: tuple[Scores, Scores]) -> Difference:
    """Test whether two anomaly scores of the same items have the same AUC.

    DeLong et al. 1988. The test is paired: it accounts for the correlation of the two scores.

    Args:
        baseline: Scores of normal items and of anomalies by the baseline.
        system: Scores of the same items in the same order by the system.
    """
    before, after = (_placements(*_check(*scores)) for scores in (baseline, system))
    if [len(part) for part in before] != [len(part) for part in after]:
        raise DataError(
            "`baseline` and `system` must score the same items, but there are "
            f"{len(before[1]):,} and {len(after[1]):,} normal items, {len(before[0]):,} and "
            f"{len(after[0]):,} anomalies."
        )
    of_anomalous, of_normal = (new - old for old, new in zip(before, after, strict=True))
    value = float(of_anomalous.mean())
    std = math.sqrt(_variance(of_anomalous) + _variance(of_normal))
    margin = _NORMAL_95 * std
    z = abs(value) / std if std else (math.inf if value else 0.0)
    return Difference(
        name="AUC",
        value=value,
        interval=(value - margin, value + margin),
        p_value=math.erfc(z / math.sqrt(2)),
        signature=f"test:paired DeLong|{SIGNATURE}",
    )


def choose_threshold(normal: Scores, false_alarms: float) -> float:
    """Return the lowest threshold with at most the given rate of false alarms.

    Args:
        normal: Scores of normal items that were not used in training.
        false_alarms: Maximum share of normal items above the threshold.
    """
    within("false_alarms", false_alarms, low=0.0, high=1.0)
    if not len(normal):
        raise DataError("A threshold needs at least one held-out normal item, but there is none.")
    return float(np.quantile(np.asarray(normal), 1 - false_alarms, method="inverted_cdf"))


def share_above(scores: Scores, threshold: float, *, name: str, num_bootstrap: int = 0) -> Result:
    """Compute the percentage of items with a score above a threshold.

    Args:
        scores: Score of each item.
        threshold: A score equal to the threshold is not above it.
        name: Name of the result.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    is_above = (np.asarray(scores) > threshold).astype(float)
    signature = f"beyond:{threshold:.6g}"
    return ratio(name, is_above.tolist(), signature=signature, num_bootstrap=num_bootstrap)


def _placements(
    normal: NDArray[np.float64], anomalous: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return per anomaly the share of normal items below, per normal item that of anomalies above.

    The mean of either is the AUC; their variances give the variance of the AUC.
    """
    return _share_below(anomalous, normal), 1 - _share_below(normal, anomalous)


def _share_below(scores: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    not_above = np.searchsorted(ordered, scores, side="right")
    return (below + not_above) / (2 * len(ordered))


def _variance(placements: NDArray[np.float64]) -> float:
    """Return the variance of the mean of placements."""
    return float(placements.var(ddof=1)) / len(placements)


def _check(normal: Scores, anomalous: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    arrays = []
    for name, scores in (("normal", normal), ("anomalous", anomalous)):
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim != 1 or len(values) < 2:
            raise DataError(
                f"`{name}` must hold the scores of at least two items, but has the shape "
                f"{values.shape}."
            )
        if not np.isfinite(values).all():
            raise DataError(f"`{name}` must hold finite scores, but one is not.")
        arrays.append(values)
    return arrays[0], arrays[1]
