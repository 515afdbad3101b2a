"""How well a number tells odd items from normal ones: ROC curve, AUC, and what a threshold catches.

Everywhere a larger number means odder, as a reconstruction error does.
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

Numbers = Sequence[float] | NDArray[np.floating]

SIGNATURE = "ties:half|interval:DeLong"
_NORMAL_95 = 1.959964
"""Standard deviations on either side of the mean that hold 95 % of a normal distribution."""


def roc_curve(normal: Numbers, odd: Numbers) -> list[tuple[float, float]]:
    """Return for every threshold the share of false alarms and that of odd items found.

    Args:
        normal: The number of each normal item.
        odd: The number of each odd one.

    Returns:
        Points from (0, 0) to (1, 1); the lines between them enclose the AUC.
    """
    low, high = _check(normal, odd)
    thresholds = np.unique(np.concatenate([low, high]))[::-1]
    # At and beyond each threshold, from the highest on.
    alarms = 1 - np.searchsorted(np.sort(low), thresholds, side="left") / len(low)
    found = 1 - np.searchsorted(np.sort(high), thresholds, side="left") / len(high)
    return [(0.0, 0.0), *zip(alarms.tolist(), found.tolist(), strict=True)]


def auc(normal: Numbers, odd: Numbers) -> Result:
    """Return how often an odd item has a larger number than a normal one; ties count half.

    The interval is that of DeLong et al. 1988, within 0 and 1.

    Args:
        normal: The number of each normal item, two at least.
        odd: The number of each odd one, two at least.
    """
    of_odd, of_normal = _placements(*_check(normal, odd))
    value = float(of_odd.mean())
    reach = _NORMAL_95 * math.sqrt(_variance(of_odd) + _variance(of_normal))
    return Result(
        name="AUC",
        value=value,
        signature=SIGNATURE,
        interval=(max(0.0, value - reach), min(1.0, value + reach)),
        detail={"normal": len(of_normal), "odd": len(of_odd)},
    )


def auc_difference(
    baseline: tuple[Numbers, Numbers], system: tuple[Numbers, Numbers]
) -> Difference:
    """Test whether two ways to number the same items tell them apart equally well.

    DeLong et al. 1988: the items are the same, so what both find hard does not count.

    Args:
        baseline: The numbers of normal and of odd items, one way.
        system: Those of the same items in the same order, the other way.
    """
    before, after = (_placements(*_check(*numbers)) for numbers in (baseline, system))
    if [len(part) for part in before] != [len(part) for part in after]:
        raise DataError(
            "`baseline` and `system` must number the same items, but there are "
            f"{len(before[1]):,} and {len(after[1]):,} normal ones, {len(before[0]):,} and "
            f"{len(after[0]):,} odd ones."
        )
    of_odd, of_normal = (new - old for old, new in zip(before, after, strict=True))
    value = float(of_odd.mean())
    deviation = math.sqrt(_variance(of_odd) + _variance(of_normal))
    reach = _NORMAL_95 * deviation
    far = abs(value) / deviation if deviation else (math.inf if value else 0.0)
    return Difference(
        name="AUC",
        value=value,
        interval=(value - reach, value + reach),
        p_value=math.erfc(far / math.sqrt(2)),
        signature=f"test:paired DeLong|{SIGNATURE}",
    )


def choose_threshold(normal: Numbers, false_alarms: float) -> float:
    """Return the least number beyond which at most so many of normal items lie.

    Args:
        normal: The number of each normal item that nothing was learned from.
        false_alarms: Their share that may be taken for odd.
    """
    within("false_alarms", false_alarms, low=0.0, high=1.0)
    if not len(normal):
        raise DataError("A threshold needs at least one normal item to hold out, but has none.")
    return float(np.quantile(np.asarray(normal), 1 - false_alarms, method="inverted_cdf"))


def share_beyond(
    numbers: Numbers, threshold: float, *, name: str, num_bootstrap: int = 0
) -> Result:
    """Return how many in a hundred items lie beyond a threshold.

    Args:
        numbers: One an item.
        threshold: What itself is not beyond.
        name: What this share is called: false alarms, found.
        num_bootstrap: Samples behind the confidence interval; 0 = none.
    """
    beyond = (np.asarray(numbers) > threshold).astype(float)
    signature = f"beyond:{threshold:.6g}"
    return ratio(name, beyond.tolist(), signature=signature, num_bootstrap=num_bootstrap)


def _placements(
    normal: NDArray[np.float64], odd: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each odd item the share of normal ones below, for each normal that of odd above.

    Both have the AUC as their mean, and how they vary tells how sure it is.
    """
    return _share_below(odd, normal), 1 - _share_below(normal, odd)


def _share_below(numbers: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, numbers, side="left")
    not_above = np.searchsorted(ordered, numbers, side="right")
    return (below + not_above) / (2 * len(ordered))


def _variance(placements: NDArray[np.float64]) -> float:
    """Return the variance of their mean."""
    return float(placements.var(ddof=1)) / len(placements)


def _check(normal: Numbers, odd: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found = []
    for name, numbers in (("normal", normal), ("odd", odd)):
        values = np.asarray(numbers, dtype=np.float64)
        if values.ndim != 1 or len(values) < 2:
            raise DataError(
                f"`{name}` must hold the numbers of at least two items, but has the shape "
                f"{values.shape}."
            )
        if not np.isfinite(values).all():
            raise DataError(f"`{name}` must hold finite numbers, but one is not.")
        found.append(values)
    return found[0], found[1]
