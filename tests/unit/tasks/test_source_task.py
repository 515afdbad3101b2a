"""Warnings about long sources."""

from regard.tasks.generation.task import LONG_SOURCES
from regard.tasks.source_task import warn_if_long


def test_long_sources_are_counted(caplog):
    assert warn_if_long([[1] * 3, [1] * 5, [1] * 6], 4, LONG_SOURCES)
    assert caplog.messages == [
        "2 of 3 sources have over 4 tokens, the maximum length in training "
        "(`data.batch.max_length`); up to 5,000 tokens, they are not truncated."
    ]


def test_short_sources_have_no_warning(caplog):
    assert not warn_if_long([[1] * 4], 4, LONG_SOURCES)
    assert caplog.messages == []
