"""Commands on stories with a question: sentences separated by tabs."""

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
    """A run on stories of one to three sentences, trained for a few steps."""
    folder = tmp_path_factory.mktemp("stories")
    rooms = ("hall", "kitchen", "garden")
    lines = [
        "\t".join([*(f"{name} went to the {room}." for name in names), f"Where is {names[0]}?"])
        + f"\t{room}\n"
        for room in rooms
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


def test_attention_has_a_column_for_each_sentence(regard, run, tmp_path):
    result = regard("show", run, STORY, "--out", tmp_path / "map.svg")
    assert result.code == 0
    plot = (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert all(word in plot for word in ("john", "where is mary"))


def test_stories_of_any_length_have_one_prediction_per_line(regard, run):
    result = regard("predict", run, stdin=f"{STORY}\n\nWhere is Mary?\n")
    assert result.code == 0
    assert len(result.lines) == 3
    assert result.lines[1] == ""


def test_test_set_of_the_run_is_evaluated(regard, run):
    result = regard("evaluate", run, Path(run) / "test.jsonl")
    assert result.code == 0
    assert result.lines[0].startswith("accuracy")
