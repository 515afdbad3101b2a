"""Progress of prediction for many sources."""

import pytest

from regard.core import progress
from regard.core.progress import track
from regard.runs.prediction.progress import SourceCounter


class Screen:
    width = 79

    def __init__(self):
        self.lines = []

    def update(self, line):
        self.lines.append(line)

    def clear(self):
        self.lines.append("")


@pytest.fixture
def screen(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(progress, "find_screen", lambda: screen)
    return screen


def test_total_is_estimated_from_the_part_that_is_read(screen, clock):
    read = [0.0]
    with SourceCounter("lines", lambda: read[0]) as counter:
        for _ in range(2):
            read[0] += 0.2
            with counter.group(2_000):
                clock(4)
    first, *_, last, cleared = screen.lines
    assert first == f"Predicting ━━━━━━{'─' * 26} 2,000/~10,000  500 lines/s  0:00:16"
    assert last.endswith("4,000/~10,000  500 lines/s  0:00:12")
    assert cleared == ""


def test_progress_moves_within_a_group(screen, clock):
    with SourceCounter("lines", lambda: 0.5) as counter, counter.group(1_000):
        for _ in track(range(10), "Tokenising", total=10):
            clock(1)
        for _ in track(range(4), "Predicting", total=4):
            clock(10)
    counts = [line.split("─")[-1].split()[0] for line in screen.lines if "/~" in line]
    assert [*dict.fromkeys(counts)] == [f"{num}/~2,000" for num in ("250", "500", "750", "1,000")]


def test_pipe_has_no_total(screen, clock):
    with SourceCounter("lines", lambda: None) as counter, counter.group(100):
        clock(4)
    assert screen.lines == ["Predicting 100  25 lines/s  0:00:04", ""]


def test_sources_of_an_earlier_command_do_not_count_for_the_throughput(screen, clock):
    with SourceCounter("lines", lambda: 0.5) as counter:
        clock(60)
        counter.start(900)
        with counter.group(100):
            clock(10)
    assert screen.lines[-2].endswith("1,000/~2,000  10 lines/s  0:01:40")


def test_progress_in_a_file_is_plain_lines(monkeypatch, clock, messages):
    monkeypatch.setattr(progress, "find_screen", lambda: None)
    for fraction in (0.1, None):
        with SourceCounter("lines", lambda fraction=fraction: fraction) as counter:
            for _ in range(2):
                with counter.group(100):
                    clock(20)
    assert messages() == [
        "Predicting: 100 of about 1,000, 5.0 lines/s, 0:03:00 left",
        "Predicting: 200 of about 2,000, 5.0 lines/s, 0:06:00 left",
        "Predicting: 100 after 0:00:20, 5.0 lines/s",
        "Predicting: 200 after 0:00:40, 5.0 lines/s",
    ]
