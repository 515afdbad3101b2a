import gzip

import pytest

from regard.core.errors import DataError
from regard.data.corpus import Corpus, corpora_folder
from regard.data.datasets import texts
from regard.data.datasets.catalog import find_data
from regard.data.datasets.texts import (
    read_text,
    read_text_corpus,
    split_text,
    to_lines,
    to_text,
)
from regard.data.text import readers

TEXT = "First line \n\n  third\x0b\u2028 one\r\nno end"


@pytest.fixture
def file(tmp_path):
    def write(raw, name="text.txt"):
        path = tmp_path / name
        path.write_bytes(raw)
        return path

    return write


def test_concatenated_lines_are_the_text(file):
    lines = read_text(file(TEXT.encode()))
    assert [line.source for line in lines] == ["First line \n", "\n", TEXT[13:-6], "no end"]
    assert to_text(lines) == TEXT


def test_gzip_and_byte_order_mark_are_read(file):
    path = file(gzip.compress(b"\xef\xbb\xbf" + TEXT.encode()), "text.txt.gz")
    assert to_text(read_text(path)) == TEXT


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty: it contains no text"),
        (b" \n \n", "is empty: it contains no text"),
        (b"caf\xe9\n", "is not UTF-8 \\(byte 0xe9 at position 4\\)"),
        (b"a\0b", "holds a NUL byte"),
    ],
)
def test_invalid_text_raises(file, raw, message):
    with pytest.raises(DataError, match=message):
        read_text(file(raw))


def test_damaged_gzip_raises(file):
    with pytest.raises(DataError, match="is a damaged gzip file"):
        read_text(file(gzip.compress(TEXT.encode())[:-9], "text.gz"))


def test_split_keeps_order_and_all_lines():
    lines = to_lines("".join(f"line {number}\n" for number in range(400)))
    splits = split_text(lines)
    assert [*splits.train, *splits.valid, *splits.test] == lines
    assert len(splits.valid) == pytest.approx(20, abs=1)
    assert len(splits.test) == pytest.approx(20, abs=1)


def test_every_split_has_a_line_if_lines_are_long():
    lines = to_lines("a\n" * 19 + "b" * 1000 + "\n")
    splits = split_text(lines)
    assert all((splits.train, splits.valid, splits.test))
    assert [*splits.train, *splits.valid, *splits.test] == lines


def test_split_of_few_lines_raises():
    with pytest.raises(DataError, match="at least 20 lines to be split, but has 2"):
        split_text(to_lines("one\ntwo\n"))


@pytest.mark.parametrize("name", ["shakespeare", "wikitext2"])
def test_missing_data_set_raises(monkeypatch, tmp_path, name):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"'{name}' is not downloaded .* `REGARD_DATA` .* lm_text/"):
        find_data(name)


@pytest.mark.parametrize("name", ["shakespeare", "wikitext2"])
def test_argument_raises(name):
    with pytest.raises(DataError, match=f"'{name}' takes no argument"):
        find_data(f"{name}:5")


def test_shakespeare_is_split_by_characters(data_folder):
    splits = find_data("shakespeare")
    assert len(to_text(splits.train)) == 1_003_854
    assert len(to_text(splits.test)) == 111_540
    assert splits.valid == splits.test


def test_wikitext2_has_official_number_of_words(data_folder):
    splits = find_data("wikitext2")
    assert sum(len(line.source.split()) for line in splits.test) == 241_211


class TestLargeTexts:
    @pytest.fixture(autouse=True)
    def large(self, tmp_path, monkeypatch):
        """Treat every file as a large one, with a cache of its own."""
        monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(readers, "LARGE_BYTES", 1)

    @pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
    def test_a_large_text_has_the_lines_of_a_list(self, file, name):
        data = b"\xef\xbb\xbf" + TEXT.encode()
        path = file(gzip.compress(data) if name.endswith(".gz") else data, name)
        for _ in range(2):  # written, then read from the cache
            corpus = read_text_corpus(path)
            assert isinstance(corpus, Corpus)
            assert list(corpus) == read_text(path)

    @pytest.mark.parametrize(
        ("raw", "message"),
        [
            (b" \n \n", "is empty: it contains no text"),
            (b"one\ncaf\xe9\n", "line 2, is not UTF-8 \\(byte 0xe9 at position 4\\)"),
            (b"one\na\0b", "line 2, holds a NUL byte"),
        ],
    )
    def test_invalid_text_raises_and_leaves_nothing_in_the_cache(self, file, raw, message):
        with pytest.raises(DataError, match=message):
            read_text_corpus(file(raw))
        assert not [*corpora_folder().iterdir()]

    @pytest.mark.parametrize("last", ["", "b" * 1000 + "\n"])
    @pytest.mark.parametrize("max_held_out", [30, 5_000_000])
    def test_a_large_text_is_split_like_a_list(self, file, monkeypatch, last, max_held_out):
        monkeypatch.setattr(texts, "MAX_HELD_OUT", max_held_out)
        path = file(("".join(f"line {n}\n" for n in range(300)) + last).encode())
        ours, theirs = split_text(read_text_corpus(path)), split_text(read_text(path))
        assert isinstance(ours.train, Corpus)
        assert (list(ours.train), ours.valid, ours.test) == (
            theirs.train,
            theirs.valid,
            theirs.test,
        )
        assert ours.note == theirs.note


def test_held_out_text_has_a_maximum_length(monkeypatch):
    monkeypatch.setattr(texts, "MAX_HELD_OUT", 30)
    splits = split_text(to_lines("".join(f"line {n:03}\n" for n in range(300))))
    assert [len(to_text(part)) for part in (splits.train, splits.valid, splits.test)] == [
        2646, 27, 27,
    ]  # fmt: skip
