import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data.datasets import text_pairs
from regard.data.datasets.catalog import find_data

DATA = os.environ.get("REGARD_DATA", "")
SIZES = {"train": 40, "val": 5, "test_2016_flickr": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small Multi30k in which every second sentence has a photo."""
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    monkeypatch.setattr(text_pairs, "NUM_VALID", 4)
    monkeypatch.setattr(text_pairs, "NUM_TEST", 6)
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "flickr8k").mkdir()
    (tmp_path / "flickr8k" / "images_96.zip").touch()
    rows = []
    for part, num in SIZES.items():
        for language in ("en", "de"):
            text = "".join(f"{language} {part} {number}\n" for number in range(num))
            path = tmp_path / "multi30k" / f"{part}.{language}.gz"
            path.write_bytes(gzip.compress(text.encode()))
        rows += [f"{part}\t{number}\t{part}{number}.jpg\n" for number in range(0, num, 2)]
    (tmp_path / "flickr8k" / "multi30k_overlap.tsv").write_text("".join(rows))
    return tmp_path


def test_each_sentence_has_its_photo(folder):
    splits = find_data("multi30k:images")
    for example in (*splits.train, *splits.valid, *splits.test):
        text, photo = example.source
        _, part, number = text.split()
        assert photo == f"{folder}/flickr8k/images_96.zip/{part}{number}.jpg"
        assert example.target == f"de {part} {number}"


def test_held_out_splits_are_filled_from_training_and_share_no_photo(folder):
    splits = find_data("multi30k:images")
    parts = splits.train, splits.valid, splits.test
    assert [len(part) for part in parts] == [20 - 1 - 3, 4, 6]
    assert max(Counter(e.source[1] for part in parts for e in part).values()) == 1
    assert [e.target for e in splits.test[:3]] == [f"de test_2016_flickr {n}" for n in (0, 2, 4)]
    assert "filled up by photo, 3 and 3 of them official: 16 train" in splits.note


def test_pairs_are_the_same_with_and_without_photos(folder):
    with_images, text_only = find_data("multi30k:images"), find_data("multi30k:images-text", seed=3)
    for part in ("train", "valid", "test"):
        pairs = [(example.source[0], example.target) for example in getattr(with_images, part)]
        assert pairs == [(example.source, example.target) for example in getattr(text_only, part)]


@pytest.mark.parametrize("line", ["train\t99\tx.jpg", "dev\t0\tx.jpg", "train\tx\tx.jpg", "train"])
def test_invalid_line_of_overlap_file_raises(folder, line):
    (folder / "flickr8k" / "multi30k_overlap.tsv").write_text(line + "\n")
    with pytest.raises(DataError, match=r"multi30k_overlap.tsv, line 1, must have a split of Mult"):
        find_data("multi30k:images")


def test_unknown_argument_raises():
    with pytest.raises(
        DataError, match=r"The argument of 'multi30k:' must be one of 'images', .* is 'image'"
    ):
        find_data("multi30k:image")


@pytest.mark.skipif(
    not (Path(DATA) / "flickr8k" / text_pairs.OVERLAP).is_file(),
    reason="REGARD_DATA has no flickr8k/multi30k_overlap.tsv",
)
def test_real_splits_have_expected_sizes():
    splits = find_data("multi30k:images")
    assert (len(splits.valid), len(splits.test)) == (500, 1000)
    assert len(splits.train) > 5_900
