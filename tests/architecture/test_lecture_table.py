"""The table of docs/lectures.md has every topic, no empty cell, and the measured results."""

import pytest

from regard.studies.reproduce.catalog import experiments
from tests.architecture.lecture_table import COLUMNS, PAGE, TOPICS, Row, read_results, read_rows

ROWS = [row for _, row in read_rows(PAGE.read_text(encoding="utf-8"))]


def test_every_topic_of_the_lectures_has_a_row():
    assert {topic for row in ROWS for topic in row.topics} == set(TOPICS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.cells[0][:20])
def test_row_is_complete(row):
    assert len(row.cells) == COLUMNS
    assert all(row.cells)
    assert "](../regard/" in row.cells[2]
    assert "regard " in row.cells[3]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.cells[0][:20])
def test_row_has_the_measured_number_of_claims(row):
    if row.experiments:
        assert row.cells[-1] == row.count_claims(read_results())


def test_every_experiment_is_in_the_table_and_was_measured():
    named = {name for row in ROWS for name in row.experiments}
    assert named == set(experiments()) == set(read_results())


def test_measured_times_are_within_the_limits():
    # Each experiment has one thread, so this is its time on a core without other programs.
    seconds = [one["cpu_seconds"] for one in read_results().values()]
    assert len(seconds) >= 25
    assert max(seconds) <= 180 and sum(seconds) / len(seconds) <= 90


def test_claims_of_a_row_are_counted():
    row = Row(("1.1 Neuron", "f", "c", "`regard reproduce a`, `regard reproduce b`", "r", ""))
    results = {"a": {"claims": [{"holds": True}, {"holds": False}]}, "b": {"claims": []}}
    assert row.count_claims(results) == "1 of 2"
    assert row.topics == ["1.1"]


def test_topics_of_a_row_are_found_in_links_and_lists():
    assert Row(("[2.10 Norm](page.md#210)",)).topics == ["2.10"]
    assert Row(("5.1, 5.2 Cues",)).topics == ["5.1", "5.2"]
    assert Row(("8 Questions asked",)).topics == ["8"]
