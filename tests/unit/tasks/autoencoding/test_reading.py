import pytest

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.tasks.autoencoding import reading
from regard.tasks.autoencoding.reading import read_plain_text_split, read_plain_texts
from regard.tasks.autoencoding.recipe import AutoencodingDataConfig

CONFIG = AutoencodingDataConfig()


def read(*data):
    return read_plain_texts(data, (), (), config=CONFIG)


def test_lines_of_a_text_are_their_own_targets(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b\n\n  c d \na b\n", encoding="utf-8")
    assert read_plain_text_split((str(path),), "test", config=CONFIG) == [
        Example("a b", "a b"),
        Example("c d", "c d"),
    ]


def test_sources_of_pairs_are_read(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a b\tx\nc\ty\n", encoding="utf-8")
    found = read_plain_text_split((str(path),), "test", config=CONFIG)
    assert [(example.source, example.target) for example in found] == [("a b", "a b"), ("c", "c")]


def test_written_examples_are_read_again(tmp_path):
    examples = [Example("a", "a", tags=("short",)), Example("b c", "b c")]
    write_examples(tmp_path / "test.jsonl", examples)
    path = str(tmp_path / "test.jsonl")
    assert read_plain_text_split((path,), "test", config=CONFIG) == examples


def test_splits_share_no_text():
    splits = read("opinions")
    train, test = ({example.source for example in split} for split in (splits.train, splits.test))
    assert train and test and not train & test
    assert all(example.source == example.target for example in splits.train)


def test_second_file_is_refused(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a\n", encoding="utf-8")
    with pytest.raises(DataError, match="one file is enough, but there is a second one"):
        read(str(path), str(path))


def test_source_of_several_texts_is_refused(monkeypatch):
    pairs = [Example(("a", "b"), "c")]
    monkeypatch.setattr(reading, "read_split", lambda *paths, **options: pairs)
    with pytest.raises(DataError, match="A source must be one text, but is 2"):
        read_plain_text_split(("sick",), "test", config=CONFIG)


def test_images_are_refused():
    with pytest.raises(DataError, match=r"A text is needed, but .* names an image"):
        read("shapes:40")
