import random

import numpy as np
import pytest

from regard.metrics.bootstrap import ratio
from regard.metrics.text.ngrams import distinct1, distinct2

ANSWERS = ["i do not know", "i do not know", "yes i do"]


def measure(measured, answers, **keywords):
    return measured(answers, [["x"]] * len(answers), **keywords)


def test_distinct_1_by_hand():
    assert measure(distinct1, ANSWERS).value == pytest.approx(100 * 5 / 11)


def test_distinct_2_by_hand():
    # "i do", "do not", "not know", "yes i" among eight.
    assert measure(distinct2, ANSWERS).value == pytest.approx(50)


def test_result_has_name_and_counts():
    result = measure(distinct2, ANSWERS)
    assert (result.name, result.detail) == ("distinct-2", {"different": 4, "count": 8})


def test_distinct_of_empty_texts_is_zero():
    assert measure(distinct2, ["a", ""], num_bootstrap=40).interval == (0, 0)


def test_single_hypothesis_has_an_interval_of_zero_width():
    assert measure(distinct1, ["a a b"], num_bootstrap=40).interval == pytest.approx((200 / 3,) * 2)


def test_interval_resamples_jackknife_pseudo_values():
    generator = random.Random(2)
    answers = [" ".join(generator.choices("abcdefghij", k=1 + row % 4)) for row in range(25)]
    value = measure(distinct1, answers).value
    without = [
        measure(distinct1, answers[:row] + answers[row + 1 :]).value for row in range(len(answers))
    ]
    pulls = [value + 24 * (np.mean(without) - other) for other in without]
    wanted = ratio("x", pulls, [1] * 25, signature="s", num_bootstrap=100, scale=1)
    found = measure(distinct1, answers, num_bootstrap=100)
    assert found.interval == pytest.approx(wanted.interval)
    assert found.value == pytest.approx(wanted.value)


@pytest.mark.parametrize("measured", [distinct1, distinct2])
def test_interval_contains_the_value_of_new_samples(measured):
    generator = random.Random(3)
    words = range(300)
    shares = [1 / (word + 1) for word in words]

    def text():
        return " ".join(map(str, generator.choices(words, shares, k=generator.randint(3, 9))))

    found = [measure(measured, [text() for _ in range(60)], num_bootstrap=120) for _ in range(80)]
    wanted = np.mean([result.value for result in found])
    held = np.mean([low <= wanted <= high for low, high in (r.interval for r in found)])
    assert held > 0.85
    # The interval is no wider than the range of the values.
    spread = np.std([result.value for result in found])
    width = np.mean([high - low for low, high in (result.interval for result in found)])
    assert width == pytest.approx(2 * 1.96 * spread, rel=0.5)
