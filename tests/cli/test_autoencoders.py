"""Commands for autoencoders: reduce, anomalies, compress, restore."""

import json

import numpy as np
import pytest
from PIL import Image

from regard.data.image.io import open_image
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.compression.range_coder import HEADER_BYTES
from tests.small_autoencoder import recipe

NORMAL, ANOMALOUS = "shapes:60,only=circle,star", "shapes:60,without=circle,star"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "recipe.toml").write_text(recipe("rounded", width=2, channels=3))
    request = Request(
        data=(NORMAL,), recipe=str(folder / "recipe.toml"), out=folder / "run", device="cpu"
    )
    return train(request).folder


@pytest.mark.parametrize("name", ["plane.svg", "plane.png", "plane.html", "plane.json"])
def test_reduce_plots_both_projections(regard, run, tmp_path, name):
    result = regard("reduce", run, "shapes:60", "--out", tmp_path / name)
    assert result.code == 0, result
    assert result.lines[0] == "latents:"
    assert "principal components:" in result.lines
    assert result.out.count("neighbour accuracy") == result.out.count("MSE") == 2
    found = (tmp_path / name).read_bytes()
    if name.endswith(".json"):
        values = json.loads(found)
        assert len(values["planes"]["latents"]["points"]) == len(values["labels"])
        assert values["command"].startswith("regard")
    elif name.endswith(".png"):
        assert found.startswith(b"\x89PNG")
    else:
        assert b"principal components" in found


def test_reduce_refuses_another_suffix(refused, run):
    assert "must end in .png, .svg, .pdf, .html or .json" in refused(
        "reduce", run, "shapes", "--out", "x"
    )


def test_reduce_needs_shared_labels(refused, run, tmp_path):
    rows = []
    for number in range(24):
        open_image(f"shapes/0/{number}").save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png\tthis is number {number}\n")
    (tmp_path / "captions.tsv").write_text("".join(rows))
    message = refused("reduce", run, tmp_path / "captions.tsv")
    assert message.startswith("Items must share labels, which colour the points, but the 24 of ")
    assert message.endswith("have 24 different ones, the first being 'this is number 0'.")


def test_unknown_plot_formats_are_refused_first(refused, run, tmp_path):
    message = refused("anomalies", run, NORMAL, ANOMALOUS, "--out", "x.gif")
    assert message == "`--out` must end in .png, .svg, .pdf or .html, but is 'x.gif'."
    file = tmp_path / "x.rgd"
    message = refused("compress", run, NORMAL, "--out", file, "--plot", "x.gif")
    assert message == "`--plot` must end in .png, .svg, .pdf or .html, but is 'x.gif'."
    assert not file.exists()


def test_reduce_takes_labels_from_folders(regard, run, tmp_path):
    for number in range(20):
        folder = tmp_path / ("even", "odd")[number % 2]
        folder.mkdir(exist_ok=True)
        open_image(f"shapes/0/{number}").save(folder / f"{number}.png")
    result = regard("reduce", run, tmp_path, "--out", tmp_path / "x.json")
    assert result.code == 0, result
    assert set(json.loads((tmp_path / "x.json").read_text())["labels"]) == {"even", "odd"}


def test_anomalies_of_two_sets_are_scored(regard, run, tmp_path):
    result = regard("anomalies", run, NORMAL, ANOMALOUS, "--out", tmp_path / "x.svg")
    assert result.code == 0, result
    assert result.out.count("AUC") == 2
    assert result.lines[-2].startswith("difference ")
    assert "false alarms" in (tmp_path / "x.svg").read_text()
    values = json.loads(regard("anomalies", run, NORMAL, ANOMALOUS, "--json").out)
    assert values["autoencoder"]["auc"]["signature"].endswith("DeLong")
    assert values["pca"]["false_alarms"]["name"] == "false alarms"


def test_anomalies_of_one_set_print_a_line_per_image(regard, run, tmp_path):
    for number in range(3):
        open_image(f"shapes/0/{number}").save(tmp_path / f"{number}.png")
    result = regard("anomalies", run, tmp_path, "--false-alarms", "1")
    rows = [line.split("\t") for line in result.lines]
    # With a false alarm rate of 1, every image but the best is an anomaly.
    assert [label for _, label, _ in rows] == ["anomaly"] * 3
    values = [json.loads(line) for line in regard("anomalies", run, tmp_path, "--json").lines]
    assert [row["is_anomaly"] for row in values] == [
        row["error"] > row["threshold"] for row in values
    ]
    assert [f"{row['error']:.6f}" for row in values] == [error for error, _, _ in rows]
    assert [row["source"].endswith(f"{n}.png") for n, row in enumerate(values)] == [True] * 3


def test_anomalies_of_one_set_are_not_plotted(refused, run):
    message = refused("anomalies", run, NORMAL, "--out", "x.svg")
    assert message == "`--out` plots two sets. Give a second one."


def test_images_are_compressed_and_restored(regard, refused, run, tmp_path):
    codes = tmp_path / "codes.rgd"
    result = regard("compress", run, "shapes:60", "--out", codes, "--plot", tmp_path / "x.svg")
    assert result.code == 0, result
    assert (
        f"in {codes.stat().st_size:,} bytes ({HEADER_BYTES} of them the header)" in result.lines[0]
    )
    assert result.lines[1].startswith("JPEG at equal size: ")
    assert "JPEG" in (tmp_path / "x.svg").read_text()
    assert regard("restore", run, codes, "--out", tmp_path / "back").code == 0
    images = sorted((tmp_path / "back").iterdir())
    with Image.open(images[0]) as image:
        assert (image.size, image.mode) == ((8, 8), "RGB")
    assert result.out.startswith(f"{len(images)} images")
    message = refused("restore", run, codes, "--out", tmp_path / "back")
    assert "must be a new or an empty folder" in message


def test_broken_files_are_refused(refused, regard, run, tmp_path):
    codes = tmp_path / "codes.rgd"
    regard("compress", run, "shapes/0/1", "--out", codes)
    codes.write_bytes(codes.read_bytes()[:-1] + b"?")
    assert "damaged or truncated" in refused("restore", run, codes, "--out", tmp_path / "back")
    assert "must be a file" in refused("compress", run, "shapes/0/1", "--out", tmp_path)
    assert "holds no codes" in refused("restore", run, run / "config.json", "--out", tmp_path / "b")


def test_unreadable_image_has_a_zero_vector_and_is_no_neighbour(regard, refused, run, tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    for number in range(3):
        open_image(f"shapes/0/{number}").save(images / f"{number}.png")
    expected = regard("neighbours", run, images).lines
    regard("embed", run, images, "--out", tmp_path / "good.npy")
    (images / "1-bad.png").write_text("hello")
    message = "skipped 1 of 4 examples whose image cannot be read (first: "
    result = regard("embed", run, images, "--out", tmp_path / "all.npy")
    assert result.code == 0 and message in result.err
    rows = np.insert(np.load(tmp_path / "good.npy"), 1, 0, axis=0)
    np.testing.assert_allclose(np.load(tmp_path / "all.npy"), rows, atol=1e-6)
    result = regard("neighbours", run, images)
    assert result.lines == expected and message in result.err
    (images / "1-bad.png").rename(tmp_path / "bad.png")
    arguments = ("neighbours", run, images, "--query", tmp_path / "bad.png")
    assert refused(*arguments).startswith("No image can be read. First: ")


def test_images_side_by_side_fit_the_terminal(regard, run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    result = regard("show", run, "shapes/0/3")
    assert [len(line) for line in result.lines[:15]] == [62] * 15  # two images and a space


def test_run_without_latents_is_refused(refused, tiny_run):
    for command, *arguments in (
        ("reduce", "x"),
        ("anomalies", "x"),
        ("compress", "x", "--out", "y"),
    ):
        assert "needs a run of an autoencoder" in refused(command, tiny_run.folder, *arguments)
