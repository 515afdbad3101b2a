import pytest

from regard.core.errors import ConfigError, DataError
from regard.tasks.generation.recipe import Recipe
from regard.tasks.sources import check_text, is_text, read_argument

TEXTS = ["A dog runs.", "dog", "and so on/off", "e.g.", "see notes.txt today", "x" * 5000, "…"]
NAMES = ["-", "a.txt", "folder/lines", "a.PNG", "talk.wav", "C:\\lines", "b.jsonl.gz", "shapes/0/3"]


@pytest.mark.parametrize("argument", TEXTS)
def test_texts_are_recognised(argument):
    assert is_text(argument)


@pytest.mark.parametrize("argument", NAMES)
def test_names_are_recognised(argument):
    assert not is_text(argument)


def test_existing_file_is_no_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two words").write_text("a\n", encoding="utf-8")
    assert not is_text("two words")
    assert list(read_argument("two words", Recipe())) == ["a"]


def test_text_is_the_only_source():
    assert list(read_argument("two words", Recipe())) == ["two words"]


def test_single_word_is_reported(caplog):
    with caplog.at_level("INFO", "regard"):
        assert list(read_argument("word", Recipe())) == ["word"]
    assert "'word' is not a file" in caplog.text


@pytest.mark.parametrize("argument", ["", " "])
def test_empty_text_is_refused(argument):
    with pytest.raises(ConfigError, match="at least one word"):
        read_argument(argument, Recipe())


def test_missing_file_is_refused():
    with pytest.raises(DataError, match=r"lines\.txt does not exist"):
        list(read_argument("lines.txt", Recipe()))
    with pytest.raises(DataError, match=r"lines\.txt does not exist"):
        check_text("lines.txt", Recipe())


def test_file_in_place_of_a_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is a file"):
        check_text(str(tmp_path), Recipe())
    check_text("two words", Recipe())
