"""Every verb on images with labels and with captions, as a person types it."""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from regard.data.datasets.catalog import find_data
from regard.data.image.field import open_image

BRIEF = (
    "train.max_epochs=0",
    "train.max_steps=4",
    "train.validate_every=2",
    "train.precision=fp32",
)
RESNET = ("model.encoder.widths=[4,8]", "model.encoder.blocks=[1,1]")
CAPTIONS = (
    *RESNET,
    "data.source.size=32",
    "data.target.min_frequency=1",
    "model.decoder.dim=8",
    "model.decoder.embedding_dim=8",
    "model.decoder.attention_dim=8",
    "train.average_last=0",
    "metrics=['bleu1']",
    "validation.metric=loss",
    "search.beams=1",
    "search.max_extra=8",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shapes in a folder for each label, and scenes beside a file of captions."""
    folder = tmp_path_factory.mktemp("images")
    for number, example in enumerate(find_data("shapes:60").train):
        place = folder / "shapes" / example.target
        place.mkdir(parents=True, exist_ok=True)
        open_image(example.source).save(place / f"{number}.png")
    lines = []
    (folder / "scenes").mkdir()
    for number, example in enumerate(find_data("scenes:40").train):
        open_image(example.source).save(folder / "scenes" / f"{number}.png")
        lines.append(f"{number}.png\t{example.target}\n")
    (folder / "scenes" / "captions.tsv").write_text("".join(lines), encoding="utf-8")
    with zipfile.ZipFile(folder / "scenes.zip", "w") as archive:
        for number in range(3):
            archive.write(folder / "scenes" / f"{number}.png", f"{number}.png")
    return folder


@pytest.fixture(autouse=True)
def own_cache(folder, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(folder / "cache"))


def train(regard, data, out, *words):
    if not (out / "config.json").exists():
        answer = regard("train", data, "--out", out, "--device", "cpu", *words, *BRIEF)
        assert answer.code == 0, answer.err
    return out


@pytest.fixture
def sorter(regard, folder):
    """A classifier, trained at its first use."""
    words = ("--recipe", "he2016-laptop", *RESNET)
    return train(regard, folder / "shapes", folder / "sorter", *words)


@pytest.fixture
def teller(regard, folder):
    """A captioner, trained at its first use."""
    data = folder / "scenes" / "captions.tsv"
    return train(regard, data, folder / "teller", "--recipe", "xu2015", *CAPTIONS)


def test_a_folder_of_images_chooses_its_recipe(regard, folder, tmp_path):
    answer = regard("train", folder / "shapes", "--out", tmp_path / "run", *RESNET, *BRIEF)
    assert answer.code == 0, answer.err
    assert "Recipe: he2016" in answer.err
    assert "sources are images and targets labels (5 distinct ones)" in answer.err
    assert json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["task"] == (
        "classification"
    )


def test_a_file_of_captions_chooses_its_recipe(regard, folder, tmp_path):
    data = folder / "scenes" / "captions.tsv"
    answer = regard("train", data, "--out", tmp_path / "run", "--device", "cpu", *BRIEF)
    assert answer.code == 0, answer.err
    assert "Recipe: xu2015-laptop" in answer.err
    assert "sources are images and targets captions" in answer.err


def test_captions_from_standard_input_need_a_recipe(refused, folder):
    stdin = (folder / "scenes" / "captions.tsv").read_text()
    assert "`--recipe xu2015-laptop`" in refused(
        "train", "-", "--out", folder / "none", "--device", "cpu", stdin=stdin
    )


def test_an_image_a_folder_a_list_and_an_archive_are_answered(regard, folder, teller, sorter):
    listed = folder / "list.txt"
    listed.write_text("scenes/0.png\nscenes/1.png\nscenes/2.png\n")
    from_list = regard("predict", teller, listed).lines
    assert len(from_list) == 3
    assert regard("predict", teller, folder / "scenes.zip").lines == from_list
    assert regard("predict", teller, folder / "scenes" / "1.png").lines == from_list[1:2]
    assert len(regard("predict", sorter, folder / "shapes").lines) == 60
    assert regard("predict", sorter, "shapes/0/3").lines[0] in {
        path.name for path in (folder / "shapes").iterdir()
    }


def test_images_are_measured_scored_and_shown(regard, folder, sorter, teller, tmp_path):
    measured = regard("evaluate", sorter, folder / "shapes")
    assert measured.out.startswith("accuracy ")
    assert "By length" not in measured.out
    captions = folder / "scenes" / "captions.tsv"
    assert regard("evaluate", teller, captions).out.startswith("BLEU-1 ")
    assert len(regard("score", teller, captions).lines) == 40
    assert len(regard("score", sorter, folder / "shapes").lines) == 60
    image = folder / "scenes" / "0.png"
    assert "Shown: gradient x activation" in regard("show", sorter, image).lines
    target = ("--target", "a star", "--out", tmp_path / "seen.png")
    assert regard("show", teller, image, *target).code == 0
    with Image.open(tmp_path / "seen.png") as drawn:
        assert drawn.width > 100


def test_a_folder_of_images_is_listed(regard, folder):
    line, *_ = regard("data", "show", folder / "shapes", "--num", 1).lines
    path, label = line.split("\t")
    assert label == "circle"
    assert f"/circle/{path.rpartition('/')[2]}" in path


@pytest.mark.parametrize("kind", ["sorter", "teller"])
def test_resumed_training_is_the_same_to_the_bit(regard, folder, tmp_path, kind):
    data = folder / ("shapes" if kind == "sorter" else "scenes/captions.tsv")
    words = (
        ("--recipe", "he2016-laptop", *RESNET, "data.mixup=0.2")
        if kind == "sorter"
        else ("--recipe", "xu2015-hard", *CAPTIONS)
    )
    chance = (
        "data.source.augmentation.cutout=4",
        "data.source.augmentation.colour=0.3",
        "train.schedule.kind=constant",
        "train.schedule.warmup_steps=1",
    )
    whole = train(regard, data, tmp_path / "whole", *words, *chance)
    half = tmp_path / "half"
    words = (*words, *chance, *BRIEF, "train.max_steps=2")
    assert regard("train", data, "--out", half, "--device", "cpu", *words).code == 0
    before = load_file(half / "resume" / "model.safetensors")
    answer = regard("train", data, "--out", half, "--resume", "train.max_steps=4")
    assert answer.code == 0, answer.err
    after = load_file(half / "resume" / "model.safetensors")
    aim = load_file(whole / "resume" / "model.safetensors")
    assert after.keys() == aim.keys()
    assert all(torch.equal(after[name], aim[name]) for name in aim)
    assert not all(torch.equal(after[name], before[name]) for name in aim)


def test_captioners_that_learned_from_other_crops_answer_together(regard, folder, teller):
    data = folder / "scenes" / "captions.tsv"
    words = (*CAPTIONS, "seed=2", "data.source.augmentation.crop=1")
    other = train(regard, data, folder / "other", "--recipe", "xu2015", *words)
    assert len(regard("predict", f"{teller},{other}", folder / "scenes" / "0.png").lines) == 1


def test_captioners_that_see_otherwise_do_not(refused, regard, folder, teller):
    data = folder / "scenes" / "captions.tsv"
    words = (*CAPTIONS, "data.source.size=16")
    other = train(regard, data, folder / "coarse", "--recipe", "xu2015", *words)
    line = refused("predict", f"{teller},{other}", folder / "scenes" / "0.png")
    assert "the same fields, but" in line
    assert "different source fields" in line


def test_each_side_begins_with_the_eyes_of_the_other(regard, folder, sorter, teller, tmp_path):
    data = folder / "scenes" / "captions.tsv"
    words = ("--recipe", "xu2015", *CAPTIONS, f"init_from={sorter}", "data.source.size=24")
    began = train(regard, data, tmp_path / "captions", *words)
    assert json.loads((began / "source.image.json").read_text())["config"]["size"] == 24
    words = ("--recipe", "he2016-laptop", *RESNET, f"init_from={teller}", "data.source.size=24")
    began = train(regard, folder / "shapes", tmp_path / "labels", *words)
    assert json.loads((began / "source.image.json").read_text())["config"]["size"] == 24


def png_of_many_pixels():
    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    size = struct.pack(">IIBBBBB", 10_000, 10_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(b"\0"))


BAD = {
    "bomb.png": (png_of_many_pixels(), "10,000 × 10,000 pixels, 100.0 megapixels"),
    "text.jpg": (b"hello\n", "is not an image"),
    "zero.png": (b"", "is not an image"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_seen_is_refused_in_one_line(refused, sorter, tmp_path, name):
    content, says = BAD[name]
    (tmp_path / name).write_bytes(content)
    assert says in refused("predict", sorter, tmp_path / name)
    assert says in refused("show", sorter, tmp_path / name)


def test_what_cannot_be_seen_is_skipped_and_counted_in_training(regard, folder, tmp_path):
    for label in ("square", "star"):
        (tmp_path / label).mkdir()
        for path in (folder / "shapes" / label).iterdir():
            (tmp_path / label / path.name).write_bytes(path.read_bytes())
    for name, (content, _) in BAD.items():
        (tmp_path / "star" / name).write_bytes(content)
    (tmp_path / "nothing").mkdir()
    words = ("--recipe", "he2016-laptop", *RESNET, *BRIEF)
    answer = regard("train", tmp_path, "--out", tmp_path / ".run", *words)
    assert answer.code == 0, answer.err
    assert "skipped 3 of " in answer.err
    assert "left out 1 label" in answer.err


def test_what_cannot_be_seen_among_others_keeps_its_place(
    regard, refused, folder, sorter, tmp_path
):
    for name in ("a.png", "c.png"):
        (tmp_path / name).write_bytes((folder / "scenes" / "0.png").read_bytes())
    answers = regard("predict", sorter, tmp_path).lines
    (tmp_path / "b.png").write_text("hello")
    found = regard("predict", sorter, tmp_path)
    assert found.code == 0 and found.lines == [answers[0], "", answers[1]]
    assert "skipped 1 of 3 examples whose image cannot be read (first: " in found.err
    assert f"{tmp_path / 'b.png'} is not an image" in found.err
    rows = [json.loads(line) for line in regard("predict", sorter, tmp_path, "--json").lines]
    assert [Path(row["source"]).name for row in rows] == ["a.png", "b.png", "c.png"]
    assert [len(row["predictions"]) for row in rows] == [1, 0, 1]
    ranked = regard("predict", sorter, tmp_path, "--nbest", 2).lines
    assert [line.split("\t")[0] for line in ranked] == ["1", "1", "3", "3"]
    for name in ("a.png", "c.png"):
        (tmp_path / name).write_text("hello")
    assert "No image can be read. First: " in refused("predict", sorter, tmp_path)


def test_what_holds_no_list_of_images_is_refused(refused, folder, tmp_path):
    out = ("--out", tmp_path / "run")
    labels, captions = ("--recipe", "he2016-laptop"), ("--recipe", "xu2015")
    assert "is a folder, but captions stand in" in refused(
        "train", folder / "shapes", *captions, *out
    )
    for words in (labels, captions, ()):
        assert "is an archive, but" in refused("train", folder / "scenes.zip", *words, *out)
        assert "is an image, but" in refused("train", folder / "scenes" / "0.png", *words, *out)
    (tmp_path / "none").mkdir()
    assert "holds no image" in refused("train", tmp_path / "none", *out)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "circle").symlink_to(folder / "shapes" / "circle")
    assert "images lie in a folder for each label" in refused(
        "train", tmp_path / "one", *labels, *out
    )


def test_what_is_not_for_images_says_so(refused, folder, sorter, teller, tmp_path):
    image = folder / "scenes" / "0.png"
    assert "reads text alone" in refused("chat", teller, stdin="hello\n")
    assert "reads text alone" in refused("predict", teller, image, "--rerank", teller)
    assert "'resnet'" in refused("export", "hf", sorter, "--out", tmp_path / "hf")
    assert "can be compared" in refused("compare", sorter, teller)
    line = refused("train", folder / "shapes", "--metric", "bleu", "--recipe", "he2016-laptop")
    assert "`--metric` is for models that write" in line
