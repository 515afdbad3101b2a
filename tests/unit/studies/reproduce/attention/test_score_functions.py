import pytest

from regard.attention.scores import SCORES
from regard.studies.reproduce.attention import score_functions
from regard.studies.reproduce.attention.score_functions import (
    FORMULAS,
    SHOWN_FORMULAS,
    accepts_widths,
    compare_formulas,
    measure_times,
)


def test_every_score_has_a_formula():
    assert list(FORMULAS) == list(SHOWN_FORMULAS) == list(SCORES)


def test_formulas_by_hand_equal_the_modules():
    rows = compare_formulas()
    for row in rows.values():
        assert row["by hand"] == pytest.approx(row["module"], abs=1e-6)
    # The numbers of the lectures for cat and dog.
    assert rows["dot"]["by hand"] == pytest.approx(1.05)
    assert rows["scaled_dot"]["by hand"] == pytest.approx(0.606, abs=5e-4)


def test_dot_products_need_equal_widths():
    assert not accepts_widths("scaled_dot", 64, 48)
    assert accepts_widths("additive", 64, 48)


def test_every_score_is_timed(monkeypatch):
    monkeypatch.setattr(score_functions, "NUM_REPEATS", 1)
    monkeypatch.setattr(score_functions, "TIMED_DIM", 8)
    times = measure_times()
    assert list(times) == list(SCORES) and min(times.values()) >= 0
