import gzip
import json
import os
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.tasks.generation.recipe import DataConfig
from regard.tasks.reading import read_pairs

DATA = os.environ.get("REGARD_DATA", "")


def needs(name):
    reason = f"REGARD_DATA has no folder {name}"
    return pytest.mark.skipif(not (Path(DATA) / name).is_dir(), reason=reason)


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """Isolate tests from the data of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))


@pytest.fixture
def synopsis(tmp_path):
    def write(**parts):
        for part, pairs in parts.items():
            write_gz(tmp_path / "synopsis" / f"{part}.tsv.gz", ["\t".join(pair) for pair in pairs])

    return write


def write_gz(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def test_synopsis_has_official_split(synopsis):
    synopsis(train=[("A tool.", "tool")], valid=[("A game.", "game")], test=[("A font.", "font")])
    splits = find_data("synopsis")
    assert [*splits.train, *splits.valid, *splits.test] == [
        Example("A tool.", "tool"),
        Example("A game.", "game"),
        Example("A font.", "font"),
    ]
    assert splits.note.endswith(
        "1 train, 1 valid, 1 test; no training pair has a source that is also held out"
    )


def test_note_has_number_of_overlapping_sources(synopsis):
    train = [("A tool.", "tool"), ("a  Tool.", "same tool"), ("Other.", "other")]
    synopsis(train=train, valid=[("A game.", "game")], test=[("A tool.", "font")])
    note = find_data("synopsis").note
    assert note.endswith("; 2 training pairs have a source that is also held out")


def test_overlapping_sources_are_dropped_from_training(synopsis):
    train = [("A tool.", "tool"), ("Other.", "other")]
    synopsis(train=train, valid=[("A game.", "game")], test=[("A tool.", "font")])
    splits = read_pairs(("synopsis",), (), (), config=DataConfig())
    assert splits.train == [Example("Other.", "other")]
    assert splits.note.endswith("; 1 training pairs left out, their source is held out")


def test_abstract_has_all_summaries_as_references(tmp_path):
    value = {"source": ["One.", "Two."], "target": ["a", "b", "c"], "title": "T", "paper_id": "x"}
    for part in ("train", "dev", "test"):
        write_gz(tmp_path / "scitldr" / f"{part}.jsonl.gz", [json.dumps(value)])
    splits = find_data("scitldr")
    assert splits.train == splits.valid == splits.test
    assert splits.test == [Example("One. Two.", "a", references=("b", "c"))]


@pytest.mark.parametrize("name", ["synopsis", "scitldr"])
def test_missing_folder_raises(name):
    with pytest.raises(DataError, match=f"'{name}' .*`REGARD_DATA` .* {name}/train"):
        find_data(name)


@pytest.mark.parametrize("name", ["synopsis", "scitldr"])
def test_argument_raises(name):
    with pytest.raises(DataError, match=f"'{name}' takes no argument, but has ':x'"):
        find_data(f"{name}:x")


@pytest.mark.parametrize(
    ("name", "sizes", "note"),
    [
        pytest.param(
            "synopsis", (32_000, 1_000, 1_000), "no training pair has", marks=needs("synopsis")
        ),
        pytest.param("scitldr", (1_992, 619, 618), "3 training pairs have", marks=needs("scitldr")),
    ],
)
def test_real_data_has_official_sizes(monkeypatch, name, sizes, note):
    monkeypatch.setenv("REGARD_DATA", DATA)
    splits = find_data(name)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == sizes
    assert note in splits.note
