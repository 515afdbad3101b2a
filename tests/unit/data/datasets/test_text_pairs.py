import gzip
import io
import os
import zipfile
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data.datasets import text_pairs
from regard.data.datasets.catalog import find_data
from regard.data.example import Example

DATA = os.environ.get("REGARD_DATA", "")

needs_enja = pytest.mark.skipif(
    not (Path(DATA) / "small_enja").is_dir(), reason="REGARD_DATA has no folder small_enja"
)


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """Isolate tests from the data and the cache of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.delenv("REGARD_TATOEBA_URL", raising=False)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))


def write_gz(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def zip_bytes(name, lines):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "".join(f"{line}\n" for line in lines))
    return buffer.getvalue()


ANKI = [f"Sentence {i}.\tSatz {i}.\tCC-BY 2.0" for i in range(40)]


@pytest.fixture
def network(monkeypatch):
    """Table of files that replaces the network."""
    pages = {}

    def fetch(url, *, cache, instead):
        path = cache / url.rpartition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pages[url])
        return path

    monkeypatch.setattr(text_pairs, "fetch", fetch)
    return pages


@pytest.mark.parametrize("name", ["tatoeba", "tatoeba:deu"])
def test_tatoeba_is_downloaded_and_split_by_english_sentence(network, name):
    network["https://www.manythings.org/anki/deu-eng.zip"] = zip_bytes("deu.txt", ANKI)
    splits = find_data(name)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (36, 2, 2)


def test_tatoeba_source_is_english(network):
    network["https://www.manythings.org/anki/fra-eng.zip"] = zip_bytes("fra.txt", ANKI)
    assert find_data("tatoeba:fra").train[0] == Example("Sentence 0.", "Satz 0.")


def test_tatoeba_url_can_be_set(network, monkeypatch):
    monkeypatch.setenv("REGARD_TATOEBA_URL", "http://mirror/anki/")
    network["http://mirror/anki/deu-eng.zip"] = zip_bytes("deu.txt", ANKI)
    assert find_data("tatoeba").note.startswith("http://mirror/anki/deu-eng.zip, seed 0, split by")


@pytest.mark.parametrize("content", [b"no zip", zip_bytes("other.txt", ANKI)])
def test_damaged_archive_raises(network, content):
    network["https://www.manythings.org/anki/deu-eng.zip"] = content
    with pytest.raises(DataError, match=r"deu-eng\.zip cannot be unpacked .* Delete it to downloa"):
        find_data("tatoeba")


def test_invalid_language_code_raises():
    with pytest.raises(DataError, match=r"'tatoeba:' must be a language code .*, but is '\.\./x'"):
        find_data("tatoeba:../x")


def test_tatoeba_prefers_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    write_gz(tmp_path / "tatoeba" / "deu-eng_2018-05-13.tsv.gz", ANKI)
    assert len(find_data("tatoeba:deu").train) == 36


PARTS = ("train", "val", "test_2016_flickr")


def test_multi30k_is_downloaded_with_official_split(network):
    for part in PARTS:
        for language, word in (("en", "Dog"), ("de", "Hund")):
            url = f"{text_pairs.MULTI30K_URL}{part}.{language}.gz"
            network[url] = gzip.compress(f"{word} {part}.\n".encode())
    splits = find_data("multi30k")
    assert [splits.train, splits.valid, splits.test] == [
        [Example(f"Dog {part}.", f"Hund {part}.")] for part in PARTS
    ]


def test_multi30k_prefers_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    for part in PARTS:
        write_gz(tmp_path / "multi30k" / f"{part}.en.gz", ["Dog."])
        write_gz(tmp_path / "multi30k" / f"{part}.de.gz", ["Hund."])
    assert find_data("multi30k").note.endswith(
        "multi30k, test_2016_flickr: 1 train, 1 valid, 1 test"
    )


@pytest.fixture
def small_enja(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    for part in ("train", "dev", "test"):
        write_gz(tmp_path / "small_enja" / f"{part}.en.gz", [f"i {part} ."])
        write_gz(tmp_path / "small_enja" / f"{part}.ja.gz", ["私 は　行 く 。"])


def test_spaces_are_removed_from_japanese(small_enja):
    splits = find_data("small_enja")
    assert [splits.train, splits.valid, splits.test] == [
        [Example(f"i {part} .", "私は行く。")] for part in ("train", "dev", "test")
    ]
    assert splits.note.endswith("Japanese without spaces: 1 train, 1 valid, 1 test")


def test_tokenised_japanese_keeps_spaces(small_enja):
    assert find_data("small_enja:tokenised").test[0].target == "私 は　行 く 。"


def test_invalid_argument_of_small_enja_raises():
    message = r"'small_enja:' must be one of 'tokenised', but is 'tokenized'\. Did you mean 'token"
    with pytest.raises(DataError, match=message):
        find_data("small_enja:tokenized")


def test_missing_folder_raises(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    message = rf"'small_enja' .* contains small_enja/train\.en\.gz, .*; it is '{tmp_path}'"
    with pytest.raises(DataError, match=message):
        find_data("small_enja")


@needs_enja
def test_real_corpus_has_official_sizes_and_no_spaces(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", DATA)
    splits = find_data("small_enja")
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (50_000, 500, 500)
    assert not any(len(example.target.split()) > 1 for example in splits.train)
    assert splits.test[0] == Example(
        "they finally acknowledged it as true .", "彼らはついにそれが真実だと認めた。"
    )
