"""Language models: characters and words."""

from pathlib import Path
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import Runs, making, table

DATA = {"shakespeare": "Tiny Shakespeare", "wikitext2": "WikiText-2"}


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its pictures."""
    parts = [
        "# Language models",
        "",
        "What comes next, given all before? A recurrent network and a transformer on the "
        "characters of Tiny Shakespeare, and on the words of WikiText-2.",
        "",
    ]
    for data, title in DATA.items():
        runs: Runs = [run for run in value["runs"] if f" {data} " in f"{run['command']} "]
        if runs:
            parts += [f"## {title}", "", _quality(runs), "", *_curves(runs, folder, data), ""]
            parts += _written(runs)
    return "\n".join([*parts, making(value), ""])


def _quality(runs: Runs) -> str:
    rows = [
        (
            run["name"],
            f"{run['parameters'] / 1e6:.1f} M",
            f"{run['training']['seconds'] / 60:.1f}",
            f"{run['training']['tokens_per_second']:,.0f}",
            *(f"{run['test']['scores'][name]['value']:.{digits}f}" for name, digits in SCORES),
        )
        for run in runs
    ]
    head = (
        "model", "weights", "minutes", "tokens/s",
        "perplexity a token", "bits a character", "nats a character",
    )  # fmt: skip
    return table(head, rows)


SCORES = (("perplexity", 2), ("bits_per_character", 3), ("nats_per_character", 3))


def _curves(runs: Runs, folder: Path, data: str) -> list[str]:
    series = {
        run["name"]: [(row["seconds"] / 60, row["loss"]) for row in run["journal"]] for run in runs
    }
    drawing = curves.lines(series, x_label="minutes of training", y_label="validation loss, nats")
    name = f"language-{data}.svg"
    picture.save(folder / name, drawing)
    return [f"![Validation loss by minutes of training]({name})"]


def _written(runs: Runs) -> list[str]:
    parts = ["Drawn at temperature 0.8 with seed 1, the first of three, unpicked:", ""]
    for run in runs:
        text = run["samples"][0] if run["samples"] else ""
        parts += [f"*{run['name']}*", "", "```text", text[:600], "```", ""]
    return parts
