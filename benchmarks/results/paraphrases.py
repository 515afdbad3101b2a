"""Do encoders of translators put paraphrases close together?"""

from pathlib import Path
from typing import Any

from regard.plots import figure as picture
from regard.plots.scatter import grouped

from .parts import changes, noted, plain, table

DRAWN = ("sutskever2014", "bahdanau2015", "vaswani2017")
"""Rungs in the picture: a fixed context, attention, self-attention."""

FIGURE = "paraphrases.svg"


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its picture."""
    runs = value["runs"]
    asked = value["bag"]["all"]["accuracy"]["detail"]
    few = value["bag"]["other_words"]["accuracy"]["detail"]
    return "\n".join(
        [
            "# Paraphrases",
            "",
            "Translators learn that sentences mean the same only by translating them. Several "
            "German sentences that translate one English sentence are paraphrases: does the "
            f"encoder put them close together? The test set has {asked['queries']:,.0f} German "
            f"sentences in {asked['groups']:,.0f} groups of at least two, among "
            f"{asked['candidates'] + 1:,.0f} German sentences in all. Each asks for its nearest "
            "by the cosine of vectors; right is any other one of its group. No sentence of the "
            "test, German or English, was trained on.",
            "",
            *noted(value),
            table(
                ("vectors", "BLEU", "accuracy@1", "MRR", "fresh", "other words", "mean of states"),
                _rows(value),
            ),
            "",
            "Accuracy@1 and MRR are of the encoder's own summary, with half a 95 % interval "
            f"(groups drawn anew). By chance, {asked['chance']:.2f} % would be right. Fresh: "
            "accuracy of the same encoder before it learned. Other words: accuracy on the "
            f"{few['queries']:,.0f} sentences that share at most a quarter of their words with "
            "each of their group. Mean of states: accuracy with the mean instead of the summary.",
            "",
            *_figure(value, folder),
            "## What is nearest, for the first groups, unpicked",
            "",
            *_samples(value),
            "## How it was made",
            "",
            f"- `{value['command']}`, each run as its own process",
            f"- {value['data']}",
            f"- {runs[0]['hardware']}, torch {runs[0]['torch']}, commit {runs[0]['commit']}",
            f"- {changes(runs)}",
            f"- `{value['bag']['all']['accuracy']['signature']}`",
            "- every number: [`paraphrases.json`](paraphrases.json)",
            "",
        ]
    )


def _rows(value: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [
        (
            run["name"],
            f"{run['bleu']['value']:.1f}",
            *_cells(run["found"]["summary"]),
            f"{run['fresh']['summary']['all']['accuracy']['value']:.1f}",
            _with_spread(run["found"]["summary"]["other_words"]["accuracy"], 1),
            _with_spread(run["found"]["mean"]["all"]["accuracy"], 1),
        )
        for run in value["runs"]
    ]
    bag = value["bag"]
    few = _with_spread(bag["other_words"]["accuracy"], 1)
    return [*rows, ("bag of words (tf-idf)", "–", *_cells(bag), "–", few, "–")]


def _cells(found: dict[str, Any]) -> tuple[str, str]:
    every = found["all"]
    return _with_spread(every["accuracy"], 1), _with_spread(every["mrr"], 3)


def _with_spread(result: dict[str, Any], digits: int) -> str:
    low, high = result["interval"]
    return f"{result['value']:.{digits}f} ± {(high - low) / 2:.{digits}f}"


def _figure(value: dict[str, Any], folder: Path) -> list[str]:
    chosen = [run for run in value["runs"] if run["name"] in DRAWN] or value["runs"][:1]
    groups = list(dict.fromkeys(one["group"] for one in value["drawn"]))
    panels = {
        f"{run['name']} · {100 * run['share']:.0f} %": [(x, y) for x, y in run["points"]]
        for run in chosen
    }
    drawing = grouped(
        panels,
        [one["text"] for one in value["drawn"]],
        groups=[groups.index(one["group"]) for one in value["drawn"]],
    )
    picture.save(folder / FIGURE, drawing)
    return [
        "## Sentences as points",
        "",
        f"![Paraphrases on two principal components]({FIGURE})",
        "",
        "As in figure 2 of Sutskever et al. 2014: the first groups of the test set that have at "
        "least three sentences, on the first two principal components of their vectors; above each "
        "plane, the share of the variance that it tells. A colour is a meaning.",
        "",
    ]


def _samples(value: dict[str, Any]) -> list[str]:
    found = {run["name"]: run["samples"] for run in value["runs"]}
    found["bag of words"] = value["bag_samples"]
    lines = []
    for number, one in enumerate(value["asked"]):
        lines.append(f"{number + 1}. {plain(one['text'])} (*{plain(one['group'])}*)")
        for name, samples in found.items():
            sample = samples[number]
            mark = "✓" if sample["is_right"] else "✗"
            lines.append(f"   - {name}: {mark} {plain(sample['text'])}")
    return [*lines, ""]
