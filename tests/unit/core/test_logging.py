import logging

import pytest

from regard.core.logging import default_logging, is_first_process, log_to, logger


class RecordingHandler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


@pytest.fixture
def handler():
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield RecordingHandler()
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)


def test_first_process_logs(monkeypatch, handler):
    monkeypatch.delenv("RANK", raising=False)
    log_to(handler)
    logger.info("hello")
    assert handler.messages == ["hello"]


def test_other_processes_only_report_errors(monkeypatch, handler):
    monkeypatch.setenv("RANK", "1")
    log_to(handler)
    logger.warning("hello")
    logger.error("help")
    assert handler.messages == ["help"]


def test_new_handler_replaces_the_old(handler):
    other = RecordingHandler()
    log_to(other)
    log_to(handler)
    logger.error("help")
    assert other.messages == []


@pytest.mark.parametrize(("rank", "is_first"), [("0", True), ("1", False), ("10", False)])
def test_rank_zero_is_the_first_process(monkeypatch, rank, is_first):
    monkeypatch.setenv("RANK", rank)
    assert is_first_process() == is_first


def test_default_logging_writes_notices_to_standard_error(handler, monkeypatch, capsys):
    monkeypatch.setattr(logger, "propagate", False)  # the test runner has handlers
    log_to(handler)
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    with default_logging():
        logger.info("hello")
    logger.info("after")
    assert capsys.readouterr().err == "hello\n"
    assert (logger.handlers, logger.level) == ([], logging.NOTSET)


def test_default_logging_leaves_handlers_of_the_program(handler, capsys):
    log_to(handler)
    with default_logging():
        logger.info("hello")
    assert handler.messages == ["hello"]
    assert capsys.readouterr().err == ""
