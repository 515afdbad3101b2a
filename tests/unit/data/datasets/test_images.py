from collections import Counter

import numpy as np
import pytest

from regard.core.errors import DataError
from regard.data.datasets import images
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.data.image.builtin import Collection

LABELS = tuple("abbcccdddd" * 30)


@pytest.fixture
def three_hundred(monkeypatch):
    """Data sets of 300 images with unbalanced labels."""
    collection = Collection(np.zeros((300, 2, 2, 1), np.uint8), LABELS)
    monkeypatch.setattr(images, "read_collection", lambda name, split: collection)
    monkeypatch.setattr(images, "NUM_VALID", 50)
    monkeypatch.setattr(images, "NUM_DIGITS_HELD_OUT", 40)


@pytest.mark.parametrize("name", ["fashion-mnist", "mnist", "cifar10"])
def test_validation_is_held_out_and_test_is_official(three_hundred, name):
    splits = find_data(name)
    everything = {Example(f"{name}/train/{n}", label) for n, label in enumerate(LABELS)}
    assert len(splits.train) == 250 and len(splits.valid) == 50
    assert {*splits.train, *splits.valid} == everything
    assert splits.test == [Example(f"{name}/test/{n}", label) for n, label in enumerate(LABELS)]
    assert splits.note.endswith("250 train, 50 valid, 300 test")


def test_digits_have_disjoint_splits(three_hundred):
    splits = find_data("digits")
    parts = (splits.train, splits.valid, splits.test)
    assert [len(part) for part in parts] == [220, 40, 40]
    assert {e for part in parts for e in part} == {
        Example(f"digits/{n}", label) for n, label in enumerate(LABELS)
    }


def test_seed_changes_validation_split(three_hundred):
    first, same, other = (find_data("mnist", seed=seed) for seed in (0, 0, 1))
    assert first == same and {*first.valid} != {*other.valid}


def test_subsets_are_balanced_and_nested(three_hundred):
    few, more, everything = (find_data(f"mnist{n}") for n in (":20", ":1_00", ""))
    assert Counter(e.target for e in few.train) == dict.fromkeys("abcd", 5)
    assert len(more.train) == 100
    assert {*few.train} < {*more.train} < {*everything.train}
    assert few.valid == more.valid == everything.valid
    # A label with fewer than 25 images is used completely; the other labels fill the rest.
    rarest = Counter(e.target for e in everything.train)["a"]
    assert Counter(e.target for e in more.train)["a"] == min(25, rarest)


@pytest.mark.parametrize("argument", ["0", "251", "many", "1.5"])
@pytest.mark.parametrize("name", ["mnist"])
def test_invalid_number_of_images_raises(three_hundred, name, argument):
    with pytest.raises(DataError, match=f"from 1 to 250, but is '{argument}'"):
        find_data(f"{name}:{argument}")


class TestFlickr8k:
    @pytest.fixture
    def few(self, tmp_path, monkeypatch, write):
        """Two training photos, one validation and one test photo, with two captions each."""
        monkeypatch.setenv("REGARD_DATA", str(tmp_path))
        (tmp_path / "flickr8k").mkdir()
        (tmp_path / "flickr8k" / "images_96.zip").write_bytes(b"PK")
        rows = [
            f"{image}.jpg\t{number}\t{part}\tcaption {number} of {image}\n"
            for image, part in (("a", "train"), ("b", "dev"), ("c", "test"), ("d", "train"))
            for number in range(2)
        ]
        rows.append("e.jpg\t0\textra\tleft out\n")
        write("flickr8k/captions.tsv.gz", "".join(rows))
        return f"{tmp_path}/flickr8k/images_96.zip"

    def test_training_has_one_example_per_caption_and_test_one_per_photo(self, few):
        splits = find_data("flickr8k")
        assert splits.train == [
            Example(f"{few}/{image}.jpg", f"caption {number} of {image}")
            for image in "ad"
            for number in range(2)
        ]
        assert splits.valid == [
            Example(f"{few}/b.jpg", "caption 0 of b", references=("caption 1 of b",))
        ]
        assert [example.source for example in splits.test] == [f"{few}/c.jpg"]

    def test_argument_is_number_of_photos(self, few):
        splits = find_data("flickr8k:1")
        assert len(splits.train) == 2 and len({e.source for e in splits.train}) == 1
        with pytest.raises(DataError, match="from 1 to 2, but is '3'"):
            find_data("flickr8k:3")

    def test_missing_folder_raises(self, tmp_path, monkeypatch):
        monkeypatch.setenv("REGARD_DATA", str(tmp_path))
        with pytest.raises(DataError, match="`REGARD_DATA` .* contains flickr8k/captions"):
            find_data("flickr8k")

    def test_real_data_has_official_sizes(self, data_folder):
        if not (data_folder / "flickr8k" / "captions.tsv.gz").is_file():
            pytest.skip("Flickr8k is not in REGARD_DATA")
        splits = find_data("flickr8k")
        assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [
            30_000,
            1_000,
            1_000,
        ]
        assert len({example.source for example in splits.train}) == 6_000
        assert {len({e.target, *e.references}) for e in splits.test} <= {4, 5}
        assert sum(len(e.references) == 4 for e in splits.test) > 990
