import json
import sys

import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.datasets.visual_questions import NUM_VALID_IMAGES


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `easy_vqa` with questions about images that do not exist."""
    folder = tmp_path / "easy_vqa"
    for part in ("train", "test"):
        (folder / "data" / part).mkdir(parents=True)
        rows = [
            row
            for number in range(NUM_VALID_IMAGES + 20)
            for row in (
                ["what is the blue shape?", "circle", number],
                ["what color is the circle?", "blue", number],
                ["is there not a triangle?", "yes", number],
                ["is there a triangle?", "no", number],
            )
        ]
        (folder / "data" / part / "questions.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return folder


def test_test_split_is_official(package):
    splits = find_data("easy-vqa")
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [80, 1600, 1680]
    first = splits.test[0]
    image = str(package / "data" / "test" / "images" / "0.png")
    assert (first.source, first.target) == (("what is the blue shape?", image), "circle")
    assert "100.0 % accuracy from the question alone" in splits.note


def test_validation_is_held_out_by_image(package):
    splits = find_data("easy-vqa", seed=3)
    train, valid = ({e.source[1] for e in part} for part in (splits.train, splits.valid))
    assert len(valid) == NUM_VALID_IMAGES and not train & valid
    assert valid != {example.source[1] for example in find_data("easy-vqa", seed=4).valid}


def test_questions_are_tagged_by_type(package):
    tags = [example.tags for example in find_data("easy-vqa").test[:4]]
    assert tags == [("shape",), ("colour",), ("yes or no", "negated"), ("yes or no",)]


def test_damaged_file_raises(package):
    (package / "data" / "train" / "questions.json").write_text('[["what"]]', encoding="utf-8")
    with pytest.raises(DataError, match="questions.json must be a list of questions"):
        find_data("easy-vqa")


def test_missing_package_raises(monkeypatch):
    monkeypatch.setattr("regard.data.datasets.loading.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"needs a package.*regard\[data\]"):
        find_data("easy-vqa")


def test_argument_raises(package):
    with pytest.raises(DataError, match="takes no argument"):
        find_data("easy-vqa:5")
