import json
import math

import pytest

from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.training.schedules import (
    SCHEDULES,
    ConstantConfig,
    CosineConfig,
    InverseSqrtConfig,
    InverseTimeConfig,
    PlateauConfig,
    StepConfig,
    build_schedule,
    is_better,
)

# Settings, step, epoch, factor worked out by hand; training has 110 steps.
POINTS = [
    (ConstantConfig(), 1, 0, 1.0),
    (ConstantConfig(warmup_steps=4), 1, 0, 0.25),
    (ConstantConfig(warmup_steps=4), 9, 0, 1.0),
    (InverseTimeConfig(), 1, 0, 1.0),
    (InverseTimeConfig(), 70, 3, 0.25),
    (StepConfig(every_steps=10, gamma=0.5), 10, 0, 1.0),
    (StepConfig(every_steps=10, gamma=0.5), 11, 0, 0.5),
    (StepConfig(every_steps=10, gamma=0.5), 21, 0, 0.25),
    (InverseSqrtConfig(warmup_steps=100), 1, 0, 0.01),
    (InverseSqrtConfig(warmup_steps=100), 100, 0, 1.0),
    (InverseSqrtConfig(warmup_steps=100), 400, 0, 0.5),
    (CosineConfig(warmup_steps=10), 5, 0, 0.5),
    (CosineConfig(warmup_steps=10), 10, 0, 1.0),
    (CosineConfig(warmup_steps=10), 60, 0, 0.5),
    (CosineConfig(warmup_steps=10, min_factor=0.2), 110, 0, 0.2),
    (CosineConfig(warmup_steps=10, min_factor=0.2), 500, 0, 0.2),
    (PlateauConfig(warmup_steps=4), 2, 0, 0.5),
    (PlateauConfig(), 50, 0, 1.0),
]


@pytest.mark.parametrize(("config", "step", "epoch", "factor"), POINTS)
def test_factor_equals_values_by_hand(config, step, epoch, factor):
    assert build_schedule(config, 110).factor(step, epoch) == pytest.approx(factor, abs=1e-12)


def test_every_schedule_is_tested():
    assert {type(point[0]) for point in POINTS} == set(SCHEDULES)


def test_inverse_sqrt_equals_the_formula_of_the_paper():
    dim, warmup, step = 512, 4000, 9000
    base = 1 / math.sqrt(dim * warmup)
    ours = base * build_schedule(InverseSqrtConfig(warmup_steps=warmup), 0).factor(step, 0)
    assert ours == pytest.approx(dim**-0.5 * min(step**-0.5, step * warmup**-1.5))


def plateau(*values):
    schedule = build_schedule(PlateauConfig(patience=2, gamma=0.1), 0)
    for value in values:
        schedule.observe(value)
    return schedule


@pytest.mark.parametrize(
    ("values", "factor"),
    [
        ((1.0, 0.9), 1.0),
        ((1.0, 0.9, 0.8), 0.1),
        ((1.0, 0.9, 1.1, 1.0), 1.0),
        ((1.0, 0.9, 0.8, 0.7, 0.6), 0.01),
        ((math.nan, math.nan), 0.1),
    ],
)
def test_plateau_reduces_the_rate_after_its_patience(values, factor):
    assert plateau(*values).factor(5, 0) == pytest.approx(factor)


def test_plateau_state_survives_json():
    before, after = plateau(1.0, 0.9), plateau()
    after.restore(json.loads(json.dumps(before.state())))
    for schedule in (before, after):
        schedule.observe(0.8)
    assert after.factor(5, 0) == before.factor(5, 0) == pytest.approx(0.1)


def test_plateau_ignores_the_state_of_another_schedule():
    schedule = plateau()
    schedule.restore(build_schedule(ConstantConfig(), 0).state())
    assert schedule.factor(5, 0) == 1.0


def test_nan_is_never_better():
    assert not is_better(math.nan, None)


def test_first_value_is_better():
    assert is_better(-1e9, None)


def test_equal_is_not_better():
    assert not is_better(1.0, 1.0)


def test_cosine_without_a_last_step_is_refused():
    with pytest.raises(ConfigError, match="needs the number of the last step. Set `max_steps`"):
        build_schedule(CosineConfig(), 0)


def test_cosine_shortens_a_too_long_warmup_with_a_notice(caplog, monkeypatch):
    monkeypatch.setattr(logger, "propagate", True)
    caplog.set_level("INFO", logger="regard")
    schedule = build_schedule(CosineConfig(warmup_steps=4000), 100)
    assert [schedule.factor(step, 0) for step in (5, 10, 100)] == [0.5, 1.0, 0.0]
    assert "(4,000) would not end before the last step (100); warming up for 10" in caplog.text
    assert {record.levelname for record in caplog.records} == {"INFO"}


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (ConstantConfig, {"warmup_steps": -1}, "`warmup_steps` must be at least 0"),
        (StepConfig, {"every_steps": 0}, "`every_steps` must be at least 1"),
        (StepConfig, {"gamma": 1.5}, "`gamma` must be between 0 and 1"),
        (InverseSqrtConfig, {"warmup_steps": 0}, "`warmup_steps` must be at least 1"),
        (CosineConfig, {"min_factor": 2.0}, "`min_factor` must be between 0 and 1"),
        (CosineConfig, {"warmup_steps": -1}, "`warmup_steps` must be at least 0"),
        (PlateauConfig, {"patience": 0}, "`patience` must be at least 1"),
        (PlateauConfig, {"gamma": -0.5}, "`gamma` must be between 0 and 1"),
        (PlateauConfig, {"warmup_steps": -1}, "`warmup_steps` must be at least 0"),
    ],
)
def test_error_names_the_invalid_setting(cls, values, message):
    with pytest.raises(ConfigError, match=message):
        cls(**values)
