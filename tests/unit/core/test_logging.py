import logging

import pytest

from regard.core.logging import is_first_process, log_to, logger


class Listener(logging.Handler):
    def __init__(self):
        super().__init__()
        self.heard = []

    def emit(self, record):
        self.heard.append(record.getMessage())


@pytest.fixture
def listener():
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield Listener()
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)


def test_first_process_speaks(monkeypatch, listener):
    monkeypatch.delenv("RANK", raising=False)
    log_to(listener)
    logger.info("hello")
    assert listener.heard == ["hello"]


def test_other_processes_only_report_errors(monkeypatch, listener):
    monkeypatch.setenv("RANK", "1")
    log_to(listener)
    logger.warning("hello")
    logger.error("help")
    assert listener.heard == ["help"]


def test_new_handler_replaces_the_old(listener):
    other = Listener()
    log_to(other)
    log_to(listener)
    logger.error("help")
    assert other.heard == []


@pytest.mark.parametrize(("rank", "is_first"), [("0", True), ("1", False), ("10", False)])
def test_rank_zero_is_the_first_process(monkeypatch, rank, is_first):
    monkeypatch.setenv("RANK", rank)
    assert is_first_process() == is_first
