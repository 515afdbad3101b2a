import io
import logging
from dataclasses import replace

import pytest
from rich.console import Console

from regard.core.logging import logger
from regard.core.progress import Terminal
from regard.training.loggers.display import (
    BarDisplay,
    Clock,
    LineDisplay,
    Plan,
    choose_display,
    describe,
    describe_details,
    spell_metric,
)

PLAN = Plan(total_steps=2500, steps_per_epoch=250, max_epochs=10)


class Recorder:
    """A screen of any width that keeps all lines."""

    def __init__(self, width=79):
        self.width = width
        self.lines, self.written, self.is_cleared = [], [], False

    def update(self, line):
        self.lines.append(line)

    def write(self, line):
        self.written.append(line)

    def clear(self):
        self.is_cleared = True


def train_row(step, **others):
    row = {"kind": "train", "step": step, "epoch": 1, "seconds": 1.0, "loss": 1.4192, "nll": 1.4192}
    return {**row, "gradient_norm": 0.5, "tokens_per_second": 7123.4, "waiting": 0.0, **others}


def valid_row(step=500, *, value=31.42, metric="bleu", is_best=True, **metrics):
    metrics = metrics or {"loss": 1.5, "bleu": 31.42}
    return {
        "kind": "valid",
        "step": step,
        "epoch": 2,
        "value": value,
        "metric": metric,
        **metrics,
        "is_best": is_best,
    }


def started(display, plan=PLAN):
    display.start(plan)
    return display


def running_bar(clock, width, plan=PLAN):
    screen = Recorder(width)
    display = started(BarDisplay(screen), plan)
    for step in range(1, 1241):
        clock(0.1)
        display.advance(step)
    display.write(train_row(1240))
    display.write(valid_row(1000))
    return screen


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bar_fits_a_console(clock, width):
    line = running_bar(clock, width - 1).lines[-1]
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(line, markup=False, highlight=False)
    assert console.export_text().splitlines() == [line]
    assert line.startswith("epoch 5/10 ━") and "─ 1,240/2,500  loss 1.42" in line
    assert line.endswith("0:02:06")
    assert ("BLEU 31.4" in line and "7.1k tok/s" in line) == (width >= 80)


def test_bar_without_room_drops_throughput_first(clock):
    line = running_bar(clock, 63).lines[-1]
    assert "BLEU 31.4" in line and "tok/s" not in line


def test_bar_shows_the_best_score(clock):
    screen = Recorder()
    display = started(BarDisplay(screen))
    display.write(valid_row(500))
    display.write(valid_row(1000, value=12.0, loss=2.0, bleu=12.0, is_best=False))
    assert "BLEU 31.4" in screen.lines[-1]
    assert screen.written == [
        "Validation at step 500: loss 1.5, BLEU 31.42 (best so far)",
        "Validation at step 1,000: loss 2, BLEU 12",
    ]


def test_resumed_bar_shows_the_best_score_so_far(clock):
    screen = Recorder()
    started(BarDisplay(screen), Plan(step=600, total_steps=2500, best=valid_row(500)))
    assert "600/2,500" in screen.lines[0] and "BLEU 31.4" in screen.lines[0]


def test_bar_shows_a_validation_under_way_and_is_removed(clock):
    screen = Recorder()
    display = started(BarDisplay(screen))
    with display.validating():
        assert screen.lines[-1].startswith("validating ")
    display.close()
    assert screen.is_cleared


def test_bar_is_not_updated_at_every_step(clock):
    screen = Recorder()
    display = started(BarDisplay(screen))
    for step in range(1, 101):
        clock(0.01)
        display.advance(step)
    assert 9 <= len(screen.lines) <= 12


def test_training_by_patience_alone_shows_the_elapsed_time(clock):
    plan = Plan(patience=5, steps_per_epoch=250)
    line = running_bar(clock, 79, plan).lines[-1]
    assert line.startswith("epoch 5  step 1,240  loss 1.42") and line.endswith("0:02:04 elapsed")


def test_remaining_time_is_a_limit_with_patience(clock):
    line = running_bar(clock, 79, Plan(total_steps=2500, patience=5)).lines[-1]
    assert line.endswith("≤0:02:06")


def test_number_of_epochs_is_shown_if_it_is_the_limit(clock):
    assert PLAN.epoch(251) == "2/10"
    assert replace(PLAN, total_steps=2000).epoch(251) == "2"


def test_unit_of_throughput_is_shown(clock):
    line = running_bar(clock, 79, Plan(total_steps=2500, unit="examples")).lines[-1]
    assert "7.1k examples/s" in line


def measured(clock, plan, *, num_steps, step_seconds=1.0, every=0, validation_seconds=0.0):
    measured = Clock(plan)
    for step in range(1, num_steps + 1):
        clock(step_seconds)
        measured.add_step()
        if every and step % every == 0:
            with measured.validation():
                clock(validation_seconds)
    return measured


def test_remaining_time_of_steps(clock):
    assert measured(clock, Plan(total_steps=100), num_steps=20).remaining(20) == pytest.approx(80)


def test_remaining_time_has_that_of_validations(clock):
    plan = Plan(total_steps=100, validate_every=10)
    clocked = measured(clock, plan, num_steps=20, every=10, validation_seconds=30)
    assert clocked.remaining(20) == pytest.approx(80 + 8 * 30)


def test_remaining_time_has_the_last_validation(clock):
    plan = Plan(total_steps=25, validate_every=10)
    clocked = measured(clock, plan, num_steps=20, every=10, validation_seconds=30)
    assert clocked.remaining(20) == pytest.approx(5 + 30)


def test_remaining_time_is_that_of_the_nearest_limit(clock):
    plan = Plan(total_steps=100, max_seconds=60)
    assert measured(clock, plan, num_steps=20).remaining(20) == pytest.approx(40)
    plan = Plan(total_steps=30, max_seconds=60)
    assert measured(clock, plan, num_steps=20).remaining(20) == pytest.approx(10)


def test_remaining_time_counts_time_before_a_resume(clock):
    plan = Plan(step=50, seconds=45, max_seconds=60)
    assert Clock(plan).remaining(50) == pytest.approx(15)


def test_remaining_time_is_unknown_without_a_limit_or_a_step(clock):
    assert measured(clock, Plan(), num_steps=20).remaining(20) is None
    assert Clock(Plan(total_steps=10)).remaining(0) is None


def test_remaining_time_follows_a_slower_machine(clock):
    clocked = measured(clock, Plan(total_steps=10_000), num_steps=200)
    for _ in range(60):
        clock(5)
        clocked.add_step()
    assert clocked.remaining(260) > 0.95 * 5 * 9_740


def test_plain_lines_appear_in_growing_intervals(clock, messages):
    display = started(LineDisplay())
    for step in range(50, 2501, 50):
        clock(2.5)
        display.advance(step)
        display.write(train_row(step))
    assert messages()[0].startswith("epoch 1/10, step 50/2,500: loss 1.419, 7.1k tok/s")
    assert 10 <= len(messages()) <= 13
    assert "left" in messages()[1]


def test_plain_lines_show_waiting_for_data(clock, messages):
    display = started(LineDisplay())
    display.write(train_row(50, waiting=0.051))
    clock(20)
    display.write(train_row(100, waiting=0.05))
    assert "5% of the time waiting for data" in messages()[0]
    assert "waiting" not in messages()[1]


def test_details_are_debug_messages(clock, messages):
    logger.setLevel(logging.DEBUG)
    display = started(BarDisplay(Recorder()))
    display.write(train_row(50, learning_rate=0.001))
    assert messages() == ["step 50: loss 1.419, gradient norm 0.5, waiting 0, learning rate 0.001"]


def test_nll_is_shown_where_it_differs():
    assert "nll 1.2" in describe_details(train_row(50, nll=1.2))


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (valid_row(), "Validation at step 500: loss 1.5, BLEU 31.42 (best so far)"),
        (
            valid_row(value=-6.4, metric="wer", is_best=False, loss=0.25, wer=6.4),
            "Validation at step 500: loss 0.25, WER 6.4",
        ),
        ({**valid_row(), "kind": "average"}, "Average of weights at step 500: loss 1.5, BLEU"),
        ({"kind": "valid", "step": 5, "value": 0.5}, "Validation at step 5: value 0.5"),
    ],
)
def test_validations_in_words(row, text):
    assert describe(row, plan=PLAN).startswith(text)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("steps", "Stopped after 4,000 steps (175 s): the limit of train.max_steps."),
        ("epochs", "the limit of train.max_epochs."),
        ("minutes", "the limit of train.max_minutes."),
        ("patience", "3 validations without improvement (train.patience)."),
        ("interrupted", "Interrupted after 4,000 steps (175 s)."),
    ],
)
def test_end_in_words(reason, text):
    row = {"kind": "stop", "step": 4000, "seconds": 175.2, "reason": reason}
    line = describe(row, plan=Plan(patience=3), best=valid_row(3500))
    assert text in line and line.endswith(" Best validation BLEU 31.42 at step 3,500.")
    assert "Best" not in describe(row, plan=Plan(patience=3))


def test_end_of_a_long_training_has_hours():
    row = {"kind": "stop", "step": 4000, "seconds": 8000.0, "reason": "steps"}
    assert "(2:13:20)" in describe(row, plan=PLAN)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (valid_row(value=-1.5, metric="loss", loss=1.5, perplexity=4.48), "loss 1.5 at"),
        (valid_row(value=-6.4, metric="wer", loss=0.25, wer=6.4), "WER 6.4 at"),
        (valid_row(value=float("nan"), loss=1.0, bleu=float("nan")), ""),
    ],
)
def test_best_score_has_the_name_of_its_metric(row, text):
    end = {"kind": "stop", "step": 9, "seconds": 1.0, "reason": "steps"}
    line = describe(end, plan=PLAN, best=row)
    assert text in line and ("Best" in line) == bool(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bleu_char", "BLEU char"),
        ("bleu4", "BLEU4"),
        ("accuracy@5", "accuracy@5"),
        ("gradient_norm", "gradient norm"),
        ("psnr", "PSNR"),
    ],
)
def test_metrics_are_spelt_as_in_papers(name, text):
    assert spell_metric(name) == text


def test_display_without_a_terminal_is_plain_lines(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(choose_display(), LineDisplay)


def test_display_on_a_terminal_is_a_bar_on_standard_error(monkeypatch, capsys, clock):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("regard.training.loggers.display.find_screen", lambda: Terminal(terminal))
    display = choose_display()
    started(display).write(valid_row())
    display.close()
    assert "epoch 1/10 ─" in terminal.getvalue() and "BLEU 31.42" in terminal.getvalue()
    assert capsys.readouterr().out == ""
