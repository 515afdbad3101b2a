"""Choice of columns by title and contents, equal for training and prediction."""

import json
import logging

import pytest

from regard.core.errors import DataError
from regard.data.datasets.labelled import read_labelled
from regard.data.text.readers import read_examples
from regard.data.text.sources import read_sources


def _table(delimiter, *rows):
    return "".join(delimiter.join(row) + "\n" for row in rows)


def _json(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


HI, GO, SEE = PAIRS = [
    ("Hi there.", "Hallo du."),
    ("Go on, now.", "Geh weiter."),
    ("I see it.", "Ich sehe es."),
]
URLS = ["https://a.org/1", "http://a.org/2?x=y", "https://b.org/3"]
QUOTED = [(f'"{source}"', target) for source, target in PAIRS]

FILES = {
    "language.csv": _table(",", ("lang", "en", "de"), *(("deu", *row) for row in QUOTED)),
    "language.tsv": _table("\t", ("lang", "en", "de"), *(("deu", *row) for row in PAIRS)),
    "metadata.csv": _table(
        ";",
        ("split", "speaker", "foo", "score", "bar"),
        *(
            ("train", f"p{i}", source, str(i / 7), target)
            for i, (source, target) in enumerate(PAIRS)
        ),
    ),
    "urls.tsv": _table("\t", *((url, *row) for url, row in zip(URLS, PAIRS, strict=True))),
    "constant.tsv": _table("\t", *((source, "CC-BY", target) for source, target in PAIRS)),
    "constant.jsonl": _json(*({"set": "a", "x": source, "y": target} for source, target in PAIRS)),
    "synonyms.csv": _table(",", ("source", "tgt"), *QUOTED),
    "case.csv": _table(",", ("Output", "SOURCE"), *(row[::-1] for row in QUOTED)),
    "one_title.csv": _table(",", ("german", "input"), *(row[::-1] for row in QUOTED)),
    "keys.jsonl": _json(*({"output": target, "input": source} for source, target in PAIRS)),
    "upper.jsonl": _json(*({"Target": target, "Source": source} for source, target in PAIRS)),
    "metadata.jsonl": _json(
        *(
            {"n": 3, "url": "u", "en": source, "de": target, "score": 0.5}
            for source, target in PAIRS
        )
    ),
    "r.tsv": _table("\t", ("en", "de"), *((str(i), *row) for i, row in enumerate(PAIRS))),
    "r.csv": _table(",", ("foo", "bar"), *((str(i), *row) for i, row in enumerate(QUOTED))),
    "pandas.csv": _table(",", ("", "a", "b"), *((f"row {row[0][1]}", *row) for row in QUOTED)),
    "no_header.csv": _table(",", *QUOTED),
    "no_header_ids.csv": _table(",", *((str(i), *row) for i, row in enumerate(QUOTED))),
    "unknown.csv": _table(",", ("english_text", "german_text"), *QUOTED),
    "letters.csv": _table(",", ("a", "b"), *QUOTED),
    "words.csv": _table(",", ("my english column", "german"), *QUOTED),
    "code.tsv": _table("\t", ("en_text", "de_text"), *PAIRS),
}


@pytest.mark.parametrize("name", FILES)
def test_training_and_prediction_take_the_same_columns(write, name):
    path = write(name, FILES[name])
    assert [(one.source, one.target) for one in read_examples(path)] == PAIRS
    assert list(read_sources(str(path))) == [source for source, _ in PAIRS]


LABELLED = [
    ("good film here", "good"),
    ("dull film, again", "bad"),
    ("good plot", "good"),
    ("fine cast", "good"),
]
QUOTED_LABELLED = [(f'"{text}"', label) for text, label in LABELLED]
LABELLED_FILES = {
    "split.csv": _table(
        ",", ("text", "label", "split"), *((*row, "train") for row in QUOTED_LABELLED)
    ),
    "target.csv": _table(",", ("target", "text"), *(row[::-1] for row in QUOTED_LABELLED)),
    "unknown.csv": _table(
        ",", ("review", "mood", "url"), *((*row, "u") for row in QUOTED_LABELLED)
    ),
    "language.csv": _table(
        ",", ("lang", "text", "label"), *(("en", *row) for row in QUOTED_LABELLED)
    ),
    "no_header.csv": _table(",", *QUOTED_LABELLED),
    "r.tsv": _table("\t", ("text", "label"), *((str(i), *row) for i, row in enumerate(LABELLED))),
    "a.jsonl": _json(*({"label": label, "text": text, "split": "a"} for text, label in LABELLED)),
    "written.jsonl": _json(
        *({"source": text, "target": label, "tags": ["x"], "by": "me"} for text, label in LABELLED)
    ),
}


@pytest.mark.parametrize("name", LABELLED_FILES)
def test_training_and_prediction_take_the_same_texts(write, name):
    path = write(name, LABELLED_FILES[name])
    assert [(one.source, one.target) for one in read_labelled(path)] == LABELLED
    assert list(read_sources(str(path), labels=("good", "bad"))) == [text for text, _ in LABELLED]


@pytest.mark.parametrize("title", ["language", "score", "speaker", "author"])
def test_an_attribute_may_be_the_label(write, title):
    path = write("a.csv", f"text,{title}\na film,x\nthe plot,y\n")
    assert [one.target for one in read_labelled(path)] == ["x", "y"]


def test_two_texts_of_json_lines_may_have_keys(write):
    content = _json({"label": "yes", "premise": "a man", "hypothesis": "a person"})
    path = write("a.jsonl", content)
    assert [(one.source, one.target) for one in read_labelled(path)] == [
        (("a man", "a person"), "yes")
    ]
    assert list(read_sources(str(path), labels=("yes",))) == ["a man\ta person"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "Source,text\na,b\n"),
        ("a.jsonl", '{"Source": "a", "text": "b"}\n'),
    ],
)
def test_a_source_without_target_is_an_error_in_any_case(write, name, content):
    with pytest.raises(DataError, match=r"(column '|key `)target['`]\."):
        read_examples(write(name, content))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "source,target\nHi.,Hallo.\nHi, you.,Hallo.\nGo.,Geh.\n"),
        ("a.tsv", "source\ttarget\nHi.\tHallo.\nHi\tyou.\tHallo.\nGo.\tGeh.\n"),
        (
            "a.jsonl",
            '{"en": "Hi.", "de": "Hallo."}\n{"de": "x", "fr": "y"}\n{"de": "Geh.", "en": "Go."}\n',
        ),
    ],
)
def test_rows_that_differ_from_the_first_line_are_bad_lines(write, name, content):
    path, number = write(name, content), 2 if name == "a.jsonl" else 3
    examples = read_examples(path, on_error="skip")
    assert [(one.source, one.target) for one in examples] == [("Hi.", "Hallo."), ("Go.", "Geh.")]
    with pytest.raises(DataError, match=rf"{name}, line {number}, .* 1 of \d lines cannot be read"):
        read_examples(path)
    with pytest.raises(DataError, match=rf"{name}, line {number}, "):
        list(read_sources(str(path)))


def test_a_known_header_above_unquoted_commas_is_not_a_text(write):
    path = str(write("a.csv", "source,target\nHi, you,Hallo\nGo, on,Geh\n"))
    with pytest.raises(DataError, match=r"line 2, must have 2 columns, but has 3\."):
        list(read_sources(path))


def test_a_key_of_a_later_line_does_not_change_the_labels(write):
    path = write("a.jsonl", _json({"text": "a", "label": "x"}, {"label": "y", "review": "b"}))
    with pytest.raises(DataError, match="line 2, has no key `text`"):
        read_labelled(path)


@pytest.mark.parametrize("first", ['"No, he left.', "Hi, you.", "So, it is, no."])
def test_sentences_in_a_csv_file_are_texts(write, caplog, first):
    caplog.set_level(logging.INFO, logger="regard")
    lines = [first, "He left early.", "It rains.", "Well, yes."]
    assert list(read_sources(str(write("a.csv", "\n".join(lines))))) == lines
    assert caplog.text == ""


@pytest.mark.parametrize("first", ["Is it\tno", "no one\tIt", "is it\tes"])
def test_words_that_are_language_codes_are_not_a_header(write, first):
    path = write("a.tsv", f"{first}\nI see a dog.\tIch sehe.\nCome in.\tKomm rein.\n")
    assert len(read_examples(path)) == 3


def test_a_csv_file_without_header_is_reported(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    read_examples(write("a.csv", FILES["no_header.csv"]))
    assert "the first line is not a header; column 1 is the source" in caplog.text


def test_suggested_columns_are_quoted_for_the_shell(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    read_examples(write("a.csv", "my text,a b,c d\nx,y,z\nu,v,w\n"))
    assert "`--columns 'a b,c d'`" in caplog.text


def test_columns_are_not_suggested_for_labelled_texts(write, caplog):
    caplog.set_level(logging.INFO, logger="regard")
    read_labelled(write("a.tsv", "english\tplatt\ndog\tHund\ncat\tKatze\n"))
    assert "is not taken as a header" in caplog.text
    assert "--columns" not in caplog.text


def test_a_number_is_the_source_in_prediction_as_in_training(write):
    path = write("a.csv", "number,word\n17,seventeen\n18,eighteen\n")
    assert [one.source for one in read_examples(path)] == list(read_sources(str(path)))


UUIDS = [f"0b8f2c1e-7a4d-4c8b-9e2f-{number:012x}" for number in range(6)]


@pytest.mark.parametrize("header", ["", "key\tenglish\tgerman\n"])
def test_uuids_are_ids(tmp_path, header):
    path = tmp_path / "pairs.tsv"
    rows = [f"{uuid}\tone dog runs\tein Hund rennt\n" for uuid in UUIDS]
    path.write_text(header + "".join(rows), encoding="utf-8")
    pairs = {(example.source, example.target) for example in read_examples(path)}
    assert pairs == {("one dog runs", "ein Hund rennt")}


@pytest.mark.parametrize("third", ["Lesson", "Comment"])
def test_clear_titles_are_a_header_beside_a_column_of_single_words(tmp_path, third):
    path = tmp_path / "pairs.tsv"
    rows = [f"one dog runs {n}\tein Hund rennt {n}\tA{n % 2}\n" for n in range(6)]
    path.write_text(f"English\tGerman\t{third}\n" + "".join(rows), encoding="utf-8")
    assert len(read_examples(path)) == 6


def test_unknown_titles_above_sentences_are_reported_with_the_columns_to_name(tmp_path, caplog):
    caplog.set_level("INFO", "regard")
    path = tmp_path / "pairs.tsv"
    rows = [f"one dog runs {n}\tein Hund rennt {n}\n" for n in range(6)]
    path.write_text("Satz\tÜbersetzung\n" + "".join(rows), encoding="utf-8")
    assert len(read_examples(path)) == 7
    assert "--columns Satz,Übersetzung" in caplog.text.replace("'", "")


def test_json_lines_may_be_named_json_but_a_list_is_refused(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text('{"translation": {"en": "a dog", "de": "ein Hund"}}\n', encoding="utf-8")
    assert read_examples(path)[0].target == "ein Hund"
    path.write_text('[{"source": "a", "target": "b"}]\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"JSON list.*jq -c"):
        read_examples(path)
