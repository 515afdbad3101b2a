"""Questions about pictures: how many are answered right, by kind, and where the answers look."""

from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from regard.data.datasets.synthetic.scenes import render
from regard.plots import figure as picture
from regard.plots import grid as tiles
from regard.plots import overlay
from regard.plots.grid import Tile
from regard.plots.inputs import resize_image

from .parts import Runs, changes, making, score, shrink, spread, table

DATA = {
    "easy-vqa": (
        "easy-VQA",
        "Zhou 2019: a picture holds one shape; 13 answers, the official test set.",
    ),
    "scenes": (
        "Scenes",
        "Pictures of several shapes, drawn on the spot; 17 answers. Answers were drawn before "
        "their questions, so that the words of a question tell little. No scene of the test set "
        "has a caption that was seen in training.",
    ),
}

EYES = "eyes"
"""What the name of the run begins with whose eyes those of the answers about scenes are."""

COLUMNS = 4
"""Two questions of a row, with the picture and where it was looked at."""


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its picture."""
    runs: Runs = [run for run in value["runs"] if _data(run) in DATA]
    parts = [
        "# Questions about pictures",
        "",
        "A network sees, a transformer reads, and in blocks on top of both, words and cells look "
        "at each other. Right % is the mean ± deviation over seeds, or ± half the 95 % interval. "
        "What the picture is worth is told by what is right without it: *another picture*, the "
        "same model with the picture of another question; *question alone*, the answer that is "
        f"most frequent in training for the same words. {changes(runs)}",
        "",
        *_eyes([run for run in value["runs"] if _data(run) == EYES]),
    ]
    for data in dict.fromkeys(_data(run) for run in runs):
        own = [run for run in runs if _data(run) == data]
        title, about = DATA[data]
        parts += [f"## {title}", "", about, "", _scores(own), "", *_kinds(own)]
        parts += _maps([run for run in own if run.get("maps")], folder)
    return "\n".join([*parts, making({**value, "runs": runs or value["runs"]}), ""])


def _data(run: dict[str, Any]) -> str:
    return str(run["name"]).split()[0]


def _eyes(runs: Runs) -> list[str]:
    """Tell what those eyes had learned with which answers about scenes begin (`init_from=`)."""
    if not runs:
        return []
    return [
        f"Answers about scenes begin with the eyes of `{runs[0]['recipe']}`, which has learned to "
        f"describe scenes (`init_from=`): {score(runs[0], 'accuracy')} % of captions are exact.",
        "",
    ]


def _scores(runs: Runs) -> str:
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        size, minutes = own[0]["parameters"], mean(run["training"]["seconds"] for run in own) / 60
        without = [_first(own, key) for key in ("another picture", "question alone")]
        cells = (name.split()[-1], own[0]["data"], len(own), f"{size / 1e6:.2f} M")
        rows.append((*cells, spread(own, "accuracy"), *without, f"{minutes:.1f}"))
    head = ("model", "data", "runs", "weights", "right %", "another picture", "question alone")
    return table((*head, "minutes"), rows)


def _first(runs: Runs, key: str) -> str:
    """Write what the first run of a kind tells, or a dash if that one is missing."""
    return next((f"{run[key]:.1f}" for run in runs if key in run), "–")


def _kinds(runs: Runs) -> list[str]:
    """Tell how many are right by what is asked for, of the first run of each model."""
    first = {run["name"].split()[-1]: run for run in reversed(runs)}
    groups = {
        model: {group["name"]: group for group in run["test"]["by_tag"]}
        for model, run in reversed(first.items())
    }
    names = dict.fromkeys(name for found in groups.values() for name in found)
    counts = next(iter(groups.values()))
    rows = [
        (
            name,
            f"{counts[name]['count']:,}",
            *(f"{found[name]['accuracy']:.1f}" for found in groups.values()),
        )
        for name in names
        if all(name in found for found in groups.values())
    ]
    return [table(("asked for", "questions", *groups), rows), ""] if rows else []


def _maps(runs: Runs, folder: Path) -> list[str]:
    """Draw the first test question of every kind over its picture, drawn again."""
    parts = []
    for run in runs:
        shown = [tile for one in run["maps"] for tile in _pair(one)]
        file = f"visual-questions-{run['recipe']}.png"
        picture.save(folder / file, tiles.sheet(shown, columns=COLUMNS))
        shrink(folder / file)
        looked = run["maps"][0]["looked"]
        parts += [
            f"The first test question of each kind about a picture of its own, unpicked "
            f"({run['recipe']}, seed {run['seed']}): the picture with the question, and how much "
            f"each cell counts for the answer ({looked}). Below it stands the word of the question "
            "that counts most.",
            "",
            f"![where answers look]({file})",
            "",
        ]
    return parts


def _pair(one: dict[str, Any]) -> tuple[Tile, Tile]:
    """Show a picture with its question, and the same under the weights of the answer."""
    picture = np.asarray(render(one["picture"]))
    grid = np.array(one["on cells"]).reshape(one["grid"])
    is_right = one["answer"] == one["right"]
    caption = one["answer"] if is_right else f"{one['answer']} (right: {one['right']})"
    words = [word for word in one["words"] if not word.startswith("<")]  # <eos> is no word
    word = words[int(np.argmax(one["on words"][: len(words)]))]
    return (
        Tile(resize_image(picture), one["question"], one["kind"]),
        Tile(overlay.overlay(picture, grid), caption, f"most: “{word}”", is_right),
    )
