"""The embedded data set, over several seeds and by phenomenon."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import Runs, at, making, points, samples, table


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its picture."""
    runs: Runs = value["runs"]
    names = list(dict.fromkeys(run["name"] for run in runs))
    by_name = {name: [run for run in runs if run["name"] == name] for name in names}
    long = "bleu_above_20_words"
    rows = [
        (
            name,
            f"{own[0]['parameters'] / 1e6:.1f} M",
            _mean([run["test"]["scores"]["bleu"]["value"] for run in own]),
            _mean([run["test"][long]["value"] for run in own]),
            _mean([run["test"]["scores"]["accuracy"]["value"] for run in own]),
            _mean([100 * run["test"]["scores"]["aer"]["value"] for run in own])
            if "aer" in own[0]["test"]["scores"]
            else "–",
        )
        for name, own in by_name.items()
    ]
    head = ("model", "weights", "BLEU", "above 20 words", "exact %", "AER %")
    series = {
        name: points(
            [
                {**group, "bleu": mean(float(at(run, group["name"])) for run in own)}
                for group in own[0]["test"]["by_length"]
            ]
        )
        for name, own in by_name.items()
    }
    figure = curves.lines(series, x_label="words in the source", y_label="BLEU")
    picture.save(folder / "phrasebook-lengths.svg", figure)
    tags = [
        (
            group["name"],
            group["count"],
            *(
                _mean([g["bleu"] for run in by_name[n] for g in _tag(run, group["name"])])
                for n in names
            ),
        )
        for group in runs[0]["test"]["by_tag"]
    ]
    seeds = len(by_name[names[0]])
    return "\n".join(
        [
            "# phrasebook, English → German",
            "",
            "The embedded data set: 20,000 training pairs, 1,000 held-out test pairs, laptop "
            f"recipes, 6 epochs, beam 4; mean of {seeds} seeds ± standard deviation. Two runs "
            "shared the two cores, one thread each. AER: each word of the right translation linked "
            "to the source word the model looks at most while writing it, against the gold "
            "alignment.",
            "",
            table(head, rows),
            "",
            "A fixed context is far behind wherever a sentence is longer than a few words. The "
            "stacked LSTMs of sutskever2014 have hardly begun to learn in so short a training.",
            "",
            "![BLEU by source length](phrasebook-lengths.svg)",
            "",
            "## BLEU by phenomenon",
            "",
            table(("phenomenon", "sentences", *names), tags),
            "",
            samples([own[0] for own in by_name.values()], names, 8),
            "",
            making(value),
            "",
        ]
    )


def _tag(run: dict[str, Any], name: str) -> Runs:
    return [group for group in run["test"]["by_tag"] if group["name"] == name]


def _mean(values: Sequence[float]) -> str:
    middle = mean(values)
    if len(values) < 2:
        return f"{middle:.1f}"
    spread = (sum((value - middle) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{middle:.1f} ± {spread:.1f}"
