"""Summaries, replies and answers to questions: scores, samples, and where the models looked."""

from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from regard.core.files import write_text
from regard.plots import curves, heatmap
from regard.plots import figure as picture
from regard.plots.inputs import MAX_WIDTH

from .parts import Runs, changes, making, plain, score, spread, table

TITLES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "perplexity": "perplexity",
    "distinct1": "distinct-1 %",
    "distinct2": "distinct-2 %",
    "bleu": "BLEU",
    "accuracy": "right %",
    "aer": "AER",
}

NUM_SAMPLES = 8
"""Examples that are shown with every model's answer; the results have more."""

NUM_REPLIES = 20
"""Replies that are shown, each found in every way."""

COPYING = "copying"
"""The kind of map that shows what is copied from where."""

ABOUT = {
    "attention": "",
    COPYING: "Beside each piece that is written stands the probability that it is copied; its row "
    "says from where. A row without colour is the model's own.",
}
"""What to know of each kind of map."""

MOST_COLUMNS = 48
"""A map of more columns is too small to be read."""

SHARES = ("aer",)
"""Scores that lie between 0 and 1."""

TEXTS = {
    "synopsis": (
        "Package descriptions",
        "A description of a software package → its one-line synopsis; 32,000 to learn from. No "
        "description is on two sides, though packages of one family have similar ones.",
    ),
    "scitldr": (
        "Abstracts",
        "A paper's abstract → one sentence (SciTLDR, Cachola et al. 2020); 1,992 to learn from, "
        "618 to test on, two in both (official split). Of several summaries the nearest counts.",
    ),
}
"""The title of each data set of summaries, and what to know of it."""


def write_summaries(value: dict[str, Any], folder: Path) -> str:
    """Write the page on summaries and draw its pictures."""
    parts = [
        "# Summaries",
        "",
        "A pointer-generator writes a word of its own or copies one from the source. What it has "
        "to beat is the lead: the first sentence, taken for the summary. Models of one kind with "
        "several seeds: mean ± deviation; others: half the 95 % interval.",
        "",
    ]
    for data, (title, about) in TEXTS.items():
        own = [run for run in value["runs"] if run["name"].startswith(f"{data} ")]
        if not own:
            continue
        leads = [row for row in value["together"] if row["data"] == data]
        changed = changes([{**run, "name": _short(run["name"])} for run in own])
        parts += [f"## {title}", "", f"{about} {changed}", "", _scores(own, leads), ""]
        parts += _learning(own, folder, f"summaries-{data}")
    copying = [run for run in value["runs"] if run["maps"] and run["maps"][0]["kind"] == COPYING]
    parts += _all_maps(copying, folder, "summaries")
    for data, (title, _) in TEXTS.items():
        own = [run for run in value["runs"] if run["name"].startswith(f"{data} ")]
        leads = [row for row in value["together"] if row["data"] == data]
        if own:
            shown = _samples([*own, *leads], f"{title}: the first of the test set", NUM_SAMPLES)
            parts += [shown, ""]
    return "\n".join([*parts, making(value), ""])


def write_dialogue(value: dict[str, Any], folder: Path) -> str:
    """Write the page on conversations and draw its pictures."""
    runs, ways = value["runs"], value["together"]
    replies = [run for run in runs if run["name"] == "replies"]
    parts = [
        "# Conversations",
        "",
        "The last three turns of a conversation → the reply (Chit-Chat Challenge, Myers et al. "
        "2020), split by conversation. `reversed` tells the turn before from the reply and serves "
        "to rerank. Perplexity is per piece of text; BLEU says little, as many replies would do. "
        "Distinct-1 and distinct-2 are the shares of different words and pairs of words; they fall "
        "as texts grow, so only numbers of one table can be compared.",
        "",
        _scores(runs, []),
        "",
        *_learning(runs, folder, "dialogue"),
    ]
    if ways:
        parts += [
            "## How to reply",
            "",
            f"The first {ways[0]['test']['num_examples']:,} contexts of the test set, answered by "
            "what people said; by the likeliest reply (beam search); by a reply drawn at "
            "temperature 0.8 among the likeliest pieces with 90 % of the probability; and by the "
            "candidate of a beam from which the turn before can be told best, too (maximum mutual "
            "information, Li et al. 2016).",
            "",
            _ways(ways),
            "",
        ]
    parts += _all_maps(replies, folder, "dialogue")
    parts += [_samples(ways or replies, "The first of the test set", NUM_REPLIES), ""]
    return "\n".join([*parts, making(value), ""])


def write_questions(value: dict[str, Any], folder: Path) -> str:
    """Write the page on questions and draw its pictures."""
    runs = value["runs"]
    parts = [
        "# Questions on stories",
        "",
        "bAbI (Weston et al. 2015): twenty tasks of 1,000 training questions each, a tenth of them "
        "held out to validate; one model for all. An answer is right if every word of it is. A "
        "task counts as solved at 95 %. AER compares where the model looks with the sentences that "
        "justify the answer: 0 is best.",
        "",
        _scores(runs, []),
        "",
        *_cut_short(runs),
        *(_tasks(runs, folder) if runs[0]["test"]["by_tag"] else []),
        *_all_maps(runs, folder, "questions"),
        _samples(runs, "The first question of each task", len(runs[0]["samples"])),
        "",
        making(value),
        "",
    ]
    return "\n".join(parts)


def _scores(runs: Runs, together: Runs) -> str:
    """Write every score of every kind of model, and of what is no model."""
    keys = list(runs[0]["test"]["scores"])
    rows: list[tuple[object, ...]] = []
    base = together[0]["test"]["scores"][keys[-1]]["value"] if together else 0.0
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        minutes = mean(run["training"]["seconds"] for run in own) / 60
        cells = [_spread(own, key) for key in keys]
        size = f"{own[0]['parameters'] / 1e6:.1f} M"
        if together:
            gain = mean(run["test"]["scores"][keys[-1]]["value"] for run in own) - base
            cells.append(f"{gain:+.1f}")
        rows.append((_short(name), len(own), size, *cells, f"{minutes:.1f}"))
    for row in together:
        rows.append((f"*{row['name']}*", "", "", *(score(row, key) for key in keys), "", ""))
    titles = [TITLES.get(key, key) for key in keys]
    titles += [f"{titles[-1]} over the {together[0]['name']}"] if together else []
    return table(("model", "runs", "weights", *titles, "minutes"), rows)


def _cut_short(runs: Runs) -> list[str]:
    """Say which runs had no time to finish their schedule."""
    short = [run for run in runs if run["training"].get("stopped") == "minutes"]
    if not short:
        return []
    settings = short[0]["settings"]["train"]
    ends = sorted({run["training"]["epochs"] for run in short})
    return [
        f"{len(short)} of {len(runs)} runs were stopped after {settings['max_minutes']:.0f} "
        f"minutes, in epoch {' or '.join(map(str, ends))} of {settings['max_epochs']}.",
        "",
    ]


def _spread(runs: Runs, key: str) -> str:
    if key in SHARES:
        return f"{mean(run['test']['scores'][key]['value'] for run in runs):.2f}"
    return spread(runs, key)


def _ways(ways: Runs) -> str:
    keys = list(ways[0]["test"]["scores"])
    rows = [
        (
            row["name"],
            *(score(row, key) for key in keys),
            f"{row['test']['mean_words']:.1f}",
            f"{row['test']['num_different']:,}",
        )
        for row in ways
    ]
    titles = (TITLES.get(key, key) for key in keys)
    return table(("way", *titles, "words a reply", "different replies"), rows)


def _learning(runs: Runs, folder: Path, name: str) -> list[str]:
    """Draw how the first run of each kind learned: its validation score, or its loss."""
    key = runs[0]["settings"]["validation"]["metric"]
    first = {run["name"]: run for run in reversed(runs)}
    series = {
        _short(run["name"]): [(row["step"], row[key]) for row in run["journal"] if key in row]
        for run in reversed(first.values())
    }
    title = TITLES.get(key, key)
    drawing = curves.lines(series, x_label="step", y_label=f"validation {title}")
    picture.save(folder / f"{name}-learning.svg", drawing)
    return [f"![validation {title} by step]({name}-learning.svg)", ""]


def _tasks(runs: Runs, folder: Path) -> list[str]:
    """Tell the share of right answers task by task, as the mean of all runs."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for group in run["test"]["by_tag"]:
            found.setdefault(group["name"], []).append(group["accuracy"])
    means = {name: mean(values) for name, values in sorted(found.items())}
    drawing = curves.bars(means, x_label="right %")
    picture.save(folder / "questions-tasks.svg", drawing)
    num_solved = sum(value >= 95 for value in means.values())
    return [
        "## Task by task",
        "",
        f"{num_solved} of {len(means)} are solved; the mean over tasks is "
        f"{mean(means.values()):.1f} %.",
        "",
        "![right answers by task](questions-tasks.svg)",
        "",
    ]


def _all_maps(runs: Runs, folder: Path, name: str) -> list[str]:
    parts: list[str] = []
    for run in runs:
        maps = [one for one in run["maps"] if len(one["columns"]) <= MOST_COLUMNS]
        if not maps:
            continue
        kind = maps[0]["kind"]
        title = "Where it copies from" if kind == COPYING else "Where it looks"
        about = ABOUT.get(kind, f"Shown is: {kind}.")
        parts += [f"### {title}: {run['name']}", "", *([about, ""] if about else [])]
        slug = f"{name}-{run['name']}".replace(",", "").replace(" ", "-")
        for number, one in enumerate(maps, start=1):
            file = f"{slug}-{number}.svg"
            columns = [*map(_both_ends, one["columns"])]
            drawing = heatmap.svg(np.array(one["weights"]), one["rows"], columns)
            write_text(folder / file, str(drawing))
            parts += [f"![{plain(one['source'])} → {plain(one['target'])}]({file})", ""]
    return parts


def _both_ends(label: str) -> str:
    """Return a label that fits; of a sentence, who it is about and how it ends."""
    if len(label) <= MAX_WIDTH:
        return label
    first, *rest = label.split()
    while rest and len(f"{first} … {' '.join(rest)}") > MAX_WIDTH:
        rest = rest[1:]
    return f"{first} … {' '.join(rest)}"


def _samples(rows: Runs, title: str, num: int) -> str:
    """Write the same examples as every model, or way, answers them."""
    shown = [row for row in rows if row["samples"]]
    parts = [f"## {title}, unpicked", ""]
    for number, (source, right, _) in enumerate(shown[0]["samples"][:num], start=1):
        # What belongs to an item stands below its text, which begins later after a longer number.
        indent = " " * len(f"{number}. ")
        parts += [f"{number}. {plain(source)}", f"{indent}- *right*: {plain(right)}"]
        parts += [
            f"{indent}- {_short(row['name'])}: {plain(row['samples'][number - 1][2])}"
            for row in shown
            if row["name"] != "people"
        ]
    return "\n".join(parts)


def _short(name: str) -> str:
    """Return a run's name without that of its data."""
    data, _, rest = name.partition(" ")
    return rest if data in TEXTS else name
