import gzip

import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.datasets.texts import read_text, split_text, to_lines, to_text

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
