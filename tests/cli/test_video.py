"""Commands on videos: folders of frames, animated images, built-in videos."""

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
    """Folder with animated images and a run trained for a few steps."""
    folder = tmp_path_factory.mktemp("videos")
    lines = []
    for number in range(12):
        found = sample_motion(0, number)
        frames = [Image.fromarray(f) for f in render_motion(found, num_frames=4, size=24)]
        frames[0].save(folder / f"{number}.gif", save_all=True, append_images=frames[1:])
        lines.append(f"{number}.gif\t{found.caption}\n")
    (folder / "captions.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "clip").mkdir()
    for number, frame in enumerate(frames):
        frame.save(folder / "clip" / f"frame_{number:02}.png")
    request = Request(
        data=(str(folder / "captions.tsv"),),
        recipe="moving-laptop",
        settings=SMALL,
        out=folder / "run",
        device="cpu",
    )
    train(request)
    return folder


@pytest.mark.parametrize("name", ["3.gif", "clip"])
def test_video_is_captioned(regard, folder, name):
    result = regard("predict", folder / "run", folder / name)
    assert result.code == 0 and len(result.lines) == 1


def test_videos_are_evaluated(regard, folder):
    result = regard("evaluate", folder / "run", folder / "captions.tsv")
    assert result.code == 0 and len(result.lines) == 2


def test_show_plots_a_row_of_frames_for_each_word(regard, folder):
    out = folder / "plot.png"
    result = regard("show", folder / "run", "moving/0/3", "--target", "a red circle", "--out", out)
    assert result.lines == ["a red circle", str(out)]
    with Image.open(out) as image:
        width, height = image.size
    # A row of frames, and one for each of three words and the end token.
    assert height > 1.5 * width
    result = regard("show", folder / "run", folder / "clip", "--target", "a red circle")
    assert result.code == 0 and "frame 1" in result.out


def test_missing_frame_is_one_line_of_error(regard, folder, tmp_path):
    for number in (1, 3):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.png")
    result = regard("predict", folder / "run", tmp_path)
    assert result.code == 2
    assert "has no frame 2: 3.png follows 1.png" in result.err and result.err.count("\n") == 1


def test_video_with_a_missing_frame_is_skipped_and_counted(regard, folder, tmp_path):
    for number in (1, 3):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.png")
    lines = [f"{folder}/{number}.gif\ta red circle moves\n" for number in range(12)]
    (folder / "incomplete.tsv").write_text(
        "".join([*lines, f"{tmp_path}\ta red circle\n"]), encoding="utf-8"
    )
    arguments = ("--recipe", "moving-laptop", *SMALL, "--device", "cpu")
    result = regard("train", folder / "incomplete.tsv", *arguments, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "skipped 1 of 13 examples whose video cannot be read (first: " in result.err


def test_empty_folder_is_one_line_of_error(regard, folder, tmp_path):
    result = regard("predict", folder / "run", tmp_path)
    assert result.code == 2
    assert "holds no frame" in result.err and result.err.count("\n") == 1
