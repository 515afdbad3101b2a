import logging

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.data.splits import drop_overlap, split_by_source
from regard.data.text.columns import split_columns
from regard.data.text.readers import read_examples, write_examples

CONTEXT = ("source", "-", "source", "target", "target")
TWO = [
    Example(("How are you?", "Fine."), "Gut.", references=("Prima.",)),
    Example(("Who?", "Me."), "Ich."),
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "How are you?\t1\tFine.\tGut.\tPrima.\n\nWho? \t2\tMe.\tIch.\t\textra\n"),
        ("a.csv", 'a,b,c,d,e\nHow are you?,1,"Fine.",Gut.,Prima.\n\nWho?,2,Me.,,Ich.\n'),
        ("b.csv", "source,id,source,target,x\nHow are you?,1,Fine.,Gut.,Prima.\nWho?,,Me.,Ich.,\n"),
        (
            "a.jsonl",
            '{"source": ["How are you?", "Fine."], "target": ["Gut.", "Prima."]}\n'
            '{"source": ["Who?", "Me."], "target": "Ich."}\n',
        ),
    ],
)
def test_every_format_gives_the_same_sources_and_references(write, name, content):
    assert read_examples(write(name, content), columns=CONTEXT) == TWO


STORY = ("-", "sources", "target")
STORIES = [Example(("One.", "Two.", "How many?"), "Two."), Example("Why?", "So.")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "1\tOne.\tTwo. \tHow many?\tTwo.\n\n2\tWhy?\tSo.\n"),
        ("a.csv", 'n,a,b,c,d\n1,One.,Two.,"How many?",Two.\n\n2,,Why?,,So.\n'),
        (
            "a.jsonl",
            '{"source": ["One.", "Two.", "How many?"], "target": "Two."}\n'
            '{"source": ["Why?"], "target": "So."}\n',
        ),
    ],
)
def test_sources_are_all_remaining_columns(write, name, content):
    assert read_examples(write(name, content), columns=STORY) == STORIES


def test_any_number_of_sources_is_written_and_read_again(tmp_path):
    write_examples(tmp_path / "test.jsonl", STORIES)
    assert read_examples(tmp_path / "test.jsonl", columns=STORY) == STORIES


def test_the_column_title_of_every_source_is_logged(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    read_examples(write("a.csv", "no,de,en,fr\na,b,c,d\n"), columns=STORY)
    assert "columns 2 'de' and 3 'en' are the sources, column 4 'fr' the target" in caplog.text


def test_source_and_target_are_the_default_columns(write):
    path = write("a.tsv", "Hi.\tHallo!\tCC-BY\nRun!\tLauf!\tCC-BY\n")
    assert read_examples(path, columns=("source", "target")) == read_examples(path)


def test_the_target_may_be_the_first_column(write):
    path = write("a.tsv", "Hallo!\tHi.\n")
    assert read_examples(path, columns=("target", "source")) == [Example("Hi.", "Hallo!")]


def test_a_list_is_joined_for_a_single_source(write):
    path = write("a.jsonl", '{"source": ["One.", "Two."], "target": "A."}\n')
    assert read_examples(path, columns=("source", "target")) == [Example("One. Two.", "A.")]


def test_empty_context_is_kept_but_a_pair_without_source_is_skipped(write, caplog):
    path = write("a.tsv", "\tHi.\tHallo!\n\t\tx\nc\tb\t\n")
    columns = ("source", "source", "target")
    assert read_examples(path, columns=columns) == [Example(("", "Hi."), "Hallo!")]
    assert "skipped 2 pairs with an empty side" in caplog.text


def test_the_column_titles_of_a_csv_file_are_logged(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    read_examples(write("a.csv", "de,no,en\na,b,c\n"), columns=("target", "-", "source"))
    roles = "column 3 'en' is the source, column 1 'de' the target; column 2 'no' is ignored"
    assert roles in caplog.text


def test_several_sources_are_written_and_read_again(tmp_path):
    write_examples(tmp_path / "test.jsonl", TWO)
    assert read_examples(tmp_path / "test.jsonl", columns=CONTEXT) == TWO


def test_several_sources_are_split_together():
    examples = [Example((f"c{i % 15}", f"s{i % 5}"), str(i)) for i in range(60)]
    splits = split_by_source(examples, valid_share=0.2, test_share=0.2)
    sides = [{e.source for e in side} for side in (splits.train, splits.valid, splits.test)]
    assert [len(side) for side in sides] == [9, 3, 3]
    assert len(set.union(*sides)) == 15


def test_overlap_needs_all_sources_to_be_equal():
    train = [Example(("a", "B"), "x"), Example(("a", "c"), "x"), Example("a b", "x")]
    kept, num_dropped = drop_overlap(train, [Example(("A", "b"), "y")])
    assert (kept, num_dropped) == (train[1:], 1)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ("sorce", "target"),
            r"'source', 'target', '-', 'sources', but one is 'sorce'\. Did you mean 'sour",
        ),
        (
            ("word", "-", "target"),
            r"'-', 'sources', or all be titles of columns, but one is 'word'",
        ),
        (("word",), r"at least two different titles, the last one that of the target, but are 'w"),
        (("word", "word"), r"at least two different titles, the last one that of the target"),
        (("source", "-"), r"at least one 'source' and one 'target', but are 'source,-'\."),
        (("target",), r"at least one 'source' and one 'target', but are 'target'\."),
        (("sources", "-"), r"at least one 'source' and one 'target', but are 'sources,-'\."),
        (("sources", "target", "source"), r"'sources' once and no 'source' beside it, but are"),
        (("sources", "sources", "target"), r"once and no 'source' beside it, but are 'sources,so"),
    ],
)
def test_columns_must_make_a_pair(write, columns, message):
    with pytest.raises(ConfigError, match=message):
        read_examples(write("a.tsv", "a\tb\n"), columns=columns)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "a\t1\tb\tc\td\na\n", r"a\.tsv, line 2, has 1 column, but `columns` name 5: 'so"),
        ("a.csv", "a,b,c,d,e\na,b\n", r"a\.csv, line 2, has 2 columns, but `columns` name 5: 'so"),
        ("b.csv", "a|b|c|d|e\na|b\n", r"b\.csv, line 1, has 1 column, but `columns` name 5: 'sou"),
        (
            "c.csv",
            "target,-,source,source,e\na,b,c,d,e\n",
            r"c\.csv calls its column 1 'target', but `columns` call it 'source'\. Name the",
        ),
        ("d.csv", 'a,b,c,d,e\n"a,b', r"d\.csv, line 2, is not valid CSV: unexpected end"),
    ],
)
def test_bad_columns_are_named_with_their_line(write, name, content, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(name, content), columns=CONTEXT)


@pytest.mark.parametrize(
    ("name", "content"), [("a.tsv", "1\ta\tb\n2\ta\n"), ("a.csv", "n,a,b\n1,a,b\n2,a\n")]
)
def test_sources_are_at_least_one_column(write, name, content):
    number = 2 if name == "a.tsv" else 3
    message = rf"{name}, line {number}, has 2 columns, but `columns` name 3: '-,sources,target'\."
    with pytest.raises(DataError, match=message):
        read_examples(write(name, content), columns=STORY)


def test_columns_with_two_files_are_refused(write):
    one, two = write("a.en", "a\tb\n"), write("a.de", "c\n")
    message = r"`columns` are those of one file, but there are two: .*a\.en and .*a\.de\. Leave"
    with pytest.raises(ConfigError, match=message):
        read_examples(one, two, columns=CONTEXT)


@pytest.mark.parametrize(
    ("line", "columns", "source"),
    [
        ("a\tb ", (), "a\tb "),
        ("a", ("source", "target"), "a"),
        ("a \tb", ("source", "target"), "a"),
        ("a\tb", CONTEXT, ("a", "b")),
        ("a\t1\tb", CONTEXT, ("a", "b")),
        ("a\t1\tb\tc\td\te", CONTEXT, ("a", "b")),
        ("\tb", CONTEXT, ("", "b")),
        ("x\ty", ("-", "source", "target"), "y"),
        ("x", ("-", "source", "target"), "x"),
        ("", CONTEXT, ""),
        ("\t", CONTEXT, ""),
        ("a\tb \tc", STORY, ("a", "b", "c")),
        ("a\t\tc", STORY, ("a", "c")),
        ("a", STORY, "a"),
        ("", STORY, ""),
        ("\t", STORY, ""),
    ],
)
def test_a_line_to_predict_from_holds_its_sources_or_all_columns(line, columns, source):
    assert split_columns(line, columns) == source


def test_sources_at_prediction_equal_those_in_training(write):
    lines = ["How are you?\t1\tFine.\tGut.\tPrima.", "Who?\t2\tMe.\tIch.\t"]
    examples = read_examples(write("a.tsv", "\n".join(lines)), columns=CONTEXT)
    assert [split_columns(line, CONTEXT) for line in lines] == [e.source for e in examples]


def test_a_line_to_predict_from_must_have_all_its_sources():
    message = (
        r"must have 2 columns, its sources, or all of '.*', separated by tabs, but has 1: 'abc'\."
    )
    with pytest.raises(DataError, match=message):
        split_columns("abc", CONTEXT)
