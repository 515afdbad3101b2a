import gzip
import io
import logging
from types import SimpleNamespace

import pytest

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.text.lines import MAX_LINE_BYTES, read_lines
from regard.data.text.readers import read_examples, write_examples


@pytest.fixture
def type_in(monkeypatch):
    def type_in(content):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))

    return type_in


TWO = [Example("Hi.", "Hallo!"), Example("Run!", "Lauf!")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.tsv", "Hi.\tHallo!\nRun!\tLauf!\n"),
        ("pairs.txt", "Hi.\tHallo!\nRun!\tLauf!"),
        ("pairs.tsv.gz", "Hi.\tHallo!\nRun!\tLauf!\n"),
        ("windows.tsv", "\ufeffHi.\tHallo!\r\nRun!\tLauf!\r\n"),
        ("anki.tsv", "Hi.\tHallo!\tCC-BY 2.0 (France)\nRun!\tLauf!\tCC-BY 2.0\n"),
        ("pairs.csv", "id,target,source\n1,Hallo!,Hi.\n2,Lauf!,Run!\n"),
        ("pairs.csv.gz", "english,german\nHi.,Hallo!\nRun!,Lauf!\n"),
        ("bom.csv", "\ufeffsource,target\nHi.,Hallo!\nRun!,Lauf!\n"),
        (
            "a.jsonl",
            '{"source": "Hi.", "target": "Hallo!"}\n\n{"target": "Lauf!", "source": "Run!"}\n',
        ),
        ("b.jsonl.gz", '{"en": "Hi.", "de": "Hallo!"}\n{"en": "Run!", "de": "Lauf!"}\n'),
    ],
)
def test_every_format_gives_the_same_pairs(write, name, content):
    assert read_examples(write(name, content)) == TWO


def test_two_files_are_read_line_by_line(write):
    source, target = write("train.en", "Hi.\nRun!\n"), write("train.de.gz", "Hallo!\nLauf!\n")
    assert read_examples(source, target) == TWO


def test_standard_input_is_tsv(type_in):
    type_in("Hi.\tHallo!\nRun!\tLauf!\n")
    assert read_examples("-") == TWO


def test_standard_input_that_starts_with_a_brace_is_json_lines(type_in):
    type_in('\n {"source": "Hi.", "target": "Hallo!"}\n')
    assert read_examples("-") == TWO[:1]


def test_a_line_separator_inside_a_sentence_does_not_end_the_line(write):
    path = write("pairs.tsv", "a\u2028b\u0085c\x0bd\te\x0cf\n")
    assert read_examples(path) == [Example("a\u2028b\u0085c\x0bd", "e\x0cf")]


def test_a_line_break_inside_a_quoted_cell_becomes_a_space(write):
    path = write("pairs.csv", 'source,target\n"Hi,\nyou.","Hallo,\r\ndu."\n')
    assert read_examples(path) == [Example("Hi, you.", "Hallo, du.")]


def test_the_columns_taken_from_a_csv_file_are_named(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    read_examples(write("pairs.csv", "english,german\nHi.,Hallo!\n"))
    assert "column 1 'english' is the source, column 2 'german' the target" in caplog.text


def test_source_sentences_are_joined_and_further_targets_are_references(write):
    path = write("a.jsonl", '{"source": ["One.", "Two."], "target": ["A.", "B.", "C."], "id": 3}')
    assert read_examples(path) == [Example("One. Two.", "A.", references=("B.", "C."))]


@pytest.mark.parametrize("alignment", ["[[0, 0], [1, 2]]", '"0-0 1-2"'])
def test_an_alignment_is_read_as_a_list_or_in_pharaoh_format(write, alignment):
    path = write("a.jsonl", f'{{"source": "a b", "target": "c", "alignment": {alignment}}}')
    assert read_examples(path)[0].alignment == ((0, 0), (1, 2))


def test_written_examples_are_read_back_unchanged(tmp_path):
    examples = [
        Example("Ich weiß\u2028.", "I know.", ("I do.",), ((0, 0), (1, 1)), ("modal", "plural")),
        Example("Hi.", "Hallo!"),
    ]
    write_examples(tmp_path / "test.jsonl", examples)
    assert read_examples(tmp_path / "test.jsonl") == examples


def test_pairs_with_an_empty_side_are_skipped_and_counted(write, caplog):
    path = write("pairs.tsv", "Hi.\tHallo!\n\nx\t \n\ty\nRun!\tLauf!\n")
    assert read_examples(path) == TWO
    assert f"skipped 3 pairs with an empty side (first: {path}, line 2)" in caplog.text


def test_one_skipped_pair_of_two_files_is_one_pair(write, caplog):
    read_examples(write("a", "Hi.\n\n"), write("b", "Hallo!\nLauf!\n"))
    assert "skipped 1 pair with an empty side" in caplog.text


def test_sources_keep_their_order_and_their_empty_lines(write):
    path = write("in.txt.gz", "\ufeffone\r\n\n two\n\u2028\nlast")
    assert list(read_lines(path)) == ["one", "", " two", "\u2028", "last"]


def test_sources_are_read_from_standard_input_one_by_one(type_in):
    type_in("one\n\0\n")
    sources = read_lines("-")
    assert next(sources) == "one"


def test_an_empty_file_has_no_sources(write):
    assert list(read_lines(write("in.txt", ""))) == []


def test_files_of_unequal_length_are_counted(write):
    one, two = write("train.de", "x\n" * 1001), write("train.en", "x\n" * 1000)
    message = r"train\.de has 1,001 lines but .*train\.en has 1,000\. Pair files must have equal"
    with pytest.raises(DataError, match=message):
        read_examples(one, two)


BAD = {
    "no_tab.tsv": ("a\tb\nno tab\nc\td\n", r"no_tab\.tsv, line 2, has no tab\. A line holds"),
    "no_tabs.tsv": ("x\ny\nz\n", r"line 1, has no tab\..* 3 of 3 lines cannot be read\.$"),
    "latin.tsv": (
        b"a\tb\nT\xfcr\tdoor\n",
        r"latin\.tsv, line 2, is not UTF-8 \(byte 0xfc at position 2\)\. Convert .*iconv",
    ),
    "utf16.tsv": ("a\tb\n".encode("utf-16"), r"line 1, holds a NUL byte.*UTF-16, convert"),
    "empty.tsv": ("", r"empty\.tsv is empty\."),
    "empty.tsv.gz": ("", r"empty\.tsv\.gz is empty\."),
    "blank.tsv": ("\n\t\n", r"blank\.tsv holds no pair in which both sides have text\."),
    "long.tsv": (
        "a\tb\nc\t" + "x" * MAX_LINE_BYTES * 2 + "\n",
        r"line 2, has 2,000,003 bytes, but a line may have 1,000,000\.",
    ),
    "a.jsonl": (
        '{"source": "a", "target": "b"}\n{"source"\n',
        r"line 2, is not valid JSON: Expect",
    ),
    "b.jsonl": ('["a", "b"]\n', r"line 1, must be an object with `source` .*but is list\."),
    "c.jsonl": ('{"source": "a", "text": "b"}\n', r"line 1, has no key `target`\."),
    "d.jsonl": ('{"a": "a"}\n', r"has no keys `source` and `target`\. Its keys are: `a`\."),
    "e.jsonl": ("{}\n", r"has no keys `source` and `target`\. Its keys are: none\."),
    "f.jsonl": ('{"source": "a", "target": 3}\n', r"must have text .* as `target`, but has 3\."),
    "g.jsonl": ('{"source": "\\ud800", "target": "a"}\n', r"half a character .* in `source`\."),
    "h.jsonl": (
        '{"source": "a", "target": "b", "alignment": "0-x"}\n',
        r'links such as .* as `alignment`, but has "0-x"\.',
    ),
    "i.jsonl": ("[" * 200_000, r"is not usable JSON: it is nested too deeply\."),
    "a.csv": ("source,text\na,b\n", r"a\.csv has a column 'source' but no column 'target'\."),
    "b.csv": ("target,text\na,b\n", r"b\.csv has a column 'target' but no column 'source'\."),
    "c.csv": ("source|target\na|b\n", r"c\.csv has 1 column in its first line, but a pair needs"),
    "d.csv": ("x,source,target\n1,a,b\n2,a\n", r"d\.csv, line 3, has no column 3: it has 2\."),
    "e.csv": ('source,target\na,"b\n', r"e\.csv, line 2, is not valid CSV: unexpected end"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_its_line(write, name):
    content, message = BAD[name]
    with pytest.raises(DataError, match=message):
        read_examples(write(name, content))


def test_a_line_of_exactly_the_limit_is_read(write):
    path = write("long.tsv", "a\t" + "x" * (MAX_LINE_BYTES - 2) + "\nc\td\n")
    assert len(read_examples(path)) == 2


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.tsv does not exist\."):
        read_examples(tmp_path / "nowhere.tsv")


def test_a_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"is a folder\. Name a file inside it\."):
        read_examples(tmp_path)


def test_a_file_that_cannot_be_opened_is_an_error_with_the_reason(write):
    path = write("pairs.tsv", "a\tb\n")
    with pytest.raises(DataError, match=r"cannot be read: Not a directory\."):
        read_examples(path / "inside.tsv")


@pytest.mark.parametrize("damage", [slice(0, 20), slice(3, None)])
def test_a_damaged_gzip_file_is_an_error(tmp_path, damage):
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(b"Hi.\tHallo!\n" * 100)[damage])
    with pytest.raises(DataError, match=r"pairs\.tsv\.gz is a damaged gzip file \(.*Pack it again"):
        read_examples(path)


def test_standard_input_is_named_in_messages(type_in):
    type_in("no tab\n")
    with pytest.raises(DataError, match="Standard input, line 1, has no tab"):
        read_examples("-")
