"""Images out, as a person asks for them."""

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
    folder = tmp_path_factory.mktemp("pictures")
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
    words = ("--recipe", "hinton2006-laptop", "--out", tmp_path / "run", *SMALL)
    narrow = ("model.encoder.encoder.widths=[3,4]", "model.encoder.encoder.blocks=[1,1]")
    found = regard("train", folder / "photos", *words, *narrow)
    assert found.code == 0
    assert [line.split()[0] for line in found.lines] == ["PSNR", "SSIM", "MSE", "Run"]
    assert "images of 3 x 12 x 12 → images of 3 x 12 x 12" in found.err


def test_answers_are_files_in_the_order_of_the_questions(regard, folder, tmp_path):
    (folder / "list.txt").write_text("photos/3.png\nphotos/1.png\n", encoding="utf-8")
    found = regard("predict", folder / "run", folder / "list.txt", "--out", tmp_path / "new")
    assert found.lines == [str(tmp_path / "new" / name) for name in ("00001-3.png", "00002-1.png")]
    for line in found.lines:
        assert size_of(line) == (12, 12)


def test_json_names_the_file_and_not_the_pixels(regard, folder, tmp_path):
    found = regard("predict", folder / "run", "shapes/0/5", "--json", "--out", tmp_path)
    row = json.loads(found.out)
    assert row["source"] == "shapes/0/5"
    assert row["predictions"][0]["text"] == str(tmp_path / "00001-5.png")
    assert "image" not in row["predictions"][0]


def test_images_need_a_folder(refused, folder, tmp_path):
    asked = ("predict", folder / "run", "shapes/0/5")
    assert "The answers are images" in refused(*asked)
    (tmp_path / "file").write_text("")
    assert "must be a folder" in refused(*asked, "--out", tmp_path / "file")


def test_words_need_no_folder(refused, tiny_run, tmp_path):
    message = refused("predict", tiny_run.folder, "--out", tmp_path / "new", stdin="a b\n")
    assert "`--out` is for models that answer with images" in message
    assert not (tmp_path / "new").exists()


def test_scores_stand_beside_that_of_the_source(regard, folder):
    found = regard("evaluate", folder / "run", folder / "photos")
    assert [line.split(" ±")[0].rpartition(" ")[0] for line in found.lines] == [
        "PSNR",
        "SSIM",
        "MSE",
        "PSNR of the source (noise)",
        "MSE of the source (noise)",
    ]


def test_density_of_an_image_is_its_score(regard, folder):
    found = regard("score", folder / "run", folder / "photos")
    assert found.code == 0 and len(found.lines) == 12
    first = json.loads(regard("score", folder / "run", folder / "photos", "--json").lines[0])
    assert first["log_prob"] == pytest.approx(float(found.lines[0]), abs=1e-4)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_show_draws_source_answer_and_target(regard, folder, tmp_path, suffix):
    out = tmp_path / f"look{suffix}"
    found = regard("show", folder / "run", folder / "photos" / "3.png", "--out", out)
    assert found.code == 0 and found.lines == [str(out)]
    if suffix == ".svg":
        text = out.read_text(encoding="utf-8")
        assert all(word in text for word in ("source", "drawn", "right"))


def test_show_draws_in_the_terminal(regard, folder):
    found = regard("show", folder / "run", "shapes/0/3")
    assert found.code == 0 and "drawn" in found.out


def test_image_drawn_for_each_that_can_be_read(regard, folder, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("a.png", "c.png"):
        (photos / name).write_bytes((folder / "photos" / "3.png").read_bytes())
    (photos / "b.png").write_text("no image")
    found = regard("predict", folder / "run", photos, "--out", tmp_path / "new")
    drawn = [tmp_path / "new" / name for name in ("00001-a.png", "00003-c.png")]
    assert found.lines == [str(drawn[0]), "", str(drawn[1])]
    assert sorted((tmp_path / "new").iterdir()) == drawn


def test_bad_images_are_told(refused, folder, tmp_path, pairs):
    (tmp_path / "bad.png").write_text("no image")
    asked = ("predict", folder / "run", tmp_path / "bad.png", "--out", tmp_path)
    assert "is not an image" in refused(*asked)
    asked = ("predict", folder / "run", tmp_path / "none.png", "--out", tmp_path)
    assert "none.png" in refused(*asked)
    asked = ("train", pairs, "--recipe", "hinton2006-laptop", "--out", tmp_path / "run")
    assert "names no image that exists" in refused(*asked)


def test_next_frame_of_an_animation_is_drawn(regard, tmp_path):
    for number in range(12):
        drawn = render_motion(sample_motion(0, number), num_frames=4, size=16)
        frames = [Image.fromarray(frame) for frame in drawn]
        frames[0].save(tmp_path / f"{number}.gif", save_all=True, append_images=frames[1:])
    words = ("--recipe", "next-frame-laptop", "--out", tmp_path / "run", *SMALL)
    video = (
        "data.source.num_frames=3",
        "model.encoder.image.widths=[8]",
        "model.encoder.image.blocks=[1]",
    )
    found = regard("train", tmp_path, *words, *video)
    assert found.code == 0 and "PSNR of the source (last frame)" in found.out
    found = regard("predict", tmp_path / "run", tmp_path / "3.gif", "--out", tmp_path / "new")
    assert size_of(found.lines[0]) == (12, 12)
    found = regard("show", tmp_path / "run", tmp_path / "3.gif", "--out", tmp_path / "look.png")
    assert found.code == 0
