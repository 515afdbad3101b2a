import io
import logging
import sys
import threading
from types import SimpleNamespace

import pytest

from regard.core import progress
from regard.core.logging import logger
from regard.core.progress import (
    Notebook,
    Terminal,
    counting,
    find_screen,
    fit_bar,
    format_rate,
    format_seconds,
    show_message,
    track,
    with_label,
    without_progress,
)


class TerminalStream(io.StringIO):
    def isatty(self):
        return True


def set_stderr(monkeypatch, stream):
    """Set the stream of the module alone: pytest sets `sys.stderr` after the fixtures."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))


@pytest.fixture
def terminal(monkeypatch, level):
    level(logging.INFO)
    stream = TerminalStream()
    set_stderr(monkeypatch, stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("RANK", raising=False)
    return stream


@pytest.fixture
def displayed(monkeypatch):
    """Texts displayed by a fake IPython kernel: one list per display."""
    shown = []

    def display(page, display_id):
        shown.append([page])
        return SimpleNamespace(update=shown[-1].append)

    fake = SimpleNamespace(HTML=lambda text: text, display=display)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return shown


def lines_of(stream):
    return [line for line in stream.getvalue().replace("\x1b[K", "").split("\r") if line]


def test_fast_operation_shows_nothing(terminal, clock):
    assert list(track(range(1000), "Reading", total=1000)) == list(range(1000))
    assert terminal.getvalue() == ""


def test_slow_operation_shows_a_bar_that_is_removed(terminal, clock):
    for _ in track(range(4), "Predicting", total=4):
        clock(2)
    assert lines_of(terminal)[0].startswith("Predicting ━━━━━━━━━━──────")
    assert lines_of(terminal)[1].endswith("2/4  0:00:04")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_operation_without_a_total_shows_a_count(terminal, clock):
    for _ in track(range(2), "Reading pairs.tsv"):
        clock(2)
    assert lines_of(terminal)[-1] == "Reading pairs.tsv 2  0:00:04"


def test_batches_count_their_examples(terminal, clock):
    for _ in track(["ab", "cde"], "Predicting", total=5, size=len):
        clock(2)
    assert "2/5" in lines_of(terminal)[0]


def test_log_message_replaces_the_line(terminal, clock, monkeypatch):
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(terminal)])
    monkeypatch.setattr(logger, "filters", [])  # a server of another test may have one
    for number in track(range(2), "Predicting", total=2):
        clock(2)
        if number == 1:
            logger.info("a message")
    assert "\r\x1b[Ka message\n" in terminal.getvalue()
    assert not logger.filters


def test_only_the_outer_operation_is_suppressed(terminal, clock):
    for _ in track(range(2), "Outer", total=2):
        for _ in track(range(3), "Inner", total=3):
            clock(2)
    assert "Outer" in terminal.getvalue() and "Inner" not in terminal.getvalue()


def test_operations_can_be_hidden(terminal, clock):
    with without_progress():
        for _ in track(range(3), "Predicting", total=3):
            clock(20)
        with show_message("Fitting"):
            pass
    assert terminal.getvalue() == ""


def test_other_threads_show_nothing(terminal, clock):
    def work():
        for _ in track(range(3), "Reading", total=3):
            clock(2)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def test_line_is_removed_after_an_error(terminal, clock):
    with pytest.raises(ValueError), counting("Predicting", 3) as advance:
        clock(2)
        advance(1)
        raise ValueError
    assert terminal.getvalue().endswith("\r\x1b[K")
    with counting("Scoring", 3) as advance:
        clock(2)
        advance(1)
    assert "Scoring" in terminal.getvalue()


def test_label_is_part_of_the_description(terminal, clock):
    with with_label("2,001–4,000"):
        for _ in track(range(2), "Predicting", total=2):
            clock(2)
    assert lines_of(terminal)[0].startswith("Predicting 2,001–4,000 ━")


def test_announcement_is_suppressed_and_removed(terminal):
    with show_message("Fitting the tokenizer"):
        assert lines_of(terminal) == ["Fitting the tokenizer …"]
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_without_a_terminal_there_is_a_log_line_every_ten_seconds(messages, clock):
    for _ in track(range(30), "Predicting", total=30):
        clock(1)
    assert messages() == [
        "Predicting: 10 of 30, 0:00:20 left",
        "Predicting: 20 of 30, 0:00:10 left",
        "Predicting: 30 of 30, 0:00:00 left",
    ]


def test_intervals_of_log_lines_grow(messages, clock):
    for _ in track(range(3600), "Reading"):
        clock(1)
    assert 60 < len(messages()) < 100


@pytest.mark.parametrize("chosen", [logging.WARNING, logging.ERROR])
def test_quiet_logger_shows_nothing(terminal, clock, level, chosen):
    level(chosen)
    for _ in track(range(3), "Predicting", total=3):
        clock(20)
    assert terminal.getvalue() == ""
    assert find_screen() is None


def test_logger_without_a_level_shows_progress(terminal, level):
    level(logging.NOTSET)
    assert isinstance(find_screen(), Terminal)


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("RANK", "1")])
def test_dumb_terminals_and_other_processes_have_no_screen(terminal, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert find_screen() is None


def test_notebook_updates_one_output(displayed, clock, level):
    level(logging.NOTSET)
    for _ in track(range(3), "Predicting", total=3):
        clock(2)
    (pages,) = displayed
    assert "1/3" in pages[0] and "3/3" in pages[2] and "Predicting" not in pages[3]


def test_notebook_keeps_lines_and_escapes_them(displayed):
    screen = Notebook()
    screen.update("epoch 1")
    for number in range(progress.NOTEBOOK_LINES + 1):
        screen.write(f"<{number}>")
    assert "&lt;1&gt;\n" in displayed[0][-1] and "&lt;0&gt;" not in displayed[0][-1]
    assert displayed[0][-1].endswith("epoch 1</pre>")


def test_terminal_leaves_the_last_column_free(terminal):
    assert Terminal(terminal).width == 79


@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("width", [30, 60, 80])
def test_bar_fits_the_width(fraction, width):
    line = fit_bar("left", fraction, "1/2", width=width)
    assert line.startswith("left ") and line.endswith(" 1/2")
    assert len(line) == min(width, 49)


def test_bar_is_left_out_if_there_is_no_room():
    assert fit_bar("Predicting", 0.5, "1,000/2,000", width=20) == "Predicting 1,000/2,0"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0:00:00"), (59.6, "0:01:00"), (130, "0:02:10"), (93_784, "26:03:04")],
)
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (3.44, "3.4"),
        (9.96, "10"),
        (812.4, "812"),
        (999.6, "1.0k"),
        (7_123, "7.1k"),
        (123_456, "123k"),
        (2_500_000, "2.5M"),
    ],
)
def test_rates(value, text):
    assert format_rate(value) == text
