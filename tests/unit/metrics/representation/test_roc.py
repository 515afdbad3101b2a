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
def numbers(request):
    """Whole numbers, so that many of them tie."""
    generator = np.random.default_rng(request.param)
    return generator.integers(0, 8, 37).astype(float), generator.integers(2, 11, 23).astype(float)


def count_pairs(normal, odd):
    pairs = [(low, high) for low in normal for high in odd]
    return sum((high > low) + (high == low) / 2 for low, high in pairs) / len(pairs)


def test_auc_is_the_share_of_pairs_in_order(numbers):
    assert auc(*numbers).value == pytest.approx(count_pairs(*numbers), abs=1e-12)


def test_auc_is_the_area_under_the_curve(numbers):
    alarms, found = zip(*roc_curve(*numbers), strict=True)
    assert np.trapezoid(found, alarms) == pytest.approx(auc(*numbers).value, abs=1e-12)
    assert (alarms[0], found[0], alarms[-1], found[-1]) == (0, 0, 1, 1)


def test_auc_and_curve_are_those_of_scikit_learn(numbers):
    judge = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    normal, odd = numbers
    labels, values = [0] * len(normal) + [1] * len(odd), np.concatenate(numbers)
    assert auc(normal, odd).value == pytest.approx(judge.roc_auc_score(labels, values))
    alarms, found, _ = judge.roc_curve(labels, values, drop_intermediate=False)
    assert roc_curve(normal, odd) == pytest.approx(list(zip(alarms, found, strict=True)))


def test_interval_is_that_of_resampling(numbers):
    normal, odd = numbers
    generator = np.random.default_rng(5)
    values = [
        auc(generator.choice(normal, len(normal)), generator.choice(odd, len(odd))).value
        for _ in range(400)
    ]
    low, high = auc(normal, odd).interval
    reach = 1.96 * np.std(values)
    assert (high - low) / 2 == pytest.approx(reach, rel=0.25)


def test_interval_covers_the_truth_as_often_as_it_says():
    # For two normal distributions a distance apart, the area is known.
    distance, truth = 1.0, 0.5 * math.erfc(-1.0 / 2)
    generator, hits = np.random.default_rng(3), 0
    for _ in range(300):
        low, high = auc(generator.normal(size=60), generator.normal(distance, size=50)).interval
        hits += low <= truth <= high
    assert 0.91 < hits / 300 < 0.985


def test_perfect_order_has_an_area_of_one():
    found = auc([1, 2, 3], [4, 5])
    assert (found.value, found.interval) == (1.0, (1.0, 1.0))
    assert "DeLong" in found.signature


def test_system_does_not_differ_from_itself(numbers):
    found = auc_difference(numbers, numbers)
    assert (found.value, found.p_value, found.interval) == (0.0, 1.0, (0.0, 0.0))


def test_difference_is_that_of_the_areas_and_narrower_than_unpaired(numbers):
    normal, odd = numbers
    generator = np.random.default_rng(1)
    other = normal + generator.normal(size=len(normal)), odd + generator.normal(size=len(odd))
    found = auc_difference(numbers, other)
    before, after = auc(*numbers), auc(*other)
    assert found.value == pytest.approx(after.value - before.value)
    reaches = [(one.interval[1] - one.interval[0]) / 2 for one in (before, after)]
    assert (found.interval[1] - found.interval[0]) / 2 < math.hypot(*reaches)


def test_clear_difference_is_no_chance():
    generator = np.random.default_rng(2)
    normal, odd = generator.normal(size=200), generator.normal(2, size=200)
    guesses = generator.normal(size=200), generator.normal(size=200)
    assert auc_difference(guesses, (normal, odd)).p_value < 1e-6


@pytest.mark.parametrize("share", [0.0, 0.05, 0.31, 1.0])
def test_threshold_keeps_the_share_of_false_alarms(share):
    normal = np.random.default_rng(0).normal(size=101)
    threshold = choose_threshold(normal, share)
    assert (normal > threshold).mean() <= share
    lower = normal[normal < threshold]
    # The next lower number would let more through.
    assert not len(lower) or (normal > lower.max()).mean() > share


def test_share_beyond_a_threshold():
    found = share_above([1, 2, 3, 4], 2, name="found", num_bootstrap=50)
    assert (found.name, found.value) == ("found", 50.0)
    assert found.interval[0] < 50 < found.interval[1]


def test_bad_numbers_are_named():
    with pytest.raises(DataError, match=r"`anomalous` must hold the scores of at least two items"):
        auc([1, 2], [3])
    with pytest.raises(DataError, match=r"`normal` must hold finite scores"):
        auc([1, math.nan], [3, 4])
    with pytest.raises(DataError, match="must score the same items"):
        auc_difference(([1, 2], [3, 4]), ([1, 2, 3], [3, 4]))
    with pytest.raises(DataError, match="at least one normal item"):
        choose_threshold([], 0.05)
    with pytest.raises(ConfigError, match="`false_alarms`"):
        choose_threshold([1.0], 1.5)
