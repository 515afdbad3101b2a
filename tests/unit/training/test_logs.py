import io
import json
import logging
import time

import pytest
import torch

from regard.core.files import read_json_lines
from regard.core.logging import logger
from regard.training.logs import (
    BarDisplay,
    LineDisplay,
    Meter,
    TrainingLog,
    choose_display,
    describe,
)


class Screen:
    def __init__(self):
        self.events = []

    def start(self, step, total_steps):
        self.events.append(("start", step, total_steps))

    def advance(self, step):
        self.events.append(("advance", step))

    def show(self, row):
        self.events.append(("show", row["step"]))

    def stop(self):
        self.events.append(("stop",))


@pytest.fixture
def lines(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(stream)])
    before = logger.level
    logger.setLevel(logging.INFO)
    yield lambda: stream.getvalue().splitlines()
    logger.setLevel(before)


def train_row(step, seconds):
    return {"kind": "train", "step": step, "seconds": seconds, "loss": 2.5}


def test_rows_are_written_as_json_lines(tmp_path):
    rows = [{"kind": "train", "step": 1}, {"kind": "stop", "step": 2}]
    log = TrainingLog(tmp_path / "journal.jsonl", Screen())
    for row in rows:
        log.write(row)
    assert read_json_lines(tmp_path / "journal.jsonl") == rows


def test_truncate_drops_later_steps_only(tmp_path):
    log = TrainingLog(tmp_path / "journal.jsonl", Screen())
    for step in (1, 2, 3):
        log.write({"kind": "train", "step": step})
    log.truncate(after=2)
    assert [row["step"] for row in read_json_lines(tmp_path / "journal.jsonl")] == [1, 2]


def test_truncate_drops_an_incomplete_line(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"kind": "train", "step": 1}\n{"kind": "tr')
    log = TrainingLog(path, Screen())
    log.truncate(after=5)
    log.write({"kind": "train", "step": 2})
    assert [row["step"] for row in read_json_lines(path)] == [1, 2]


def test_display_gets_all_events_and_is_stopped_after_an_error(tmp_path):
    screen = Screen()
    log = TrainingLog(tmp_path / "journal.jsonl", screen)
    with pytest.raises(RuntimeError), log.shown(3, 10):
        log.advance(4)
        log.write({"kind": "train", "step": 4})
        raise RuntimeError
    assert screen.events == [("start", 3, 10), ("advance", 4), ("show", 4), ("stop",)]


def test_row_is_formatted_as_text():
    row = {
        "kind": "valid",
        "step": 1200,
        "seconds": 3.0,
        "loss": 2.34567,
        "tokens_per_second": 12345.6,
        "num_lines": 2000,
        "is_best": True,
        "reason": "patience",
    }
    assert describe(row) == (
        "valid: step 1,200, loss 2.346, tokens per second 12,346, num lines 2,000, "
        "reason patience, best so far"
    )


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [(0.0, ""), (0.05, ""), (0.0501, ", 5% of the time waiting for data"), (1.0, ", 100% of the")],
)
def test_waiting_is_reported_above_a_threshold(waiting, expected):
    text = describe({"kind": "train", "step": 1, "loss": 2.5, "waiting": waiting, "epoch": 1})
    assert text.startswith(f"train: step 1, loss 2.5, epoch 1{expected}")
    assert ("waiting" in text) == bool(expected)


def test_validation_value_is_shown_under_the_name_of_its_metric():
    row = {"kind": "valid", "step": 5, "value": -6.4, "loss": 0.25, "wer": 6.4, "is_best": True}
    assert describe(row) == "valid: step 5, loss 0.25, wer 6.4, best so far"


def test_plain_lines_show_the_remaining_time(lines):
    display = LineDisplay()
    display.start(0, 100)
    display.show(train_row(10, 60.0))
    display.show(train_row(20, 120.0))
    assert lines() == [
        "train: step 10, loss 2.5",
        "train: step 20, loss 2.5, 8 min left",
    ]


def test_plain_lines_show_no_remaining_time_without_a_last_step(lines):
    display = LineDisplay()
    display.start(0, 0)
    display.show(train_row(10, 60.0))
    display.show(train_row(20, 120.0))
    assert lines()[-1] == "train: step 20, loss 2.5"


def test_display_without_a_terminal_is_plain_lines(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert isinstance(choose_display(), LineDisplay)


def test_display_on_a_terminal_is_a_progress_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.delenv("RANK", raising=False)
    assert isinstance(choose_display(), BarDisplay)


@pytest.mark.parametrize("total_steps", [10, 0])
def test_bar_shows_metrics_beside_it_and_events_above(monkeypatch, total_steps):
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stdout", terminal)
    display = BarDisplay()
    display.start(0, total_steps)
    display.advance(5)
    display.show(train_row(5, 1.0))
    display.show({"kind": "valid", "step": 5, "value": 0.5})
    display.stop()
    event, bar = terminal.getvalue().splitlines()[0], terminal.getvalue().splitlines()[-1]
    assert event == "valid: step 5, value 0.5"
    assert "loss 2.5" in bar and f"5/{total_steps or '?'}" in bar.replace(" ", "")


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
