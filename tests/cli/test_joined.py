"""A text with an image as a person gives them: two columns, parted by a tab."""

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
ASKED = "a shape number\timages/0.png"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, after too few steps to know anything, beside its data."""
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
    (folder / "asked.tsv").write_text(f"{ASKED}\n\ntwo stars\tscenes/0/4\n", encoding="utf-8")
    found = regard("predict", folder / "run", folder / "asked.tsv")
    assert found.code == 0
    assert len(found.lines) == 3 and found.lines[1] == ""


@pytest.mark.parametrize("verb", ["evaluate", "score"])
def test_pairs_are_measured(regard, folder, verb):
    found = regard(verb, folder / "run", folder / "pairs.tsv")
    assert found.code == 0
    assert len(found.lines) == (2 if verb == "evaluate" else 12)


def test_show_draws_words_and_image(regard, folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = regard("show", "run", ASKED, "--target", "eine Form", "--out", "look.png")
    assert found.lines == ["eine Form", "look-words.png", "look.png"]
    assert Path("look-words.png").stat().st_size and Path("look.png").stat().st_size
    found = regard("show", "run", ASKED, "--target", "eine Form")
    assert "shape" in found.out and "max " in found.out


def test_a_bad_image_among_others_keeps_its_place(regard, folder):
    asked = (folder / "asked.tsv").read_text(encoding="utf-8").splitlines()[:1]
    good = regard("predict", folder / "run", folder / "asked.tsv").lines[0]
    lines = [*asked, "a shape number\tnone.png", "", *asked]
    (folder / "some.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = regard("predict", folder / "run", folder / "some.tsv")
    assert found.lines == [good, "", "", good]
    assert "skipped 1 of 3 examples whose image cannot be read (first: " in found.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a shape number", "A line must have 2 columns"),
        ("a shape number\tnone.png", "none.png does not exist"),
        ("a shape number\t ", "the image of .* is empty"),
    ],
)
def test_a_bad_pair_is_one_line_of_error(regard, folder, line, message):
    (folder / "bad.tsv").write_text(line + "\n", encoding="utf-8")
    found = regard("predict", folder / "run", folder / "bad.tsv")
    assert found.code == 2
    assert len(found.err.splitlines()) == 1
    assert re.search(message, found.err)
