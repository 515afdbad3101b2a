"""Labels of images: how right they are, at what compute, and from how many images."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.files import read_json
from regard.plots import curves
from regard.plots import figure as picture

from .parts import Runs, changes, making, score, table

DATA = {
    "fashion-mnist": "Fashion-MNIST (Xiao et al. 2017): 28 × 28 grey pixels, ten kinds of clothes",
    "cifar10": "CIFAR-10 (Krizhevsky 2009): 32 × 32 coloured pixels, ten kinds of things",
}
"""What to know of each data set."""

GOALS = {
    ("fashion-mnist", "he2016"): 95,
    ("fashion-mnist", "dosovitskiy2021"): 93,
    ("cifar10", "he2016"): 93,
}
"""The accuracy in percent that a model is asked for."""

BACKWARD = 3
"""A step of training takes so many times the operations of reading an image: there and back."""

NUM_CONFUSED = 8


def write_classification(value: dict[str, Any], folder: Path) -> str:
    """Write the page on labels of images and draw its pictures."""
    runs: Runs = value["runs"]
    parts = [
        "# What is on an image",
        "",
        "A residual network (`he2016`) and a vision transformer (`dosovitskiy2021`), each from "
        f"nothing. {changes(runs)} The training side lends 5,000 images to validation; the "
        "test side is the official one. GFLOPs are the floating-point operations of labelling one "
        f"image, in thousands of millions; a step of training counts {BACKWARD} times as many for "
        "each image. ± is half the 95 % interval.",
        "",
        _accuracies(runs),
        "",
    ]
    for data in dict.fromkeys(run["data"] for run in runs):
        own = [run for run in runs if run["data"] == data]
        parts += [f"## {DATA.get(data, data)}", "", *_compute(own, folder, data)]
        parts += _confused([run for run in own if run["seed"] == own[0]["seed"]])
    sizes = folder / "sizes.json"
    parts += _sizes(read_json(sizes), folder) if sizes.exists() else []
    return "\n".join([*parts, making(value), ""])


def _accuracies(runs: Runs) -> str:
    rows = []
    for run in runs:
        found = run["test"]["scores"]["accuracy"]["value"]
        goal = GOALS.get((run["data"], _model(run)))
        asked = f"≥ {goal}: {'reached' if found >= goal else 'missed'}" if goal else "–"
        size, cost = f"{run['parameters'] / 1e6:.2f} M", f"{run['flops'] / 1e9:.3f}"
        seconds = f"{run['training']['seconds']:.0f}"
        cells = (_model(run), run["data"], run["seed"], size, cost)
        rows.append((*cells, score(run, "accuracy"), asked, seconds))
    head = ("model", "data", "seed", "weights", "GFLOPs", "test %", "asked for", "seconds")
    return table(head, rows)


def _model(run: dict[str, Any]) -> str:
    """Return a run's name without that of its data."""
    return str(run["name"]).removeprefix(f"{run['data']} ")


def _compute(runs: Runs, folder: Path, data: str) -> list[str]:
    """Draw accuracy over operations, and say who is ahead at equal ones."""
    series: dict[str, list[tuple[float, float]]] = {}
    for run in runs:  # the first of each model
        series.setdefault(_model(run), _learned(run))
    file = f"classification-compute-{data}.svg"
    drawing = curves.scaling(
        series, x_label="floating-point operations of training", y_label="validation accuracy %"
    )
    picture.save(folder / file, drawing)
    end = min(points[-1][0] for points in series.values())
    found = {name: [y for x, y in points if x <= end] for name, points in series.items()}
    told = ", ".join(f"{name} {ys[-1]:.1f} %" for name, ys in found.items() if ys)
    return [
        f"![validation accuracy by compute]({file})",
        "",
        f"At equal compute, {end:.1e} operations, where the cheaper training ends, the last "
        f"validation found: {told}.",
        "",
    ]


def _learned(run: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the operations up to each validation, and the accuracy that it found."""
    training = run["training"]
    # A label is all that is written for an image.
    per_step = BACKWARD * run["flops"] * training["target_tokens"] / training["steps"]
    return [(row["step"] * per_step, row["accuracy"]) for row in run["journal"]]


def _confused(runs: Runs) -> list[str]:
    """Tell which two labels are most often taken for one another, by all models together."""
    counts = {_model(run): _mistakes(run["test"]["confusion"]) for run in runs}
    total = sum(counts.values(), Counter[str]())
    rows = [
        (pair, *(found[pair] for found in counts.values()))
        for pair, _ in total.most_common(NUM_CONFUSED)
    ]
    sums = [f"{name} {found.total():,}" for name, found in counts.items()]
    return [
        f"Mistakes among {runs[0]['test']['num_examples']:,} test images (seed {runs[0]['seed']}): "
        f"{', '.join(sums)}. The labels that are most often taken for one another:",
        "",
        table(("labels", *counts), rows),
        "",
    ]


def _mistakes(confusion: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    """Count mistakes by the two labels, whichever was right."""
    found: Counter[str] = Counter()
    for right, answers in confusion.items():
        for answer, count in answers.items():
            if answer != right:
                found[" – ".join(sorted((right, answer)))] += count
    return found


def _sizes(value: dict[str, Any], folder: Path) -> list[str]:
    """Tell how accuracy grows with the number of training images."""
    runs: Runs = sorted(value["runs"], key=lambda run: run["images"])
    models = dict.fromkeys(run["recipe"] for run in runs)
    found = {(run["recipe"], run["images"]): run for run in runs}
    series = {
        model: [
            (run["images"], run["test"]["scores"]["accuracy"]["value"])
            for run in runs
            if run["recipe"] == model
        ]
        for model in models
    }
    drawing = curves.scaling(series, x_label="training images", y_label="test accuracy %")
    picture.save(folder / "classification-sizes.svg", drawing)
    rows = [
        (
            f"{num:,}",
            *(
                score(found[model, num], "accuracy") if (model, num) in found else "–"
                for model in models
            ),
        )
        for num in sorted({run["images"] for run in runs})
    ]
    steps = sorted({run["training"]["steps"] for run in runs})
    return [
        "## How many images it takes",
        "",
        f"{DATA.get(runs[0]['data'], runs[0]['data'])}; equally many of each kind, fewer always "
        f"among the more. Every run takes {' or '.join(f'{num:,}' for num in steps)} steps of "
        f"{_batches(runs)}, or of all where there are fewer; the full recipes take more steps.",
        "",
        "![test accuracy by training images](classification-sizes.svg)",
        "",
        table(("training images", *models), rows),
        "",
        f"`{value['command']}`; every number: [`sizes.json`](sizes.json)",
        "",
    ]


def _batches(runs: Runs) -> str:
    """Say how many images a step takes: once, or for each model that differs."""
    found = {run["recipe"]: run["settings"]["data"]["batch"]["max_sentences"] for run in runs}
    if len({*found.values()}) == 1:
        return f"{next(iter(found.values()))} images"
    return " or ".join(f"{num} images ({model})" for model, num in found.items())
