import json
import sys

import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.datasets.visual_questions import NUM_VALID_IMAGES


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the right name with a few questions about images that are not there."""
    folder = tmp_path / "easy_vqa"
    for side in ("train", "test"):
        (folder / "data" / side).mkdir(parents=True)
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
        (folder / "data" / side / "questions.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return folder


def test_questions_keep_their_official_test_side(package):
    splits = find_data("easy-vqa")
    assert [len(side) for side in (splits.train, splits.valid, splits.test)] == [80, 1600, 1680]
    first = splits.test[0]
    image = str(package / "data" / "test" / "images" / "0.png")
    assert (first.source, first.target) == (("what is the blue shape?", image), "circle")
    assert "100.0 % accuracy from the question alone" in splits.note


def test_validation_is_held_out_by_image(package):
    splits = find_data("easy-vqa", seed=3)
    train, valid = ({e.source[1] for e in side} for side in (splits.train, splits.valid))
    assert len(valid) == NUM_VALID_IMAGES and not train & valid
    assert valid != {example.source[1] for example in find_data("easy-vqa", seed=4).valid}


def test_questions_are_tagged_with_what_they_ask_for(package):
    tags = [example.tags for example in find_data("easy-vqa").test[:4]]
    assert tags == [("shape",), ("colour",), ("yes or no", "negated"), ("yes or no",)]


def test_a_damaged_file_is_named(package):
    (package / "data" / "train" / "questions.json").write_text('[["what"]]', encoding="utf-8")
    with pytest.raises(DataError, match="questions.json must be a list of questions"):
        find_data("easy-vqa")


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setattr("regard.data.datasets.loading.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"needs a package.*regard\[data\]"):
        find_data("easy-vqa")


def test_nothing_may_follow_the_name(package):
    with pytest.raises(DataError, match="takes no argument"):
        find_data("easy-vqa:5")
