"""Does one sentence follow from another?"""

from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from regard.core.files import write_text
from regard.plots import heatmap

from .parts import Runs, making, table


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its pictures."""
    runs: Runs = value["runs"]
    aligned = next(run for run in runs if run["maps"])
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        found = [run["test"]["scores"]["accuracy"]["value"] for run in own]
        f1 = [run["test"]["scores"]["macro_f1"]["value"] for run in own]
        seconds = mean(run["training"]["seconds"] for run in own)
        cells = (name, f"{own[0]['parameters'] / 1e6:.2f} M", len(own))
        spread = f"{mean(found):.1f} ± {stdev(found):.1f}" if len(found) > 1 else f"{found[0]:.1f}"
        rows.append((*cells, spread, f"{mean(f1):.1f}", f"{seconds:.0f}"))
    return "\n".join(
        [
            "# Entailment",
            "",
            "SICK: does the second sentence follow from the first, contradict it, or neither? "
            "`parikh2016` has no encoder: each word's vector looks for its like in the other "
            "sentence and is compared with what it finds. `sick-transformer` reads both sentences "
            "as one text. ± is the deviation over seeds; always saying 'neutral' gives 56.7 %.",
            "",
            table(("model", "weights", "seeds", "test %", "macro F1", "seconds"), rows),
            "",
            "## Where the words of the second sentence look in the first",
            "",
            "The first four test pairs, unpicked.",
            "",
            *_maps(aligned, folder),
            "## The first twenty test pairs, unpicked",
            "",
            table(("first ‖ second", "right", aligned["name"]), _samples(aligned)),
            "",
            making(value),
            "",
        ]
    )


def _maps(run: dict[str, Any], folder: Path) -> list[str]:
    parts = []
    for number, one in enumerate(run["maps"], start=1):
        name = f"entailment-{number}.svg"
        drawing = heatmap.svg(np.array(one["weights"]), one["rows"], one["columns"])
        write_text(folder / name, str(drawing))
        parts += [f"![Pair {number}]({name})", ""]
    return parts


def _samples(run: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(" ‖ ".join(source), right, answer) for source, right, answer in run["samples"]]
