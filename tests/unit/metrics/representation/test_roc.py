import math

import numpy as np
import pytest

from regard.core.errors import ConfigError, DataError
from regard.metrics.representation.roc import (
    auc,
    auc_difference,
    choose_threshold,
    roc_curve,
    share_above,
)


@pytest.fixture(params=[0, 1, 2])
def scores(request):
    """Return integer scores, which have many ties."""
    generator = np.random.default_rng(request.param)
    return generator.integers(0, 8, 37).astype(float), generator.integers(2, 11, 23).astype(float)


def count_pairs(normal, anomalous):
    pairs = [(low, high) for low in normal for high in anomalous]
    return sum((high > low) + (high == low) / 2 for low, high in pairs) / len(pairs)


def test_auc_is_the_share_of_ordered_pairs(scores):
    assert auc(*scores).value == pytest.approx(count_pairs(*scores), abs=1e-12)


def test_auc_is_the_area_under_the_curve(scores):
    false_rates, found = zip(*roc_curve(*scores), strict=True)
    assert np.trapezoid(found, false_rates) == pytest.approx(auc(*scores).value, abs=1e-12)
    assert (false_rates[0], found[0], false_rates[-1], found[-1]) == (0, 0, 1, 1)


def test_auc_and_curve_equal_scikit_learn(scores):
    sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    normal, anomalous = scores
    labels, values = [0] * len(normal) + [1] * len(anomalous), np.concatenate(scores)
    assert auc(normal, anomalous).value == pytest.approx(
        sklearn_metrics.roc_auc_score(labels, values)
    )
    false_rates, found, _ = sklearn_metrics.roc_curve(labels, values, drop_intermediate=False)
    assert roc_curve(normal, anomalous) == pytest.approx(list(zip(false_rates, found, strict=True)))


def test_interval_equals_that_of_resampling(scores):
    normal, anomalous = scores
    generator = np.random.default_rng(5)
    values = [
        auc(
            generator.choice(normal, len(normal)), generator.choice(anomalous, len(anomalous))
        ).value
        for _ in range(400)
    ]
    low, high = auc(normal, anomalous).interval
    reach = 1.96 * np.std(values)
    assert (high - low) / 2 == pytest.approx(reach, rel=0.25)


def test_interval_has_its_nominal_coverage():
    # The AUC of two normal distributions is known.
    distance, truth = 1.0, 0.5 * math.erfc(-1.0 / 2)
    generator, hits = np.random.default_rng(3), 0
    for _ in range(300):
        low, high = auc(generator.normal(size=60), generator.normal(distance, size=50)).interval
        hits += low <= truth <= high
    assert 0.91 < hits / 300 < 0.985


def test_perfect_ranking_has_an_area_of_one():
    found = auc([1, 2, 3], [4, 5])
    assert (found.value, found.interval) == (1.0, (1.0, 1.0))
    assert "DeLong" in found.signature


def test_system_does_not_differ_from_itself(scores):
    found = auc_difference(scores, scores)
    assert (found.value, found.p_value, found.interval) == (0.0, 1.0, (0.0, 0.0))


def test_paired_interval_is_narrower_than_unpaired(scores):
    normal, anomalous = scores
    generator = np.random.default_rng(1)
    other = (
        normal + generator.normal(size=len(normal)),
        anomalous + generator.normal(size=len(anomalous)),
    )
    found = auc_difference(scores, other)
    before, after = auc(*scores), auc(*other)
    assert found.value == pytest.approx(after.value - before.value)
    reaches = [(one.interval[1] - one.interval[0]) / 2 for one in (before, after)]
    assert (found.interval[1] - found.interval[0]) / 2 < math.hypot(*reaches)


def test_clear_difference_is_significant():
    generator = np.random.default_rng(2)
    normal, anomalous = generator.normal(size=200), generator.normal(2, size=200)
    random_scores = generator.normal(size=200), generator.normal(size=200)
    assert auc_difference(random_scores, (normal, anomalous)).p_value < 1e-6


@pytest.mark.parametrize("share", [0.0, 0.05, 0.31, 1.0])
def test_threshold_limits_the_rate_of_false_alarms(share):
    normal = np.random.default_rng(0).normal(size=101)
    threshold = choose_threshold(normal, share)
    assert (normal > threshold).mean() <= share
    lower = normal[normal < threshold]
    # The next lower score as the threshold has more false alarms.
    assert not len(lower) or (normal > lower.max()).mean() > share


def test_share_above_a_threshold():
    found = share_above([1, 2, 3, 4], 2, name="found", num_bootstrap=50)
    assert (found.name, found.value) == ("found", 50.0)
    assert found.interval[0] < 50 < found.interval[1]


def test_invalid_scores_are_refused():
    with pytest.raises(DataError, match=r"`anomalous` must hold the scores of at least two items"):
        auc([1, 2], [3])
    with pytest.raises(DataError, match=r"`normal` must hold finite scores"):
        auc([1, math.nan], [3, 4])
    with pytest.raises(DataError, match="must score the same items"):
        auc_difference(([1, 2], [3, 4]), ([1, 2, 3], [3, 4]))
    with pytest.raises(DataError, match="at least one held-out normal item"):
        choose_threshold([], 0.05)
    with pytest.raises(ConfigError, match="`false_alarms`"):
        choose_threshold([1.0], 1.5)
