"""Header lines and id columns of TSV and CSV files."""

import logging

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.data.text.readers import read_examples

SENTENCES = "I see a dog.\tIch sehe einen Hund.\nHe is here.\tEr ist hier.\nCome in.\tKomm rein.\n"
READ = [tuple(line.split("\t")) for line in SENTENCES.splitlines()]


@pytest.fixture
def read(write, caplog):
    """Function that returns the pairs of a file and the log."""
    caplog.set_level(logging.INFO, logger="regard")

    def read(name, content, **options):
        examples = read_examples(write(name, content), **options)
        return [(one.source, one.target) for one in examples], caplog.text

    return read


@pytest.mark.parametrize(
    ("header", "end"),
    [
        ("English\tGerman\n", "\n"),
        ("\ufeffsource\ttarget\r\n", "\r\n"),
        ("en\tde\n", "\n"),
        ("sentence_1\tsentence_2\n", "\n"),
        ("english\tplatt\n", "\n"),
        ("source text\ttarget text\n", "\n"),
    ],
)
def test_a_header_is_recognised_above_sentences(read, header, end):
    pairs, log = read("a.tsv", header + SENTENCES.replace("\n", end))
    assert pairs == READ
    titles = header.strip("\ufeff\r\n").split("\t")
    assert f"column 1 '{titles[0]}' is the source, column 2 '{titles[1]}' the target" in log


@pytest.mark.parametrize(
    "first", ["Go.\tGeh.", "Go\tGeh", "text\tText", "No.\tNein.", "answer\t42"]
)
def test_a_pair_of_single_words_is_not_a_header(read, first):
    pairs, log = read("a.tsv", f"{first}\n{SENTENCES}")
    assert pairs == [tuple(first.split("\t")), *READ]
    assert log == ""


def test_languages_are_titles_above_single_words_as_well(read):
    assert read("a.tsv", "English\tGerman\ndog\tHund\n")[0] == [("dog", "Hund")]


@pytest.mark.parametrize("first", ["it\tes", "english\tplatt"])
def test_a_doubtful_header_is_a_pair_and_reported(read, first):
    pairs, log = read("a.tsv", f"{first}\ndog\tHund\ncat\tKatze\n")
    assert len(pairs) == 3
    assert f"`--columns {','.join(first.split())}`" in log


def test_titles_that_continue_below_are_not_a_header(read):
    assert len(read("a.tsv", "English\ten\nGerman\tde\nFrench\tfr\n")[0]) == 3


@pytest.mark.parametrize(
    "content",
    [
        "1\tI see\tIch sehe\n2\tGo\tGeh\n3\tHe\tEr\n",
        "s0001\tI see\tIch sehe\ns0002\tGo\tGeh\ns0007\tHe\tEr\n",
        "id\tfoo\tbar\n1\tI see\tIch sehe\n2\tGo\tGeh\n3\tHe\tEr\n",
        "\ten\tde\n0\tI see\tIch sehe\n1\tGo\tGeh\n2\tHe\tEr\n",
    ],
)
def test_ids_are_ignored(read, content):
    pairs, log = read("a.tsv", content)
    assert pairs == [("I see", "Ich sehe"), ("Go", "Geh"), ("He", "Er")]
    assert "column 2" in log
    assert "; column 1" in log


def test_ids_of_both_sides_are_ignored(read):
    pairs, log = read(
        "a.tsv", "12\tI see\t77\tIch sehe\n12\tI see\t78\tIch schaue\n13\tGo\t2\tGeh\n"
    )
    assert pairs == [("I see", "Ich sehe"), ("I see", "Ich schaue"), ("Go", "Geh")]
    assert "columns 1 and 3 are ignored" in log


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,en,note\napa,what,x\nsiapa,who,x\n"),
        ("a.tsv", "id\ten\tcontext\napa itu\twhat is it\tx\nsiapa\twho is it\tx\n"),
        ("a.jsonl", '{"id": "apa", "en": "what"}\n'),
    ],
)
def test_titles_of_ids_above_words_are_those_of_texts(read, name, content):
    assert read(name, content)[0][0] in [("apa", "what"), ("apa itu", "what is it")]


def test_a_stray_third_cell_does_not_make_sources_ids(read):
    pairs, _ = read("a.tsv", "17\tseventeen\n18\teighteen\tx\n19\tnineteen\n")
    assert pairs == [("17", "seventeen"), ("18", "eighteen"), ("19", "nineteen")]


def test_ids_of_csv_files_are_ignored(read):
    assert read("a.csv", "id,en,de\n5,Hi,Hallo\n6,Go,Geh\n")[0] == [("Hi", "Hallo"), ("Go", "Geh")]


@pytest.mark.parametrize("content", ["17\tseventeen\n18\teighteen\n", "1\t2\n4\t5\n", "1\t2\t3\n"])
def test_numbers_are_sources_if_less_than_two_texts_remain(read, content):
    assert read("a.tsv", content)[0][0] == tuple(content.split("\n")[0].split("\t")[:2])


def test_the_first_two_of_three_texts_are_taken_with_a_hint(read):
    pairs, log = read("a.tsv", "a b\tc d\te f\ng h\ti j\tk l\n")
    assert pairs == [("a b", "c d"), ("g h", "i j")]
    assert "column 1 is the source, column 2 the target; column 3 is ignored" in log
    assert "`--columns -,source,target`" in log


def test_two_columns_without_a_header_need_no_words(read):
    assert read("a.tsv", SENTENCES)[1] == ""


def test_titles_of_source_and_target_may_be_in_any_order(read):
    assert read("a.tsv", "tgt\tid\tsrc\nHallo\t1\tHi\n")[0] == [("Hi", "Hallo")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("semicolon.csv", 'english;german\n"Hi; you, too.";Hallo\nGo, on.;Geh\n'),
        ("tab.csv", "english\tgerman\nHi; you, too.\tHallo\nGo, on.\tGeh\n"),
        ("comma.csv", 'english,german\n"Hi; you, too.",Hallo\n"Go, on.",Geh\n'),
    ],
)
def test_the_delimiter_of_csv_is_found_in_its_header(read, name, content):
    assert read(name, content)[0] == [("Hi; you, too.", "Hallo"), ("Go, on.", "Geh")]


NAMED = {
    "a.tsv": "id\tgerman\tnote\tenglish\n1\tHallo\tx\tHi\n2\tGeh\ty\tGo\n",
    "unknown.tsv": "foo\tgerman\tbar\tenglish\nz\tHallo\tx\tHi\nw\tGeh\ty\tGo\n",
    "a.csv": "german;English\nHallo;Hi\nGeh;Go\n",
    "a.jsonl": '{"german": "Hallo", "x": 3, "english": "Hi"}\n{"english": "Go", "german": "Geh"}\n',
    "hf.jsonl": '{"translation": {"german": "Hallo", "english": "Hi"}}\n'
    '{"translation": {"german": "Geh", "english": "Go"}}\n',
    "test.jsonl": '{"source": "Hi", "target": "Hallo"}\n{"source": "Go", "target": "Geh"}\n',
}


@pytest.mark.parametrize("name", NAMED)
def test_columns_are_chosen_by_title(read, name):
    pairs, _ = read(name, NAMED[name], columns=("english", "german"))
    assert pairs == [("Hi", "Hallo"), ("Go", "Geh")]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_several_titles_are_sources_in_their_order(write, name):
    content = {
        "a.tsv": "fr\ten\tde\nbon\tgood\tgut\n",
        "a.csv": "fr,en,de\nbon,good,gut\n",
        "a.jsonl": '{"fr": "bon", "en": "good", "de": "gut"}\n',
    }
    examples = read_examples(write(name, content[name]), columns=("en", "fr", "de"))
    assert examples == [Example(("good", "bon"), "gut")]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_an_unknown_title_is_an_error_with_the_titles(write, name):
    path = write(name, NAMED[name])
    message = r"one is 'engish'\. Did you mean '[eE]nglish'\? The first line is '.*german"
    with pytest.raises(ConfigError, match=message):
        read_examples(path, columns=("engish", "german"))


def test_an_unknown_key_is_an_error_with_the_keys(write):
    message = r"line 1, has no key `engish`\. Did you mean 'english'\? Its keys are: `german`"
    with pytest.raises(DataError, match=message):
        read_examples(write("a.jsonl", NAMED["a.jsonl"]), columns=("engish", "german"))


def test_the_first_line_of_translations_gives_their_direction(read):
    content = (
        '{"id": "0", "translation": {"en": "Hi", "de": "Hallo"}}\n'
        '{"id": "1", "translation": {"de": "Geh", "en": "Go"}}\n'
    )
    pairs, log = read("a.jsonl", content)
    assert pairs == [("Hi", "Hallo"), ("Go", "Geh")]
    assert "'en' is the source, 'de' the target" in log


BAD = {
    "a.tsv": "Hi.\tHallo!\nno tab\nRun!\tLauf!\nnone\n",
    "ids.tsv": "1\tHi.\tHallo!\n2\tno target\n3\tRun!\tLauf!\n4\n",
    "a.csv": "source,target\nHi.,Hallo!\nshort\nRun!,Lauf!\nshort\n",
    "a.jsonl": '{"source": "Hi.", "target": "Hallo!"}\n{"sour\n'
    '{"source": "Run!", "target": "Lauf!"}\n{"source": "x"}\n',
    "latin.tsv": "Hi.\tHallo!\nT\xfcr\tdoor\nRun!\tLauf!\nT\xfcr\n".encode("latin1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_counted_and_skipped_on_request(read, name):
    pairs, log = read(name, BAD[name], on_error="skip")
    assert pairs == [("Hi.", "Hallo!"), ("Run!", "Lauf!")]
    line = 3 if name == "a.csv" else 2
    assert "skipped 2 lines of" in log
    assert f"{name}, line {line}, " in log


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_counted_in_the_error(write, name):
    with pytest.raises(DataError, match=r"2 of \d lines cannot be read; `--on-error skip`"):
        read_examples(write(name, BAD[name]))


def test_a_bad_line_of_one_side_skips_the_pair(write):
    sources, targets = write("a.en", b"one\nt\xfcr\nthree\n"), write("a.de", "eins\nzwei\ndrei\n")
    examples = read_examples(sources, targets, on_error="skip")
    assert [one.target for one in examples] == ["eins", "drei"]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_another_encoding_is_not_skipped(write, on_error):
    with pytest.raises(DataError, match="holds a NUL byte"):
        read_examples(write("a.tsv", SENTENCES.encode("utf-16")), on_error=on_error)


def test_nothing_but_bad_lines_is_an_error(write):
    with pytest.raises(DataError, match="holds no pair"):
        read_examples(write("a.tsv", "one\ntwo\n"), on_error="skip")
