"""The pages on what autoencoders of images are for, and the script whose results they show."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.results import anomalies, compression, features, pictures
from benchmarks.results.pixels import to_array, to_text
from regard.runs.recipes import load_recipe

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """The script, imported as it is started: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import representing

    yield representing
    for name in {*sys.modules} - before:
        if BENCHMARKS in Path(getattr(sys.modules[name], "__file__", None) or ".").parents:
            del sys.modules[name]


@pytest.mark.parametrize("name", ["FULL", "TINY"])
def test_every_planned_run_has_a_recipe_that_takes_its_settings(script, name):
    world, folders = getattr(script, name), []
    for experiment, plan in script.PLANS.items():
        runs = plan(world, Path())
        folders += [f"{experiment}/{run.folder}" for run in runs]
        for run in runs:
            load_recipe(run.recipe, [word.format(folder="runs") for word in run.words])
            assert {*run.needs} <= {other.folder for other in runs}
    assert len(folders) == len({*folders})


def result(value, **more):
    return {"name": "score", "value": value, "signature": "how", "interval": [value, value], **more}


def run(name, data="shapes:300", **more):
    scores = {"psnr": 20.0, "ssim": 0.5, "mse": 0.01, "accuracy": 60.0, **more.pop("scores", {})}
    return {
        "name": name,
        "data": data,
        "seed": 1,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "recipe": "hinton2006",
        "training": {"seconds": 9.0},
        "test": {"scores": {key: result(value) for key, value in scores.items()}},
        **more,
    }


def page(write, runs, folder, **more):
    value = {"experiment": "test", "command": "python test", "runs": runs, **more}
    found = write(value, folder)
    for file in [part.partition(")")[0] for part in found.split("](")[1:]]:
        assert file.endswith(".json") or (folder / file).stat().st_size
    return found


IMAGE = {"image": to_text(np.zeros((4, 4, 3), np.uint8)), "caption": "drawn", "note": "20 dB"}
STACK = to_text(np.zeros((8, 1, 4, 4), np.uint8))


def test_images_survive_as_text():
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 5), dtype=np.uint8)
    assert (to_array(to_text(pixels)) == pixels).all()


def test_page_of_pictures_tells_widths_planes_and_what_is_better_than_its_source(tmp_path):
    plane = {"accuracy": result(50.0), "error": result(0.02)}
    places = {"places": [[0.0, 1.0], [1.0, 0.0]], "labels": ["a", "b"]}
    planes = {"the code": {**plane, **places}, "principal components": {**plane, **places}}
    rows = [[IMAGE] * 3] * 6
    found = page(
        pictures.write,
        [
            run("autoencoder 2", code=2, pca=result(0.033), planes=planes, rows=rows),
            run("variational", code=8, planes=planes, rows=rows, drawn=STACK, between=STACK),
            run("denoiser", code=None, rows=rows, scores={"source_psnr": 15.0}),
            run("colouring of photos", "cifar10", code=None, scores={"source_psnr": 16.0}),
        ],
        tmp_path,
    )
    assert "| 2 | 0.0100 | 0.0330 | 20.00 ± 0.00 | 0.500 ± 0.000 | 9 |" in found
    assert "| 2 | 50.0 ± 0.0 | 0.0200 | 50.0 ± 0.0 | 0.0200 |" in found
    assert "| colouring of photos | cifar10 |" in found
    drawn = (tmp_path / "pictures-widths.svg").read_text()
    assert "0.02</text>" in drawn and "mathdefault" not in drawn
    assert "pictures-denoiser.png" in found
    assert "pictures-colouring-of-photos.png" not in found


def test_page_of_anomalies_draws_the_best_run_of_each_group(tmp_path):
    def judge(value):
        return {"threshold": 0.5, "auc": result(value), "found": result(70.0)} | {
            "false_alarms": result(5.0)
        }

    def judged(width, value):
        drawn = {"normal": [0.1, 0.2], "odd": [0.6, 0.9], "alarms": [0, 1], "found": [0, 1]}
        about = {
            "width": width,
            "num_components": width,
            "normal": "shapes:only=star",
            "odd": "shapes:without=star",
            "num_normal": 2,
            "num_odd": 2,
            "autoencoder": judge(value),
            "pca": judge(0.8),
            "difference": {"value": value - 0.8, "p_value": 0.01},
            "drawn": {"autoencoder": drawn, "pca": drawn},
        }
        return run(f"stars {width}", group="stars", anomalies=about)

    found = page(anomalies.write, [judged(2, 0.9), judged(8, 0.7)], tmp_path)
    assert "| 2 | 0.9000 ± 0.0000 | 0.8000 ± 0.0000 | +0.1000 (p 0.01) |" in found
    assert "With 2 numbers:" in found
    assert "PCA, 2 components: 0.800" in (tmp_path / "anomalies-stars.svg").read_text()


def test_page_of_compression_compares_at_equal_size(tmp_path):
    rates = [
        {"bits_per_pixel": bits, "psnr": 20 + 10 * bits, "bytes": 100, "setting": "quality 5"}
        for bits in (0.2, 0.4, 0.8)
    ]

    def packed(bits):
        about = {
            "images": 10,
            "bytes": 99,
            "bits_per_pixel": bits,
            "plain_bits_per_pixel": 2 * bits,
        }
        return run(f"shapes {bits}", **about, psnr=result(26.0), code=4, form="1x8x8")

    rival = {"data": "shapes", "form": "1x8x8", "rates": rates}
    found = page(compression.write, [packed(0.1), packed(0.3)], tmp_path, together=[rival])
    assert "| 4 | 99 | 0.100 | 0.200 | 26.00 ± 0.00 | no file so small |" in found
    assert "| 4 | 99 | 0.300 | 0.600 | 26.00 ± 0.00 | 23.00 |" in found


def test_page_of_features_has_a_column_for_every_start(tmp_path):
    runs = [run("an autoencoder", "shapes", start="", is_frozen=False)]
    for size in (100, 300):
        for start, is_frozen in (("nothing", False), ("an autoencoder", True)):
            about = {"start": start, "is_frozen": is_frozen, "scores": {"accuracy": size / 10}}
            runs.append(run(f"{size} {start}", f"shapes:{size}", **about))
    found = page(features.write, runs, tmp_path)
    assert "| labels | from nothing | an autoencoder, frozen |" in found
    assert "| 100 | 10.0 ± 0.0 | 10.0 ± 0.0 |" in found
    assert "| an autoencoder | 20.00 ± 0.00 | 9 |" in found
