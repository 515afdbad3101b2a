"""BLEU by source length, as Bahdanau et al. 2015 draw it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import LEAST, Runs, at, making, points, table


def write(value: dict[str, Any], folder: Path, *, title: str) -> str:
    """Write the page and draw its picture.

    Args:
        value: What was measured.
        folder: Where the picture goes.
        title: The name of the data.
    """
    runs: Runs = value["runs"]
    name = value["experiment"]
    series = {run["name"]: points(run["test"]["by_length"]) for run in runs}
    figure = curves.lines(series, x_label="words in the source", y_label="BLEU")
    picture.save(folder / f"{name}.svg", figure)
    groups = [group for group in runs[0]["test"]["by_length"] if group["count"] >= LEAST]
    rows = [
        (group["name"], group["count"], *(at(run, group["name"]) for run in runs))
        for group in groups
    ]
    return "\n".join(
        [
            f"# BLEU by source length: {title}",
            "",
            "As Bahdanau et al. 2015 draw it (figure 2): a fixed context (`RNNencdec`, recipe "
            "cho2014) and attention (`RNNsearch`, recipe bahdanau2015), trained on examples of "
            "at most 30 or 50 words, tested up to 60. The sentences are short, so 1–5 "
            "neighbours are joined (1–6 in the test, three cuts of the same sentences).",
            "",
            f"![BLEU by source length]({name}.svg)",
            "",
            table(("source words", "sentences", *(run["name"] for run in runs)), rows),
            "",
            _verdict({run["name"]: run for run in runs}, [group["name"] for group in groups]),
            "",
            making(value),
            "",
        ]
    )


def _verdict(runs: dict[str, dict[str, Any]], groups: Sequence[str]) -> str:
    """Say what became of the paper's two claims."""
    attention, fixed = runs["RNNsearch-30"], runs["RNNencdec-50"]
    ahead = sum(float(at(attention, name)) > float(at(fixed, name)) for name in groups)
    changes = " and ".join(
        f"{name} from {at(runs[name], '16–20')} to {at(runs[name], '46–50')}"
        for name in ("RNNsearch-50", "RNNencdec-50")
    )
    return (
        f"RNNsearch-30 is ahead of RNNencdec-50 in {ahead} of {len(groups)} groups. From 16–20 to "
        f"46–50 words, {changes} BLEU."
    )
