"""Commands on models that predict images."""

import json

import numpy as np
import pytest
from PIL import Image

from regard.data.datasets.synthetic.moving import render_motion, sample_motion
from regard.data.datasets.synthetic.scenes import render
from regard.runs.request import Request
from regard.runs.train import train

SMALL = (
    "data.source.size=12",
    "data.target.size=12",
    "model.generator.widths=[4,3]",
    "model.generator.blocks=[1,1]",
    "train.max_steps=2",
)
IMAGES = (*SMALL, "model.encoder.widths=[3,4]", "model.encoder.blocks=[1,1]")


def size_of(path):
    with Image.open(path) as image:
        return image.size


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A denoiser after two steps, beside its images."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "photos").mkdir()
    for number in range(12):
        image = Image.fromarray(np.asarray(render(f"shapes/0/{number}")))
        image.save(folder / "photos" / f"{number}.png")
    request = Request(
        data=(str(folder / "photos"),),
        recipe="vincent2008-laptop",
        settings=IMAGES,
        out=folder / "run",
        device="cpu",
    )
    train(request)
    return folder


def test_a_folder_of_images_is_enough_to_train(regard, folder, tmp_path):
    arguments = ("--recipe", "hinton2006-laptop", "--out", tmp_path / "run", *SMALL)
    narrow = ("model.encoder.encoder.widths=[3,4]", "model.encoder.encoder.blocks=[1,1]")
    result = regard("train", folder / "photos", *arguments, *narrow)
    assert result.code == 0
    assert [line.split()[0] for line in result.lines] == ["PSNR", "SSIM", "MSE", "Run"]
    assert "images of 3 x 12 x 12 → images of 3 x 12 x 12" in result.err


def test_predictions_are_files_in_input_order(regard, folder, tmp_path):
    (folder / "list.txt").write_text("photos/3.png\nphotos/1.png\n", encoding="utf-8")
    result = regard("predict", folder / "run", folder / "list.txt", "--out", tmp_path / "new")
    assert result.lines == [str(tmp_path / "new" / name) for name in ("00001-3.png", "00002-1.png")]
    for line in result.lines:
        assert size_of(line) == (12, 12)


def test_json_holds_the_path_but_not_the_pixels(regard, folder, tmp_path):
    result = regard("predict", folder / "run", "shapes/0/5", "--json", "--out", tmp_path)
    row = json.loads(result.out)
    assert row["source"] == "shapes/0/5"
    assert row["predictions"][0]["text"] == str(tmp_path / "00001-5.png")
    assert "image" not in row["predictions"][0]


def test_predicted_images_need_a_folder(refused, folder, tmp_path):
    arguments = ("predict", folder / "run", "shapes/0/5")
    assert "Predicted images need a folder" in refused(*arguments)
    (tmp_path / "file").write_text("")
    assert "must be a folder" in refused(*arguments, "--out", tmp_path / "file")


def test_folder_is_refused_for_predicted_texts(refused, tiny_run, tmp_path):
    message = refused("predict", tiny_run.folder, "--out", tmp_path, stdin="a b\n")
    assert "`--out`" in message
    assert str(tmp_path) in message


def test_evaluate_prints_the_source_as_a_baseline(regard, folder):
    result = regard("evaluate", folder / "run", folder / "photos")
    assert [line.split(" ±")[0].rpartition(" ")[0] for line in result.lines] == [
        "PSNR",
        "SSIM",
        "MSE",
        "PSNR of the source (noise)",
        "MSE of the source (noise)",
    ]


def test_score_prints_the_log_density_of_images(regard, folder):
    result = regard("score", folder / "run", folder / "photos")
    assert result.code == 0 and len(result.lines) == 12
    first = json.loads(regard("score", folder / "run", folder / "photos", "--json").lines[0])
    assert first["log_prob"] == pytest.approx(float(result.lines[0]), abs=1e-4)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_show_plots_source_prediction_and_target(regard, folder, tmp_path, suffix):
    out = tmp_path / f"plot{suffix}"
    result = regard("show", folder / "run", folder / "photos" / "3.png", "--out", out)
    assert result.code == 0 and result.lines == [str(out)]
    if suffix == ".svg":
        text = out.read_text(encoding="utf-8")
        assert all(word in text for word in ("source", "generated", "target"))


def test_show_prints_images_in_the_terminal(regard, folder):
    result = regard("show", folder / "run", "shapes/0/3")
    assert result.code == 0 and "generated" in result.out


def test_readable_images_among_others_are_predicted(regard, folder, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("a.png", "c.png"):
        (photos / name).write_bytes((folder / "photos" / "3.png").read_bytes())
    (photos / "b.png").write_text("no image")
    result = regard("predict", folder / "run", photos, "--out", tmp_path / "new")
    drawn = [tmp_path / "new" / name for name in ("00001-a.png", "00003-c.png")]
    assert result.lines == [str(drawn[0]), "", str(drawn[1])]
    assert sorted((tmp_path / "new").iterdir()) == drawn


def test_bad_images_are_refused(refused, folder, tmp_path, pairs):
    (tmp_path / "bad.png").write_text("no image")
    arguments = ("predict", folder / "run", tmp_path / "bad.png", "--out", tmp_path)
    assert "is not an image" in refused(*arguments)
    arguments = ("predict", folder / "run", tmp_path / "none.png", "--out", tmp_path)
    assert "none.png" in refused(*arguments)
    arguments = ("train", pairs, "--recipe", "hinton2006-laptop", "--out", tmp_path / "run")
    assert "names no image that exists" in refused(*arguments)


def test_next_frame_of_an_animation_is_predicted(regard, tmp_path):
    for number in range(12):
        drawn = render_motion(sample_motion(0, number), num_frames=4, size=16)
        frames = [Image.fromarray(frame) for frame in drawn]
        frames[0].save(tmp_path / f"{number}.gif", save_all=True, append_images=frames[1:])
    arguments = ("--recipe", "next-frame-laptop", "--out", tmp_path / "run", *SMALL)
    video = (
        "data.source.num_frames=3",
        "model.encoder.image.widths=[8]",
        "model.encoder.image.blocks=[1]",
    )
    result = regard("train", tmp_path, *arguments, *video)
    assert result.code == 0 and "PSNR of the source (last frame)" in result.out
    result = regard("predict", tmp_path / "run", tmp_path / "3.gif", "--out", tmp_path / "new")
    assert size_of(result.lines[0]) == (12, 12)
    result = regard("show", tmp_path / "run", tmp_path / "3.gif", "--out", tmp_path / "plot.png")
    assert result.code == 0
