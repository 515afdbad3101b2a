import json
import time

import pytest
import torch

from regard.training.meter import Meter


def filled():
    meter = Meter(torch.device("cpu"))
    for loss, count, norm in ((6.0, 2, 1.0), (2.0, 2, 3.0)):
        sums = torch.tensor([loss, loss / 2, count], dtype=torch.float64)
        meter.add(sums, torch.tensor(norm), num_tokens=count)
    return meter


@pytest.mark.parametrize(("name", "value"), [("loss", 2.0), ("nll", 1.0), ("gradient_norm", 2.0)])
def test_means_are_per_token_and_norms_per_step(name, value):
    assert filled().read()[name] == value


def test_reading_nothing_gives_zeros():
    assert Meter(torch.device("cpu")).read()["loss"] == 0.0


def test_reset_forgets():
    meter = filled()
    meter.reset()
    assert meter.read()["loss"] == 0.0 and meter.num_steps == 0


def test_state_goes_through_json_without_loss():
    meter = Meter(torch.device("cpu"))
    meter.restore(json.loads(json.dumps(filled().state())))
    state, expected = meter.state(), filled().state()
    assert {**state, "seconds": 0} == {**expected, "seconds": 0}


def test_pause_does_not_count_as_time(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    meter = filled()
    clock[0] += 2
    with meter.paused():
        clock[0] += 60
    assert meter.read()["tokens_per_second"] == 2.0


def test_waiting_is_a_share_of_the_time_that_was_not_paused(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    meter = filled()
    for _ in range(2):
        with meter.waiting():
            clock[0] += 0.5
        clock[0] += 1.5
    with meter.paused():
        clock[0] += 60
    assert meter.read()["waiting"] == 0.25
    resumed = Meter(torch.device("cpu"))
    resumed.restore(meter.state())
    assert resumed.read()["waiting"] == 0.25
    resumed.reset()
    assert resumed.read()["waiting"] == 0.0


def test_state_from_before_waiting_was_measured_is_taken_up():
    state = filled().state()
    del state["waited"]
    meter = Meter(torch.device("cpu"))
    meter.restore(state)
    assert meter.read()["waiting"] == 0.0 and meter.num_steps == 2
