"""Commands on sources of a text and an image: two columns, separated by a tab."""

import re
from pathlib import Path

import pytest

from regard.data.datasets.synthetic.scenes import render
from regard.runs.request import Request
from regard.runs.train import train

SMALL = (
    "data.source.image.size=16",
    "model.encoder.text.dim=8",
    "model.encoder.image.widths=[4]",
    "model.encoder.image.blocks=[1]",
    "model.decoder.dim=8",
    "train.max_epochs=1",
    "train.average_last=0",
    "validation.metric=loss",
    "search.max_ratio=0.0",
    "search.max_extra=5",
)
SOURCE = "a shape number\timages/0.png"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with data and a run trained for a few steps."""
    folder = tmp_path_factory.mktemp("joined")
    (folder / "images").mkdir()
    for number in range(12):
        render(f"scenes/0/{number}").save(folder / "images" / f"{number}.png")
    lines = [f"a shape number {n}\timages/{n}.png\teine Form Nummer {n}\n" for n in range(12)]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    request = Request(
        data=(str(folder / "pairs.tsv"),),
        recipe="multimodal-laptop",
        settings=SMALL,
        out=folder / "run",
        device="cpu",
    )
    train(request)
    return folder


def test_predict_finds_images_from_the_folder_of_the_file(regard, folder):
    (folder / "sources.tsv").write_text(f"{SOURCE}\n\ntwo stars\tscenes/0/4\n", encoding="utf-8")
    result = regard("predict", folder / "run", folder / "sources.tsv")
    assert result.code == 0
    assert len(result.lines) == 3 and result.lines[1] == ""


@pytest.mark.parametrize("command", ["evaluate", "score"])
def test_pairs_are_evaluated_and_scored(regard, folder, command):
    result = regard(command, folder / "run", folder / "pairs.tsv")
    assert result.code == 0
    assert len(result.lines) == (2 if command == "evaluate" else 12)


def test_show_plots_words_and_image(regard, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = regard("show", "run", SOURCE, "--target", "eine Form", "--out", "plot.png")
    assert result.lines == ["eine Form", "plot-words.png", "plot.png"]
    assert Path("plot-words.png").stat().st_size and Path("plot.png").stat().st_size
    result = regard("show", "run", SOURCE, "--target", "eine Form")
    assert "shape" in result.out and "max " in result.out


def test_unreadable_image_among_others_has_an_empty_line(regard, folder):
    source_lines = (folder / "sources.tsv").read_text(encoding="utf-8").splitlines()[:1]
    good = regard("predict", folder / "run", folder / "sources.tsv").lines[0]
    lines = [*source_lines, "a shape number\tnone.png", "", *source_lines]
    (folder / "some.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = regard("predict", folder / "run", folder / "some.tsv")
    assert result.lines == [good, "", "", good]
    assert "skipped 1 of 3 examples whose image cannot be read (first: " in result.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a shape number", "A line must have 2 columns"),
        ("a shape number\tnone.png", "none.png does not exist"),
        ("a shape number\t ", "the image of .* is empty"),
    ],
)
def test_invalid_source_is_one_line_of_error(regard, folder, line, message):
    (folder / "bad.tsv").write_text(line + "\n", encoding="utf-8")
    result = regard("predict", folder / "run", folder / "bad.tsv")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert re.search(message, result.err)
