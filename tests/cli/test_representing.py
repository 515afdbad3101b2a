"""What autoencoders are for, as a person types it: reduce, anomalies, compress, restore."""

import json

import numpy as np
import pytest
from PIL import Image

from regard.data.image.field import open_image
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.compression.range_coder import HEADER_BYTES
from tests.small_autoencoder import recipe

KNOWN, OTHERS = "shapes:60,only=circle,star", "shapes:60,without=circle,star"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "recipe.toml").write_text(recipe("rounded", width=2, channels=3))
    request = Request(
        data=(KNOWN,), recipe=str(folder / "recipe.toml"), out=folder / "run", device="cpu"
    )
    return train(request).folder


@pytest.mark.parametrize("name", ["plane.svg", "plane.png", "plane.html", "plane.json"])
def test_reduce_draws_both_planes(regard, run, tmp_path, name):
    answer = regard("reduce", run, "shapes:60", "--out", tmp_path / name)
    assert answer.code == 0, answer
    assert answer.lines[0] == "latents:"
    assert "principal components:" in answer.lines
    assert answer.out.count("neighbour accuracy") == answer.out.count("MSE") == 2
    found = (tmp_path / name).read_bytes()
    if name.endswith(".json"):
        told = json.loads(found)
        assert len(told["planes"]["latents"]["points"]) == len(told["labels"])
        assert told["command"].startswith("regard")
    elif name.endswith(".png"):
        assert found.startswith(b"\x89PNG")
    else:
        assert b"principal components" in found


def test_reduce_refuses_another_ending(refused, run):
    assert "must end in .svg, .png, .html or .json" in refused(
        "reduce", run, "shapes", "--out", "x"
    )


def test_reduce_needs_labels_that_are_shared(refused, run, tmp_path):
    rows = []
    for number in range(24):
        open_image(f"shapes/0/{number}").save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png\tthis is number {number}\n")
    (tmp_path / "said.tsv").write_text("".join(rows))
    told = refused("reduce", run, tmp_path / "said.tsv")
    assert told.startswith("Items must share labels, by which dots are told apart, but the 24 of ")
    assert told.endswith("have 24 different ones, the first being 'this is number 0'.")


def test_pictures_of_another_kind_are_refused_before_the_work(refused, run, tmp_path):
    told = refused("anomalies", run, KNOWN, OTHERS, "--out", "x.gif")
    assert told == "`--out` must end in .png, .svg or .html, but is 'x.gif'."
    file = tmp_path / "x.rgd"
    told = refused("compress", run, KNOWN, "--out", file, "--picture", "x.gif")
    assert told == "`--picture` must end in .png, .svg or .html, but is 'x.gif'."
    assert not file.exists()


def test_reduce_of_a_folder_takes_its_labels(regard, run, tmp_path):
    for number in range(20):
        place = tmp_path / ("even", "odd")[number % 2]
        place.mkdir(exist_ok=True)
        open_image(f"shapes/0/{number}").save(place / f"{number}.png")
    answer = regard("reduce", run, tmp_path, "--out", tmp_path / "x.json")
    assert answer.code == 0, answer
    assert set(json.loads((tmp_path / "x.json").read_text())["labels"]) == {"even", "odd"}


def test_anomalies_of_two_sets_are_told_apart(regard, run, tmp_path):
    answer = regard("anomalies", run, KNOWN, OTHERS, "--out", tmp_path / "x.svg")
    assert answer.code == 0, answer
    assert answer.out.count("AUC") == 2
    assert answer.lines[-2].startswith("difference ")
    assert "false alarms" in (tmp_path / "x.svg").read_text()
    told = json.loads(regard("anomalies", run, KNOWN, OTHERS, "--json").out)
    assert told["autoencoder"]["auc"]["signature"].endswith("DeLong")
    assert told["pca"]["false_alarms"]["name"] == "false alarms"


def test_every_image_of_one_set_has_a_line(regard, run, tmp_path):
    for number in range(3):
        open_image(f"shapes/0/{number}").save(tmp_path / f"{number}.png")
    answer = regard("anomalies", run, tmp_path, "--false-alarms", "1")
    rows = [line.split("\t") for line in answer.lines]
    # Where every false alarm is allowed, all but the very best count as odd.
    assert [verdict for _, verdict, _ in rows] == ["odd"] * 3
    told = [json.loads(line) for line in regard("anomalies", run, tmp_path, "--json").lines]
    assert [row["is_odd"] for row in told] == [row["error"] > row["threshold"] for row in told]
    assert [f"{row['error']:.6f}" for row in told] == [error for error, _, _ in rows]
    assert [row["source"].endswith(f"{n}.png") for n, row in enumerate(told)] == [True] * 3


def test_anomalies_of_one_set_are_not_drawn(refused, run):
    told = refused("anomalies", run, KNOWN, "--out", "x.svg")
    assert told == "`--out` draws two sets beside each other. Give a second one."


def test_images_are_compressed_and_restored(regard, refused, run, tmp_path):
    codes = tmp_path / "codes.rgd"
    answer = regard("compress", run, "shapes:60", "--out", codes, "--picture", tmp_path / "x.svg")
    assert answer.code == 0, answer
    assert (
        f"in {codes.stat().st_size:,} bytes ({HEADER_BYTES} of them the header)" in answer.lines[0]
    )
    assert answer.lines[1].startswith("JPEG at equal size: ")
    assert "JPEG" in (tmp_path / "x.svg").read_text()
    assert regard("restore", run, codes, "--out", tmp_path / "back").code == 0
    images = sorted((tmp_path / "back").iterdir())
    with Image.open(images[0]) as image:
        assert (image.size, image.mode) == ((8, 8), "RGB")
    assert answer.out.startswith(f"{len(images)} images")
    told = refused("restore", run, codes, "--out", tmp_path / "back")
    assert "must be a new or an empty folder" in told


def test_broken_files_are_refused(refused, regard, run, tmp_path):
    codes = tmp_path / "codes.rgd"
    regard("compress", run, "shapes/0/1", "--out", codes)
    codes.write_bytes(codes.read_bytes()[:-1] + b"?")
    assert "damaged or cut short" in refused("restore", run, codes, "--out", tmp_path / "back")
    assert "must be a file" in refused("compress", run, "shapes/0/1", "--out", tmp_path)
    assert "holds no codes" in refused("restore", run, run / "config.json", "--out", tmp_path / "b")


def test_what_cannot_be_seen_is_a_vector_of_zeros_and_nobodys_neighbour(
    regard, refused, run, tmp_path
):
    images = tmp_path / "images"
    images.mkdir()
    for number in range(3):
        open_image(f"shapes/0/{number}").save(images / f"{number}.png")
    expected = regard("neighbours", run, images).lines
    regard("embed", run, images, "--out", tmp_path / "good.npy")
    (images / "1-bad.png").write_text("hello")
    told = "skipped 1 of 4 examples whose image cannot be read (first: "
    answer = regard("embed", run, images, "--out", tmp_path / "all.npy")
    assert answer.code == 0 and told in answer.err
    rows = np.insert(np.load(tmp_path / "good.npy"), 1, 0, axis=0)
    np.testing.assert_allclose(np.load(tmp_path / "all.npy"), rows, atol=1e-6)
    answer = regard("neighbours", run, images)
    assert answer.lines == expected and told in answer.err
    (images / "1-bad.png").rename(tmp_path / "bad.png")
    words = ("neighbours", run, images, "--query", tmp_path / "bad.png")
    assert refused(*words).startswith("No image can be read. First: ")


def test_images_beside_each_other_fit_the_terminal(regard, run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    answer = regard("show", run, "shapes/0/3")
    assert [len(line) for line in answer.lines[:15]] == [62] * 15  # two images and what is between


def test_run_without_codes_is_refused(refused, tiny_run):
    for verb, *words in (("reduce", "x"), ("anomalies", "x"), ("compress", "x", "--out", "y")):
        assert "needs a run of an autoencoder" in refused(verb, tiny_run.folder, *words)
