"""Commands on images with labels and with captions."""

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
from regard.data.image.io import open_image

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
        label_folder = folder / "shapes" / example.target
        label_folder.mkdir(parents=True, exist_ok=True)
        open_image(example.source).save(label_folder / f"{number}.png")
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


def train(regard, data, out, *arguments):
    if not (out / "config.json").exists():
        result = regard("train", data, "--out", out, "--device", "cpu", *arguments, *BRIEF)
        assert result.code == 0, result.err
    return out


@pytest.fixture
def classifier(regard, folder):
    """A classifier, trained at its first use."""
    arguments = ("--recipe", "he2016-laptop", *RESNET)
    return train(regard, folder / "shapes", folder / "classifier", *arguments)


@pytest.fixture
def captioner(regard, folder):
    """A captioner, trained at its first use."""
    data = folder / "scenes" / "captions.tsv"
    return train(regard, data, folder / "captioner", "--recipe", "xu2015", *CAPTIONS)


def test_recipe_is_chosen_for_a_folder_of_images(regard, folder, tmp_path):
    result = regard("train", folder / "shapes", "--out", tmp_path / "run", *RESNET, *BRIEF)
    assert result.code == 0, result.err
    assert "Recipe: he2016" in result.err
    assert "sources are images and targets labels (5 distinct ones)" in result.err
    assert json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["task"] == (
        "classification"
    )


def test_recipe_is_chosen_for_a_file_of_captions(regard, folder, tmp_path):
    data = folder / "scenes" / "captions.tsv"
    result = regard("train", data, "--out", tmp_path / "run", "--device", "cpu", *BRIEF)
    assert result.code == 0, result.err
    assert "Recipe: xu2015-laptop" in result.err
    assert "sources are images and targets captions" in result.err


def test_captions_from_standard_input_need_a_recipe(refused, folder):
    stdin = (folder / "scenes" / "captions.tsv").read_text()
    assert "`--recipe xu2015-laptop`" in refused(
        "train", "-", "--out", folder / "none", "--device", "cpu", stdin=stdin
    )


def test_predict_takes_an_image_a_folder_a_list_and_an_archive(
    regard, folder, captioner, classifier
):
    listed = folder / "list.txt"
    listed.write_text("scenes/0.png\nscenes/1.png\nscenes/2.png\n")
    from_list = regard("predict", captioner, listed).lines
    assert len(from_list) == 3
    assert regard("predict", captioner, folder / "scenes.zip").lines == from_list
    assert regard("predict", captioner, folder / "scenes" / "1.png").lines == from_list[1:2]
    assert len(regard("predict", classifier, folder / "shapes").lines) == 60
    assert regard("predict", classifier, "shapes/0/3").lines[0] in {
        path.name for path in (folder / "shapes").iterdir()
    }


def test_images_are_evaluated_scored_and_shown(regard, folder, classifier, captioner, tmp_path):
    measured = regard("evaluate", classifier, folder / "shapes")
    assert measured.out.startswith("accuracy ")
    assert "By length" not in measured.out
    captions = folder / "scenes" / "captions.tsv"
    assert regard("evaluate", captioner, captions).out.startswith("BLEU-1 ")
    assert len(regard("score", captioner, captions).lines) == 40
    assert len(regard("score", classifier, folder / "shapes").lines) == 60
    image = folder / "scenes" / "0.png"
    assert "Shown: gradient x activation" in regard("show", classifier, image).lines
    target = ("--target", "a star", "--out", tmp_path / "seen.png")
    assert regard("show", captioner, image, *target).code == 0
    with Image.open(tmp_path / "seen.png") as drawn:
        assert drawn.width > 100


def test_data_show_lists_a_folder_of_images(regard, folder):
    line, *_ = regard("data", "show", folder / "shapes", "--num", 1).lines
    path, label = line.split("\t")
    assert label == "circle"
    assert f"/circle/{path.rpartition('/')[2]}" in path


@pytest.mark.parametrize("kind", ["classifier", "captioner"])
def test_resumed_training_is_bit_identical(regard, folder, tmp_path, kind):
    data = folder / ("shapes" if kind == "classifier" else "scenes/captions.tsv")
    arguments = (
        ("--recipe", "he2016-laptop", *RESNET, "data.mixup=0.2")
        if kind == "classifier"
        else ("--recipe", "xu2015-hard", *CAPTIONS)
    )
    augmentation = (
        "data.source.augmentation.cutout=4",
        "data.source.augmentation.colour=0.3",
        "train.schedule.kind=constant",
        "train.schedule.warmup_steps=1",
    )
    whole = train(regard, data, tmp_path / "whole", *arguments, *augmentation)
    half = tmp_path / "half"
    arguments = (*arguments, *augmentation, *BRIEF, "train.max_steps=2")
    assert regard("train", data, "--out", half, "--device", "cpu", *arguments).code == 0
    before = load_file(half / "resume" / "model.safetensors")
    result = regard("train", data, "--out", half, "--resume", "train.max_steps=4")
    assert result.code == 0, result.err
    after = load_file(half / "resume" / "model.safetensors")
    expected = load_file(whole / "resume" / "model.safetensors")
    assert after.keys() == expected.keys()
    assert all(torch.equal(after[name], expected[name]) for name in expected)
    assert not all(torch.equal(after[name], before[name]) for name in expected)


def test_models_with_different_augmentation_form_an_ensemble(regard, folder, captioner):
    data = folder / "scenes" / "captions.tsv"
    arguments = (*CAPTIONS, "seed=2", "data.source.augmentation.crop=1")
    other = train(regard, data, folder / "other", "--recipe", "xu2015", *arguments)
    assert len(regard("predict", f"{captioner},{other}", folder / "scenes" / "0.png").lines) == 1


def test_models_with_different_image_sizes_do_not_form_an_ensemble(
    refused, regard, folder, captioner
):
    data = folder / "scenes" / "captions.tsv"
    arguments = (*CAPTIONS, "data.source.size=16")
    other = train(regard, data, folder / "coarse", "--recipe", "xu2015", *arguments)
    line = refused("predict", f"{captioner},{other}", folder / "scenes" / "0.png")
    assert "the same fields, but" in line
    assert "different source fields" in line


def test_init_from_shares_the_image_encoder_between_tasks(
    regard, folder, classifier, captioner, tmp_path
):
    data = folder / "scenes" / "captions.tsv"
    arguments = ("--recipe", "xu2015", *CAPTIONS, f"init_from={classifier}", "data.source.size=24")
    fine_tuned = train(regard, data, tmp_path / "captions", *arguments)
    assert json.loads((fine_tuned / "source.image.json").read_text())["config"]["size"] == 24
    arguments = (
        "--recipe",
        "he2016-laptop",
        *RESNET,
        f"init_from={captioner}",
        "data.source.size=24",
    )
    fine_tuned = train(regard, folder / "shapes", tmp_path / "labels", *arguments)
    assert json.loads((fine_tuned / "source.image.json").read_text())["config"]["size"] == 24


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
def test_unreadable_image_is_one_line_of_error(refused, classifier, tmp_path, name):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    assert message in refused("predict", classifier, tmp_path / name)
    assert message in refused("show", classifier, tmp_path / name)


def test_unreadable_images_are_skipped_and_counted_in_training(regard, folder, tmp_path):
    for label in ("square", "star"):
        (tmp_path / label).mkdir()
        for path in (folder / "shapes" / label).iterdir():
            (tmp_path / label / path.name).write_bytes(path.read_bytes())
    for name, (content, _) in BAD.items():
        (tmp_path / "star" / name).write_bytes(content)
    (tmp_path / "nothing").mkdir()
    arguments = ("--recipe", "he2016-laptop", *RESNET, *BRIEF)
    result = regard("train", tmp_path, "--out", tmp_path / ".run", *arguments)
    assert result.code == 0, result.err
    assert "skipped 3 of " in result.err
    assert "left out 1 label" in result.err


def test_unreadable_image_among_others_has_an_empty_line(
    regard, refused, folder, classifier, tmp_path
):
    for name in ("a.png", "c.png"):
        (tmp_path / name).write_bytes((folder / "scenes" / "0.png").read_bytes())
    labels = regard("predict", classifier, tmp_path).lines
    (tmp_path / "b.png").write_text("hello")
    result = regard("predict", classifier, tmp_path)
    assert result.code == 0 and result.lines == [labels[0], "", labels[1]]
    assert "skipped 1 of 3 examples whose image cannot be read (first: " in result.err
    assert f"{tmp_path / 'b.png'} is not an image" in result.err
    rows = [json.loads(line) for line in regard("predict", classifier, tmp_path, "--json").lines]
    assert [Path(row["source"]).name for row in rows] == ["a.png", "b.png", "c.png"]
    assert [len(row["predictions"]) for row in rows] == [1, 0, 1]
    ranked = regard("predict", classifier, tmp_path, "--nbest", 2).lines
    assert [line.split("\t")[0] for line in ranked] == ["1", "1", "3", "3"]
    for name in ("a.png", "c.png"):
        (tmp_path / name).write_text("hello")
    assert "No image can be read. First: " in refused("predict", classifier, tmp_path)


def test_data_without_a_list_of_images_is_refused(refused, folder, tmp_path):
    out = ("--out", tmp_path / "run")
    labels, captions = ("--recipe", "he2016-laptop"), ("--recipe", "xu2015")
    assert "is a folder, but captions belong in" in refused(
        "train", folder / "shapes", *captions, *out
    )
    for arguments in (labels, captions, ()):
        assert "is an archive, but" in refused("train", folder / "scenes.zip", *arguments, *out)
        assert "is an image, but" in refused("train", folder / "scenes" / "0.png", *arguments, *out)
    (tmp_path / "none").mkdir()
    assert "holds no recording, image or video" in refused("train", tmp_path / "none", *out)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "circle").symlink_to(folder / "shapes" / "circle")
    assert "images lie in a folder for each label" in refused(
        "train", tmp_path / "one", *labels, *out
    )


def test_commands_and_options_for_text_are_refused(
    refused, folder, classifier, captioner, tmp_path
):
    image = folder / "scenes" / "0.png"
    assert "must have text sources" in refused("chat", captioner, stdin="hello\n")
    assert "must have text sources" in refused("predict", captioner, image, "--rerank", captioner)
    assert "'resnet'" in refused("export", "hf", classifier, "--out", tmp_path / "hf")
    assert "can be compared" in refused("compare", classifier, captioner)
    line = refused("train", folder / "shapes", "--metric", "bleu", "--recipe", "he2016-laptop")
    assert "`--metric` is for models that generate text" in line
