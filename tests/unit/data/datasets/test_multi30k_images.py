import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from regard.core.errors import DataError
from regard.data.datasets import text_pairs
from regard.data.datasets.catalog import find_data

DATA = os.environ.get("REGARD_DATA", "")
SIDES = {"train": 40, "val": 5, "test_2016_flickr": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Multi30k in small, each second sentence of which has a photo."""
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    monkeypatch.setattr(text_pairs, "NUM_VALID", 4)
    monkeypatch.setattr(text_pairs, "NUM_TEST", 6)
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "flickr8k").mkdir()
    (tmp_path / "flickr8k" / "images_96.zip").touch()
    rows = []
    for side, num in SIDES.items():
        for language in ("en", "de"):
            text = "".join(f"{language} {side} {number}\n" for number in range(num))
            path = tmp_path / "multi30k" / f"{side}.{language}.gz"
            path.write_bytes(gzip.compress(text.encode()))
        rows += [f"{side}\t{number}\t{side}{number}.jpg\n" for number in range(0, num, 2)]
    (tmp_path / "flickr8k" / "multi30k_overlap.tsv").write_text("".join(rows))
    return tmp_path


def test_every_sentence_has_its_own_photo(folder):
    splits = find_data("multi30k:images")
    for example in (*splits.train, *splits.valid, *splits.test):
        text, photo = example.source
        _, side, number = text.split()
        assert photo == f"{folder}/flickr8k/images_96.zip/{side}{number}.jpg"
        assert example.target == f"de {side} {number}"


def test_held_out_sides_are_filled_up_from_training_and_share_no_photo(folder):
    splits = find_data("multi30k:images")
    sides = splits.train, splits.valid, splits.test
    assert [len(side) for side in sides] == [20 - 1 - 3, 4, 6]
    assert max(Counter(e.source[1] for side in sides for e in side).values()) == 1
    assert [e.target for e in splits.test[:3]] == [f"de test_2016_flickr {n}" for n in (0, 2, 4)]
    assert "filled up by photo, 3 and 3 of them official: 16 train" in splits.note


def test_the_twin_without_photos_has_the_same_pairs(folder):
    seen, unseen = find_data("multi30k:images"), find_data("multi30k:images-text", seed=3)
    for side in ("train", "valid", "test"):
        pairs = [(example.source[0], example.target) for example in getattr(seen, side)]
        assert pairs == [(example.source, example.target) for example in getattr(unseen, side)]


@pytest.mark.parametrize("line", ["train\t99\tx.jpg", "dev\t0\tx.jpg", "train\tx\tx.jpg", "train"])
def test_a_line_that_names_no_sentence_is_an_error(folder, line):
    (folder / "flickr8k" / "multi30k_overlap.tsv").write_text(line + "\n")
    with pytest.raises(DataError, match=r"multi30k_overlap.tsv, line 1, must have a split of Mult"):
        find_data("multi30k:images")


def test_an_unknown_argument_is_an_error():
    with pytest.raises(
        DataError, match=r"The argument of 'multi30k:' must be one of 'images', .* is 'image'"
    ):
        find_data("multi30k:image")


@pytest.mark.skipif(
    not (Path(DATA) / "flickr8k" / text_pairs.OVERLAP).is_file(),
    reason="REGARD_DATA has no flickr8k/multi30k_overlap.tsv",
)
def test_the_real_sides_are_large_enough_to_test_on():
    splits = find_data("multi30k:images")
    assert (len(splits.valid), len(splits.test)) == (500, 1000)
    assert len(splits.train) > 5_900
