import logging
from dataclasses import replace

import pytest

from regard.core.checksums import CHECKSUMS
from regard.core.files import read_json, write_json
from regard.core.logging import logger
from tests.training_bench import SHORT, Bench

CONFIG = replace(SHORT, max_epochs=20, validate_every=1, patience=0)
FALLING = [0.0] * 50
RISING = [1.0, 0.9, 0.91, 0.92, 0.95, 1.0, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]


@pytest.fixture
def reports(caplog, monkeypatch):
    monkeypatch.setattr(logger, "propagate", True)
    caplog.set_level(logging.WARNING)
    return lambda: [message for message in caplog.messages if "over-fits" in message]


def train(run, losses, *, values=None, **settings):
    config = replace(CONFIG, **{"max_steps": len(losses), **settings})
    bench = Bench(run, config, values=values or [1.0, *FALLING], losses=losses)
    bench.run()
    return bench


def test_risen_loss_is_reported_once(tmp_path, reports):
    train(tmp_path, RISING)
    (report,) = reports()
    assert "5 validations (0.9 → 1.2)" in report and "train.patience=5" in report


@pytest.mark.parametrize(
    "losses",
    [RISING[:6], [1.0, 1.01, 1.03, 1.02, 1.04, 1.02, 1.03, 1.01], [1.0] * 10, [float("nan")] * 9],
)
def test_short_or_small_rises_are_not_reported(tmp_path, reports, losses):
    train(tmp_path, losses)
    assert not reports()


def test_noise_does_not_hide_a_rise(tmp_path, reports):
    train(tmp_path, [1.0, 1.2, 1.1, 1.3, 1.2, 1.25])
    assert "(1 → 1.25)" in reports()[0]


def test_new_best_validation_allows_another_report(tmp_path, reports):
    train(tmp_path, RISING, values=[1.0, *[0.0] * 7, 2.0, *FALLING])
    assert len(reports()) == 2


def test_stop_by_patience_is_not_reported(tmp_path, reports):
    train(tmp_path, RISING, values=[-loss for loss in RISING], patience=5)
    assert not reports()


def test_other_metric_with_patience_is_reported_without_advice_on_it(tmp_path, reports):
    train(tmp_path, RISING, values=range(1, 20), patience=5)
    assert "5 validations (0.9 → 1.2)" in reports()[0] and "train.patience" not in reports()[0]


@pytest.mark.parametrize("stop_at", [3, 6, 9])
def test_report_survives_a_resume(tmp_path, reports, stop_at):
    values = [1.0, *FALLING]
    whole = train(tmp_path / "whole", RISING)
    train(tmp_path / "parts", RISING[:stop_at])
    config = replace(CONFIG, max_steps=len(RISING))
    second = Bench(tmp_path / "parts", config, values=values[stop_at:], losses=RISING[stop_at:])
    second.trainer.resume()
    second.run()
    ours, theirs = (replace(b.trainer.progress, seconds=0) for b in (second, whole))
    assert ours == theirs
    assert len(reports()) == 2


def test_training_state_without_these_counters_is_resumed(tmp_path):
    train(tmp_path, RISING[:3])
    path = tmp_path / "resume" / "training.json"
    saved = read_json(path)
    for name in ("lowest_loss", "higher_losses", "is_overfitting_reported"):
        del saved["state"]["progress"][name]
    write_json(path, saved)
    path.with_name(CHECKSUMS).unlink()  # which states of earlier versions do not have
    bench = Bench(tmp_path, CONFIG)
    bench.trainer.resume()
    assert bench.trainer.progress.step == 3 and bench.trainer.progress.lowest_loss is None
