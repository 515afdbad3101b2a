"""Translation that does not begin from nothing, and translation as one language model."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any

from .parts import Runs, making, score, table


def write(value: dict[str, Any], _folder: Path) -> str:
    """Write the page."""
    runs: Runs = value["runs"]
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs if "multi30k" in run["command"]):
        own = [run for run in runs if run["name"] == name]
        found = [run["test"]["scores"]["bleu"]["value"] for run in own]
        spread = f" ± {stdev(found):.1f}" if len(found) > 1 else ""
        cells = (name, f"{own[0]['parameters'] / 1e6:.1f} M", len(own), own[0]["training"]["steps"])
        rows.append((*cells, f"{mean(found):.1f}{spread}", score(own[0], "chrf")))
    head = ("model", "weights", "seeds", "steps", "BLEU", "chrF2 of seed 1")
    return "\n".join(
        [
            "# Pre-trained translation, and translation as one language model",
            "",
            "Multi30k English → German, test_2016. `raffel2020` is an encoder–decoder that learned "
            "to fill spans of single English and German sentences (T5) before it learned to "
            "translate; `untrained` is the same model and vocabulary after a single such step. "
            "`prefix-lm` is one causal stack over source, separator and target. ± is the "
            "deviation over seeds.",
            "",
            table(head, rows),
            "",
            making(value),
            "",
        ]
    )
