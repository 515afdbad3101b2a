"""Videos as a person gives them: folders of frames, animated images, numbers."""

import pytest
from PIL import Image

from regard.data.datasets.synthetic.moving import render_motion, sample_motion
from regard.runs.request import Request
from regard.runs.train import train

SMALL = (
    "data.source.size=16",
    "data.source.num_frames=3",
    "model.encoder.image.widths=[8]",
    "model.encoder.image.blocks=[1]",
    "model.decoder.dim=8",
    "train.max_epochs=1",
    "validation.metric=loss",
    "search.max_extra=5",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, after too few steps to know anything, beside its data: animated images."""
    folder = tmp_path_factory.mktemp("videos")
    lines = []
    for number in range(12):
        found = sample_motion(0, number)
        frames = [Image.fromarray(f) for f in render_motion(found, num_frames=4, size=24)]
        frames[0].save(folder / f"{number}.gif", save_all=True, append_images=frames[1:])
        lines.append(f"{number}.gif\t{found.caption}\n")
    (folder / "said.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "clip").mkdir()
    for number, frame in enumerate(frames):
        frame.save(folder / "clip" / f"frame_{number:02}.png")
    request = Request(
        data=(str(folder / "said.tsv"),),
        recipe="moving-laptop",
        settings=SMALL,
        out=folder / "run",
        device="cpu",
    )
    train(request)
    return folder


@pytest.mark.parametrize("name", ["3.gif", "clip"])
def test_a_video_is_told(regard, folder, name):
    found = regard("predict", folder / "run", folder / name)
    assert found.code == 0 and len(found.lines) == 1


def test_pairs_are_measured(regard, folder):
    found = regard("evaluate", folder / "run", folder / "said.tsv")
    assert found.code == 0 and len(found.lines) == 2


def test_show_draws_a_strip_of_frames_for_each_word(regard, folder):
    out = folder / "look.png"
    found = regard("show", folder / "run", "moving/0/3", "--target", "a red circle", "--out", out)
    assert found.lines == ["a red circle", str(out)]
    with Image.open(out) as drawn:
        width, height = drawn.size
    # A row of frames, and one for each of three words and the end.
    assert height > 1.5 * width
    found = regard("show", folder / "run", folder / "clip", "--target", "a red circle")
    assert found.code == 0 and "frame 1" in found.out


def test_a_gap_is_one_line(regard, folder, tmp_path):
    for number in (1, 3):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.png")
    found = regard("predict", folder / "run", tmp_path)
    assert found.code == 2
    assert "has no frame 2: 3.png follows 1.png" in found.err and found.err.count("\n") == 1


def test_a_gap_is_skipped_and_counted(regard, folder, tmp_path):
    for number in (1, 3):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.png")
    lines = [f"{folder}/{number}.gif\ta red circle moves\n" for number in range(12)]
    (folder / "gap.tsv").write_text("".join([*lines, f"{tmp_path}\ta gap\n"]), encoding="utf-8")
    words = ("--recipe", "moving-laptop", *SMALL, "--device", "cpu")
    found = regard("train", folder / "gap.tsv", *words, "--out", tmp_path / "run")
    assert found.code == 0, found.err
    assert "skipped 1 of 13 examples whose video cannot be read (first: " in found.err


def test_an_empty_folder_is_one_line(regard, folder, tmp_path):
    found = regard("predict", folder / "run", tmp_path)
    assert found.code == 2
    assert "holds no frame" in found.err and found.err.count("\n") == 1
