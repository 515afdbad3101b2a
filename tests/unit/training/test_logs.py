import json
import time
from contextlib import nullcontext

import pytest
import torch

from regard.core.files import read_json_lines
from regard.core.progress import track
from regard.training.logs import Meter, TrainingLog
from regard.training.plan import Plan


class Screen:
    def __init__(self):
        self.events = []

    def truncate(self, after):
        self.events.append(("truncate", after))

    def start(self, plan):
        self.events.append(("start", plan.step, plan.best and plan.best["step"]))

    def advance(self, step):
        self.events.append(("advance", step))

    def validating(self):
        self.events.append(("validating",))
        return nullcontext()

    def write(self, row):
        self.events.append(("write", row["step"]))

    def close(self):
        self.events.append(("close",))


def test_rows_are_written_as_json_lines(tmp_path):
    rows = [{"kind": "train", "step": 1}, {"kind": "stop", "step": 2}]
    log = TrainingLog(tmp_path / "journal.jsonl", [Screen()])
    for row in rows:
        log.write(row)
    assert read_json_lines(tmp_path / "journal.jsonl") == rows


def test_truncate_drops_later_steps_only(tmp_path):
    log = TrainingLog(tmp_path / "journal.jsonl", [Screen()])
    for step in (1, 2, 3):
        log.write({"kind": "train", "step": step, "epoch": 1, "seconds": 0.1})
    log.truncate(after=2)
    assert [row["step"] for row in read_json_lines(tmp_path / "journal.jsonl")] == [1, 2]


def test_loggers_get_the_step_after_which_events_are_repeated(tmp_path):
    screen = Screen()
    TrainingLog(tmp_path / "journal.jsonl", [screen]).truncate(after=2)
    assert screen.events == [("truncate", 2)]


def test_truncate_drops_an_incomplete_line(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"kind": "train", "step": 1, "epoch": 1, "seconds": 0.1}\n{"kind": "tr')
    log = TrainingLog(path, [Screen()])
    log.truncate(after=5)
    log.write({"kind": "train", "step": 2, "epoch": 1, "seconds": 0.2})
    assert [row["step"] for row in read_json_lines(path)] == [1, 2]


def test_logger_gets_all_events_and_is_closed_after_an_error(tmp_path):
    screen = Screen()
    log = TrainingLog(tmp_path / "journal.jsonl", [screen])
    with pytest.raises(RuntimeError), log.opened(Plan(step=3)):
        log.advance(4)
        with log.validating():
            pass
        log.write({"kind": "train", "step": 4})
        raise RuntimeError
    assert screen.events == [
        ("start", 3, None),
        ("advance", 4),
        ("validating",),
        ("write", 4),
        ("close",),
    ]


def test_resumed_display_gets_the_best_validation(tmp_path):
    screen = Screen()
    log = TrainingLog(tmp_path / "journal.jsonl", [screen])
    for step, is_best in ((5, True), (10, True), (15, False)):
        row = {"kind": "valid", "step": step, "epoch": 1, "seconds": 0.1}
        log.write({**row, "value": 1.0, "is_best": is_best})
    with log.opened(Plan(step=15)):
        pass
    assert ("start", 15, 10) in screen.events


def test_validations_show_no_progress_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.core.progress.Counter", None)
    with TrainingLog(tmp_path / "journal.jsonl", [Screen()]).opened(Plan()):
        assert list(track([1, 2], "Predicting")) == [1, 2]


def filled():
    meter = Meter(torch.device("cpu"))
    for loss, count, norm in ((6.0, 2, 1.0), (2.0, 2, 3.0)):
        sums = torch.tensor([loss, loss / 2, count], dtype=torch.float64)
        meter.add(sums, torch.tensor(norm), num_tokens=count)
    return meter


@pytest.mark.parametrize(("name", "value"), [("loss", 2.0), ("nll", 1.0), ("gradient_norm", 2.0)])
def test_means_are_per_token_and_norms_per_step(name, value):
    assert filled().read()[name] == value


def test_empty_meter_reads_zero():
    assert Meter(torch.device("cpu")).read()["loss"] == 0.0


def test_reset_clears_the_sums():
    meter = filled()
    meter.reset()
    assert meter.read()["loss"] == 0.0 and meter.num_steps == 0


def test_meter_state_survives_json():
    meter = Meter(torch.device("cpu"))
    meter.restore(json.loads(json.dumps(filled().state())))
    state, expected = meter.state(), filled().state()
    assert {**state, "seconds": 0} == {**expected, "seconds": 0}


def test_paused_time_is_excluded_from_throughput(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    meter = filled()
    clock[0] += 2
    with meter.paused():
        clock[0] += 60
    assert meter.read()["tokens_per_second"] == 2.0


def test_waiting_is_relative_to_unpaused_time(monkeypatch):
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


def test_meter_state_without_waiting_time_is_restored():
    state = filled().state()
    del state["waited"]
    meter = Meter(torch.device("cpu"))
    meter.restore(state)
    assert meter.read()["waiting"] == 0.0 and meter.num_steps == 2
