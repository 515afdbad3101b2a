"""A story and a question as a person types them: sentences parted by tabs."""

from pathlib import Path

import pytest

from regard.runs.request import Request
from regard.runs.train import train

SMALL = (
    "model.encoder.dim=16",
    "model.decoder.dim=16",
    "model.encoder.num_heads=2",
    "train.max_epochs=2",
    "validation.metric=loss",
)
STORY = "Mary went to the hall.\tJohn went home.\tWhere is Mary?"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on stories of one to three sentences, after too few steps to know anything."""
    folder = tmp_path_factory.mktemp("stories")
    places = ("hall", "kitchen", "garden")
    lines = [
        "\t".join([*(f"{name} went to the {place}." for name in names), f"Where is {names[0]}?"])
        + f"\t{place}\n"
        for place in places
        for names in (("Mary",), ("John",), ("John", "Mary"), ("Mary", "John", "Sandra"))
    ]
    (folder / "stories.tsv").write_text("".join(lines), encoding="utf-8")
    request = Request(
        data=(str(folder / "stories.tsv"),),
        recipe="babi",
        settings=SMALL,
        out=folder / "run",
        device="cpu",
    )
    return train(request).folder


def test_a_story_is_drawn_with_a_column_for_each_sentence(regard, run, tmp_path):
    answer = regard("show", run, STORY, "--out", tmp_path / "map.svg")
    assert answer.code == 0
    drawing = (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert all(word in drawing for word in ("john", "where is mary"))


def test_stories_of_any_length_are_answered_line_by_line(regard, run):
    answer = regard("predict", run, stdin=f"{STORY}\n\nWhere is Mary?\n")
    assert answer.code == 0
    assert len(answer.lines) == 3
    assert answer.lines[1] == ""


def test_its_own_test_stories_are_measured_again(regard, run):
    answer = regard("evaluate", run, Path(run) / "test.jsonl")
    assert answer.code == 0
    assert answer.lines[0].startswith("accuracy")
