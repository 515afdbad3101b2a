"""What long sources cost in time and memory, with whole models."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from regard.plots import figure as picture

from .parts import table

WORKS = {"train": "a step of training", "search": "a search"}
KEYS = {"seconds": ("seconds", 1.0, ".2f"), "peak_bytes": ("MiB", 2**-20, ",.0f")}
REFERENCE = 1200
"""The length that the page speaks of in words."""


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its picture."""
    picture.save(folder / "long.svg", _figure(value))
    recipes = [(name, f"`{model['recipe']}`") for name, model in value["models"].items()]
    tables = [
        line
        for work, words in WORKS.items()
        for key, (unit, _, _) in KEYS.items()
        for line in (
            f"{words[0].upper()}{words[1:]}, {unit}:",
            "",
            _by_length(value, work, key),
            "",
        )
    ]
    parts = [
        "# Long sources on one core",
        "",
        f"{value['sources']} sources of n tokens and targets of {value['target']}, float32, one "
        "thread: one step of training, forward and backward, and one search with "
        f"{value['beams']} beams for {value['target']} tokens. Whole models, as these recipes have "
        "them, with a vocabulary of 8,000:",
        "",
        table(("model", "recipe"), recipes),
        "",
        "![Time and memory by length](long.svg)",
        "",
        _verdict(value),
        "",
        *tables,
        f"## How far from the limit, at {REFERENCE:,} tokens",
        "",
        f"One core multiplies large matrices at {value['flops_per_second'] / 1e9:.0f} GFLOP/s. "
        "Operations are those of all products in a step of training, as torch counts them:",
        "",
        _limits(value),
        "",
        "Time is the processor time of one thread, which does not count what else the machine was "
        "doing, the best of several rounds; memory is how far a fresh process grew beyond the "
        "model while it worked, its gradients included.",
        "",
        "## How it was made",
        "",
        f"- `{value['command']}`",
        f"- {value['hardware']}, torch {value['torch']}, commit {value['commit']}",
        "- every number: [`long.json`](long.json)",
        "",
    ]
    return "\n".join(parts)


def _at(value: dict[str, Any], model: str, work: str, *, length: int = REFERENCE) -> dict[str, Any]:
    points = value["models"][model]["points"]
    found: dict[str, Any] = next(point for point in points if point["length"] == length)[work]
    return found


def _by_length(value: dict[str, Any], work: str, key: str) -> str:
    _, unit, form = KEYS[key]
    rows = [
        (
            f"{length:,}",
            *(
                f"{_at(value, model, work, length=length)[key] * unit:{form}}"
                for model in value["models"]
            ),
        )
        for length in value["lengths"]
    ]
    return table(("n", *value["models"]), rows)


def _verdict(value: dict[str, Any]) -> str:
    full, near, pooled = (
        {work: _at(value, model, work) for work in WORKS}
        for model in ("transformer", "window", "window, pooled memory")
    )
    largest = max(
        _at(value, model, work)["peak_bytes"] for model in value["models"] for work in WORKS
    )
    return (
        f"With {REFERENCE:,} tokens every model trains and searches in at most "
        f"{largest / 2**30:.1f} GiB. A window makes a step of training "
        f"{full['train']['seconds'] / near['train']['seconds']:.1f} times as fast and takes "
        f"{full['train']['peak_bytes'] / near['train']['peak_bytes']:.1f} times less memory. A "
        "pooled memory besides makes the search "
        f"{near['search']['seconds'] / pooled['search']['seconds']:.2f} times as fast and training "
        f"{near['train']['seconds'] / pooled['train']['seconds']:.2f} times."
    )


def _limits(value: dict[str, Any]) -> str:
    rows = []
    for model in value["models"]:
        found = _at(value, model, "train")
        least = found["flops"] / value["flops_per_second"]
        rows.append(
            (
                model,
                f"{found['flops'] / 1e9:.0f}",
                f"{least:.2f}",
                f"{found['seconds']:.2f}",
                f"{found['seconds'] / least:.1f}",
            )
        )
    return table(("model", "GFLOP", "least seconds", "seconds", "times the least"), rows)


def _figure(value: dict[str, Any]) -> Figure:
    with picture.style():
        figure = Figure(figsize=(9, 6.4), layout="constrained")
        for row, (work, words) in zip(figure.subplots(2, 2), WORKS.items(), strict=True):
            for axes, (key, (unit, factor, _)) in zip(row, KEYS.items(), strict=True):
                for number, (model, found) in enumerate(value["models"].items()):
                    column = [factor * point[work][key] for point in found["points"]]
                    colour = picture.COLORS[number]
                    axes.plot(value["lengths"], column, color=colour, marker="o", ms=4, label=model)
                axes.set(xscale="log", yscale="log", xlabel="source tokens n")
                axes.set_title(f"{words}, {unit}", loc="left", fontsize=11)
                axes.set_xticks(value["lengths"], [f"{length:,}" for length in value["lengths"]])
                axes.minorticks_off()
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,g}"))
                axes.grid()
        handles, names = axes.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=len(names))
    return figure
