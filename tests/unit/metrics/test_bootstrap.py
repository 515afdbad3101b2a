import random

import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.metrics.bootstrap import SEED, percentile_interval, ratio, resamples
from regard.metrics.table import METRICS
from regard.metrics.text.error_rates import wer

NUM_SAMPLES = 80


@pytest.fixture(scope="module")
def answers():
    """Return sentences of unequal length, a third of them correct, some with two references."""
    generator = random.Random(4)
    texts = [" ".join(generator.choices("abcdefg", k=generator.randint(1, 9))) for _ in range(30)]
    hypotheses = [
        text if row % 3 == 0 else " ".join(c if generator.random() < 0.7 else "x" for c in text)
        for row, text in enumerate(texts)
    ]
    return hypotheses, [[text, "b a d"][: 1 + row % 2] for row, text in enumerate(texts)]


# CIDEr keeps the document frequencies of the test set; its interval is tested in test_cider.py.
DRAWN_WHOLE = [name for name in METRICS if not name.startswith("distinct") and name != "cider"]


@pytest.mark.parametrize("name", DRAWN_WHOLE)
def test_interval_equals_scoring_each_resample(name, answers):
    hypotheses, references = answers
    generator = np.random.default_rng(SEED)
    samples = [generator.choice(len(hypotheses), len(hypotheses)) for _ in range(NUM_SAMPLES)]
    wanted = percentile_interval(
        [
            METRICS[name](
                [hypotheses[row] for row in rows], [references[row] for row in rows]
            ).value
            for rows in samples
        ]
    )
    found = METRICS[name](hypotheses, references, num_bootstrap=NUM_SAMPLES)
    assert found.interval == pytest.approx(wanted, abs=1e-9)
    assert wanted[0] < found.value < wanted[1]


@pytest.mark.parametrize("name", METRICS)
def test_signature_of_every_metric_has_the_resampling(name, answers):
    assert "bs:40|seed:12345" in METRICS[name](*answers, num_bootstrap=40).signature


@pytest.mark.parametrize("name", METRICS)
def test_without_resampling_no_metric_has_an_interval(name, answers):
    result = METRICS[name](*answers)
    assert result.interval is None
    assert "bs:" not in result.signature


@pytest.mark.parametrize("name", METRICS)
def test_resampling_does_not_change_the_value(name, answers):
    assert METRICS[name](*answers, num_bootstrap=1).value == METRICS[name](*answers).value


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_refuses_negative_resamples(name, answers):
    with pytest.raises(ConfigError, match="`num_bootstrap` must be at least 0, but is -1"):
        METRICS[name](*answers, num_bootstrap=-1)


def test_every_resample_has_the_size_of_the_test_set():
    assert [drawn.sum() for drawn in resamples(7, 5)] == [7] * 5


def test_interval_excludes_one_fortieth_at_each_end():
    assert percentile_interval(range(80)) == (2, 77)


def test_interval_of_a_proportion_equals_the_binomial():
    hits = [True] * 300 + [False] * 700
    low, high = ratio("x", hits, [1] * 1000, signature="s", num_bootstrap=1000).interval
    spread = 1.96 * (0.3 * 0.7 / 1000) ** 0.5 * 100
    assert (low, high) == pytest.approx((30 - spread, 30 + spread), abs=0.4)


def test_resample_of_empty_references_does_not_divide_by_zero():
    low, high = wer(["", "a"], [[""], ["b"]], num_bootstrap=80).interval
    assert (low, high) == (0, 100)
