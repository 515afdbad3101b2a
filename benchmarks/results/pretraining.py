"""Masked models of one size, and what fine-tuning makes of each."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import Runs, making, table

TASKS = {"sst2": "SST-2, sentiment", "sick": "SICK, entailment"}


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its picture."""
    runs: Runs = value["runs"]
    names = {run["name"] for run in runs}
    masked = [run for run in runs if run["name"].split()[0] not in TASKS]
    parts = [
        "# Pre-training",
        "",
        "Masked models that differ in one part each, pre-trained on the same texts (WikiText-2 and "
        "IMDb reviews, nothing of SST-2) with equally many steps of equally many tokens, then "
        "fine-tuned. `untrained` is the same model and the same vocabulary after a single step; "
        "`-long` has twice the steps. Labels are told from the first token, or, as named, from the "
        "mean or the maximum of all states.",
        "",
        "## Filling gaps",
        "",
        _filling([run for run in masked if not run["name"].startswith("untrained")]),
        "",
    ]
    for task, title in TASKS.items():
        rows = sorted({name for name in names if name.startswith(f"{task} ")})
        if rows:
            parts += [f"## {title}", "", _accuracy(runs, rows), ""]
    series = {
        run["name"]: [(row["seconds"] / 60, row["loss"]) for row in run["journal"]]
        for run in masked
        if len(run["journal"]) > 1
    }
    drawing = curves.lines(series, x_label="minutes of training", y_label="validation loss, nats")
    picture.save(folder / "pretraining.svg", drawing)
    parts += ["![Validation loss of the masked models](pretraining.svg)", ""]
    parts += [
        "The losses are not of one kind: spans are harder to fill in than single tokens, and the "
        "student's includes its teacher.",
        "",
        *_caveat(masked),
        *_samples(runs),
    ]
    return "\n".join([*parts, making(value), ""])


def _caveat(masked: Runs) -> list[str]:
    """Say what holds models with learned positions back, where these were used."""
    if all(run["settings"]["model"]["encoder"].get("positions") != "learned" for run in masked):
        return []
    return [
        "A loss near 6 is that of guessing single words: until a model knows where to look, it "
        "stays there. With learned positions that takes most of these steps, or more than there "
        "are; the recipes have rotary positions since (see the [log](../log.md)).",
        "",
    ]


def _filling(runs: Runs) -> str:
    keys = list(dict.fromkeys(key for run in runs for key in run["test"]["scores"]))
    rows = []
    for run in runs:
        found = run["test"]["scores"]
        rows.append(
            (
                run["name"],
                f"{run['parameters'] / 1e6:.1f} M",
                f"{run['training']['seconds'] / 60:.1f}",
                f"{run['training']['steps']:,}",
                *(f"{found[key]['value']:.2f}" if key in found else "–" for key in keys),
            )
        )
    titles = [key.replace("_", " ") for key in keys]
    return table(("model", "weights", "minutes", "steps", *titles), rows)


def _accuracy(runs: Runs, names: list[str]) -> str:
    rows = []
    for name in names:
        own = [run for run in runs if run["name"] == name]
        found = [run["test"]["scores"]["accuracy"]["value"] for run in own]
        best = [max(row.get("value", 0.0) for row in run["journal"]) for run in own]
        rows.append(
            (
                name.split(" ", 1)[1],
                f"{own[0]['parameters'] / 1e6:.1f} M",
                str(len(own)),
                _spread(best),
                _spread(found),
                f"{mean(run['training']['seconds'] for run in own):.0f}",
            )
        )
    rows.sort(key=lambda row: row[4], reverse=True)
    head = ("starts from", "weights", "seeds", "validation %", "test %", "seconds")
    return table(head, rows)


def _spread(values: list[float]) -> str:
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}"


def _samples(runs: Runs) -> list[str]:
    parts = []
    for task, title in TASKS.items():
        own = [run for run in runs if run["name"] == f"{task} liu2019" and run["samples"]]
        if not own:
            continue
        parts += [f"## The first ten test examples of {title}, unpicked", ""]
        rows = []
        for source, right, answer in own[0]["samples"][:10]:
            text = source if isinstance(source, str) else " ‖ ".join(source)
            rows.append((text, right, answer))
        parts += [table(("text", "right", f"{own[0]['name']}"), rows), ""]
    return parts
