"""Sources of files at prediction time."""

import io
import logging
from types import SimpleNamespace

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.text.sources import read_sources

PAIRS = {
    "a.tsv": "Hi.\tHallo!\nRun!\tLauf!\n",
    "a.txt": "Hi.\tHallo!\nRun!\tLauf!\n",
    "header.tsv": "English\tGerman\nHi.\tHallo!\nRun!\tLauf!\n",
    "swapped.tsv": "target\tsource\nHallo!\tHi.\nLauf!\tRun!\n",
    "ids.tsv": "1\tHi.\tHallo!\n2\tRun!\tLauf!\n",
    "titled_ids.tsv": "id\ttext\n1\tHi.\n2\tRun!\n",
    "a.csv": "id;english;german\n1;Hi.;Hallo!\n2;Run!;Lauf!\n",
    "sources.csv": "text\nHi.\nRun!\n",
    "a.jsonl": '{"source": "Hi.", "target": "Hallo!"}\n{"source": "Run!"}\n',
    "hf.jsonl": '{"translation": {"en": "Hi.", "de": "Hallo!"}}\n'
    '{"translation": {"de": "Lauf!", "en": "Run!"}}\n',
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_sources_of_pairs_are_read(write, name):
    assert list(read_sources(str(write(name, PAIRS[name])))) == ["Hi.", "Run!"]


def test_the_source_column_is_logged_once(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    list(read_sources(str(write("a.tsv", PAIRS["a.tsv"]))))
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "column 1 is the source; column 2 is ignored"
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "Hi, you.\n\n two\n"),
        ("a.csv", "Hi there.\n\nRun!\n"),
        ("a.tsv", "no tab\n\nat all\n"),
    ],
)
def test_lines_without_columns_are_unchanged_and_silent(write, caplog, name, content):
    caplog.set_level(logging.INFO, logger="regard")
    assert list(read_sources(str(write(name, content)))) == content.splitlines()
    assert caplog.text == ""


def test_empty_rows_are_empty_sources(write):
    assert list(read_sources(str(write("a.tsv", "a\tb\n\nc\td\ne\n")))) == ["a", "", "c", "e"]


def test_a_number_may_be_the_source_of_two_columns(write):
    assert list(read_sources(str(write("a.tsv", "17\tseventeen\n18\teighteen\n")))) == ["17", "18"]


@pytest.mark.parametrize(
    ("content", "columns", "sources"),
    [
        ("a\tb\tc\nd\te\tf\n", ("source", "source", "target"), ["a\tb", "d\te"]),
        ("a\tb\nd\te\n", ("source", "source", "target"), ["a\tb", "d\te"]),
        ("x\ta\tb\nx\tc\td\n", ("-", "source", "target"), ["a", "c"]),
        ("a\tb\tc\nd\te\n", ("sources", "target"), ["a\tb\tc", "d\te"]),
        ("one\ttwo\tthree\na\tb\tc\n", ("three", "one", "two"), ["c\ta"]),
        ("one\ttwo\na\tb\n", ("two", "one"), ["b"]),
        ("a\tb\nc\td\n", ("english", "german"), ["a", "c"]),
    ],
)
def test_columns_of_the_training_data_are_taken(write, content, columns, sources):
    assert list(read_sources(str(write("a.tsv", content)), columns=columns)) == sources


def test_a_header_without_the_title_of_the_source_is_an_error(write):
    path = str(write("a.csv", "en,de\nHi.,Hallo!\n"))
    with pytest.raises(ConfigError, match=r"but one is 'fr'\. .*The first line is 'en, de'"):
        list(read_sources(path, columns=("fr", "de")))


def test_several_sources_of_json_lines_are_separated_by_tabs(write):
    path = str(write("a.jsonl", '{"source": ["a", "b"], "target": "c"}\n'))
    assert list(read_sources(path, columns=("source", "source", "target"))) == ["a\tb"]
    assert list(read_sources(path)) == ["a b"]


LABELS = ("yes", "no")


@pytest.mark.parametrize(
    ("name", "content", "sources"),
    [
        ("a.tsv", "a man\tyes\nno man\tno\n", ["a man", "no man"]),
        ("a.tsv", "a man\tno man\nno man\ta man\n", ["a man\tno man", "no man\ta man"]),
        ("a.tsv", "a man\tno man\tno\n", ["a man\tno man"]),
        ("a.tsv", "1\ta man\tyes\n2\tno man\tno\n", ["a man", "no man"]),
        ("a.tsv", "text\tlabel\na man\tyes\n", ["a man"]),
        ("a.csv", "text,label\na man,other\n", ["a man"]),
        ("a.jsonl", '{"source": ["a man", "b"], "target": "yes"}\n', ["a man\tb"]),
    ],
)
def test_labels_are_not_part_of_texts(write, name, content, sources):
    assert list(read_sources(str(write(name, content)), labels=LABELS)) == sources


def test_a_row_without_its_source_is_an_error(write):
    path = str(write("a.tsv", "1\tx\tHi.\tHallo!\n2\ty\n3\tz\tRun!\tLauf!\n"))
    with pytest.raises(DataError, match=r"a\.tsv, line 2, has no column 3: it has 2\."):
        list(read_sources(path, columns=("-", "-", "source", "target")))


class Pipe(io.RawIOBase):
    """Lines that arrive one by one; counts those that were read."""

    def __init__(self, *lines):
        self.lines, self.num_read = iter(lines), 0

    def readline(self, size=-1):
        self.num_read += 1
        return next(self.lines, b"")


@pytest.mark.parametrize(
    ("lines", "sources"),
    [
        ((b"one\n", b"two\ta\n"), ["one", "two\ta"]),
        ((b"one\teins\n", b"two\tzwei\n"), ["one", "two"]),
        ((b"source\ttarget\n", b"two\tzwei\n"), ["two"]),
        ((b'{"source": "one"}\n', b'{"source": "two"}\n'), ["one", "two"]),
        ((b"{one}\n", b"two\n"), ["{one}", "two"]),
    ],
)
def test_standard_input_is_read_line_by_line(monkeypatch, lines, sources):
    pipe = Pipe(*lines)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=pipe))
    read = read_sources("-")
    assert next(read) == sources[0]
    assert pipe.num_read == 1 + lines.index(
        next(one for one in lines if sources[0].encode() in one)
    )
    assert [sources[0], *read] == sources
