import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.results import seeing_questions, video
from benchmarks.results.pixels import to_text
from regard.data.datasets.catalog import DATASETS
from regard.data.example import Example
from regard.runs.recipes import load_recipe

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def watching(monkeypatch):
    """The script, imported as it is started: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import watching

    yield watching
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == BENCHMARKS:
            del sys.modules[name]


def test_every_run_has_a_recipe_that_takes_its_settings_and_a_data_set(watching):
    for name, plan in watching.EXPERIMENTS.items():
        for run in plan(Path("runs")):
            assert load_recipe(run.recipe, run.words).task
            assert run.data[0].partition(":")[0] in DATASETS
            assert watching._kind(name, run) in watching.GATHERED


def test_answers_about_scenes_wait_for_eyes(watching):
    eyes, *others = watching._questions(Path("runs"))
    begun = [run for run in others if run.name.startswith("scenes ")]
    assert len(begun) == 3
    for run in begun:
        assert run.needs == (eyes.folder,)
        assert run.words[0].format(folder="runs") == f"init_from=runs/{eyes.folder}"


def test_questions_that_are_drawn_are_about_scenes_of_their_own(watching):
    asked = [("count", "scenes/0/1"), ("place", "scenes/0/1"), ("count", "scenes/0/2")]
    asked += [("same", "/tmp/3.png"), ("place", "scenes/0/2")]
    test = [Example(("what", picture), "yes", tags=(kind,)) for kind, picture in asked]
    assert watching._first(test) == [0, 4]


class Compass:
    """Tells where the brightest pixel of a video of 1 x 3 pixels goes."""

    def __call__(self, videos, mask):
        places = videos[:, :, 0, 0].argmax(-1)  # (B, F)
        goes_right = places[:, -1] > places[:, 0]
        return torch.stack([~goes_right, goes_right], 1).float()


def test_order_is_told_by_what_is_seen_backwards(watching):
    right = torch.eye(3)[None, :, None, None]  # one video, three frames
    left = right.flip(1)
    batch = SimpleNamespace(rows=[0, 1], source_mask=None, videos=torch.cat([left, right]))
    task = SimpleNamespace(
        batches=lambda examples: [batch],
        inputs=lambda batch: batch.videos,
        model=Compass(),
        labels=SimpleNamespace(write=("left", "right").__getitem__),
    )
    test = [
        Example("moving/0/1", "left", tags=("alone",)),
        Example("moving/0/2", "right", tags=("pass",)),
        Example("moving/0/3", "up", tags=("hit",)),
    ]
    found = watching._of_directions(watching.Finished(task, "moving", test, []))
    assert found["num_views"] == 2
    # What never moves is taken for going left, as half of them do.
    assert [*found["views"].values()] == [100, 100, 50, 25]


def test_next_frames_are_kept_with_what_is_right(watching):
    def sheet(source, target):
        pixels = np.zeros((2, 2, 3), np.uint8)
        return [SimpleNamespace(image=pixels, caption=f"{source} {target}", note="")]

    test = [Example(f"moving/0/{number}", f"moving/0/{number}") for number in range(9)]
    run = watching.Finished(SimpleNamespace(image_grid=sheet), "moving", test, [])
    found = watching._of_next_frame(run)["rows"]
    assert [row[0]["caption"] for row in found] == [f"moving/0/{n} moving/0/{n}" for n in range(6)]


def test_when_words_look_is_averaged(watching):
    def seen(first):
        weights = torch.tensor([[first, 0.0, 1 - first, 0.0]])
        return SimpleNamespace(
            mean=lambda: weights, grid=(2, 1, 2), labels=(["hits"], ["cell"] * 4)
        )

    found = watching._when([seen(1.0), seen(0.5)] * 5)
    assert found == {"hits": [0.75, 0.25]}
    assert watching._when([seen(1.0)]) == {}


def result(value, interval=None):
    found = {"name": "score", "value": value, "signature": "how"}
    return {**found, "interval": interval} if interval else found


def run(name, accuracy, *, seed=1, tags=(), **more):
    return {
        "name": name,
        "recipe": name.split()[-1],
        "seed": seed,
        "commit": "abc",
        "hardware": "a machine",
        "torch": "2",
        "parameters": 250_000,
        "command": f"regard train x seed={seed}",
        "training": {"seconds": 90.0},
        "journal": [],
        "data": "scenes:9",
        "test": {
            "scores": {"accuracy": result(accuracy, [accuracy - 1, accuracy + 1])},
            "by_tag": [{"name": tag, "count": 9, "accuracy": 81.25} for tag in tags],
        },
        **more,
    }


def rows(text):
    """Return the cells of every row of every table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def pictures(page):
    return re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)


def test_questions_have_a_page(tmp_path):
    asked = {
        "question": "is there a star",
        "picture": "scenes/0/4",
        "kind": "exists",
        "right": "no",
        "answer": "yes",
        "looked": "attention rollout",
        "words": ["is", "there", "a", "star", "<eos>"],
        "on words": [0.1, 0.0, 0.0, 0.4, 0.6],
        "grid": [1, 2],
        "on cells": [0.2, 0.3],
    }
    without = {"another picture": 40.0, "question alone": 35.0}
    runs = [
        run("eyes xu2015-laptop", 97.0),
        run("scenes quick", 90.0, tags=["exists"], maps=[asked], **without),
        run("scenes quick", 92.0, seed=2),
        run("scenes slow", 80.0, tags=["exists"], maps=[asked], **without),
        run("easy-vqa unfinished", 99.0, seed=2),
    ]
    value = {"experiment": "visual-questions", "command": "python x.py", "runs": runs}
    page = seeing_questions.write(value, tmp_path)
    assert ["quick", "scenes:9", "2", "0.25 M", "91.0 ± 1.4", "40.0", "35.0", "1.5"] in rows(page)
    assert ["exists", "9", "81.2", "81.2"] in rows(page)
    assert ["unfinished", "scenes:9", "1", "0.25 M", "99.0 ± 1.0", "–", "–", "1.5"] in rows(page)
    assert "97.0 ± 1.0 % of captions are exact." in page
    assert pictures(page) == ["visual-questions-quick.png", "visual-questions-slow.png"]
    assert all((tmp_path / name).stat().st_size > 1_000 for name in pictures(page))


def test_videos_have_a_page(tmp_path):
    told = {
        "video": "moving/0/3",
        "right": "a red circle",
        "words": ["a", "circle"],
        "grid": [2, 1, 1],
        "weights": [[0.5, 0.5], [1.0, 0.0]],
    }
    views = {"as it is": 99.0, "by chance": 25.0}
    runs = [
        run("moving", 80.0, tags=["hit"], data="moving:9", maps=[told], when={"hits": [0.2, 0.8]}),
        run("moving-directions", 98.0, data="moving:directions", views=views, num_views=7),
    ]
    shown = {"image": to_text(np.zeros((8, 8, 3), np.uint8)), "caption": "drawn", "note": ""}
    later = run("next-frame", 0.0, data="moving:9")
    names = {"mse": "MSE", "psnr": "PSNR", "source_psnr": "PSNR (the last frame)", "ssim": "SSIM"}
    later["test"]["scores"] = {
        key: {**result(28.0, [27.0, 29.0]), "name": name} for key, name in names.items()
    }
    value = {
        "experiment": "video",
        "command": "python x.py",
        "runs": [*runs, {**later, "rows": [[shown]]}, {**later, "seed": 2}],
    }
    page = video.write(value, tmp_path)
    found = [row for row in rows(page) if row[0] == "next-frame"]
    scores = ["–", "28.0000 ± 0.0000", "28.00 ± 0.00", "28.00 ± 0.00", "28.000 ± 0.000"]
    assert found == [["next-frame", "moving:9", "the last frame", *scores]]
    assert ["moving", "moving:9", "1", "0.25 M", "80.0 ± 1.0", "1.5"] in rows(page)
    assert ["what happens: hit", "81.2"] in rows(page)
    assert ["as it is", "99.0"] in rows(page)
    drawn = ["video-when-moving.svg", "video-moving-1.png", "video-next-frame.png"]
    assert pictures(page) == drawn
    assert all((tmp_path / name).stat().st_size > 500 for name in pictures(page))
