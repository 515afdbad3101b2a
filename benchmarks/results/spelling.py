"""Spelling, sound and script: exact answers, where they are missed, and where the models looked."""

from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from regard.core.files import write_text
from regard.plots import curves, heatmap
from regard.plots import figure as picture

from .parts import LEAST, Runs, changes, making, score, table

NOTHING = "∅"

TITLES = {
    "word_errors": "WER %",
    "per": "PER %",
    "accuracy": "right %",
    "accuracy@5": "right among 5 %",
    "cer": "CER %",
    "chrf": "chrF",
    "bleu_ja": "BLEU, words",
    "bleu_char": "BLEU, characters",
}


def write_pronunciation(value: dict[str, Any], folder: Path) -> str:
    """Write the page on pronunciation and draw its pictures."""
    parts = [
        "# Pronunciation",
        "",
        "Letters in, phones out. WER is the share of words that are not right as a whole, as the "
        "papers on pronunciation count it; PER counts phones. Models of one kind with several "
        "seeds: mean ± deviation. An ensemble averages the probabilities of its members at every "
        "step (`regard evaluate run1,run2,…`).",
        "",
    ]
    for name in ("english", "german"):
        title, about = DICTIONARIES[name]
        runs = [run for run in value["runs"] if run["name"].split()[0] == name]
        together = [row for row in value["together"] if row["name"].startswith(f"{name},")]
        published = PUBLISHED if name == "english" else []
        parts += [f"## {title}", "", about, "", _scores(runs, together, published), ""]
        parts += _errors(runs[0], folder, f"pronunciation-{name}")
    parts += _alignments(value["runs"], folder)
    english = [run for run in value["runs"] if run["name"].startswith("english ")]
    parts += [_samples(english), "", making(value), ""]
    return "\n".join(parts)


def write_cmudict(value: dict[str, Any], folder: Path) -> str:
    """Write the page on CMUdict and draw its pictures."""
    title, about = DICTIONARIES["cmudict"]
    runs = [{**run, "name": run["name"].removeprefix("cmudict ")} for run in value["runs"]]
    parts = [
        f"# Pronunciation: {title}",
        "",
        about,
        "",
        changes(runs),
        "",
        *_body({**value, "runs": runs}, folder, "cmudict"),
    ]
    return "\n".join(parts)


def write_transliteration(value: dict[str, Any], folder: Path) -> str:
    """Write the page on transliteration and draw its pictures."""
    parts = [
        "# Transliteration",
        "",
        "Arabic names in Latin letters. Most vowels are not written in Arabic and a name may be "
        "spelled in several ways, of which the data has one: so the right name among five answers "
        "tells more than the first answer alone.",
        "",
        *_body(value, folder, "transliteration"),
    ]
    return "\n".join(parts)


def write_japanese(value: dict[str, Any], folder: Path) -> str:
    """Write the page on English to Japanese and draw its pictures."""
    parts = [
        "# English to Japanese",
        "",
        "50,000 short sentences (Tanaka corpus); the target is written without blanks, as Japanese "
        "is, and its tokens are characters or learned pieces. BLEU by words needs a tokeniser for "
        "Japanese; the signature below names the one that was used.",
        "",
        *_body(value, folder, "japanese"),
    ]
    return "\n".join(parts)


def _body(value: dict[str, Any], folder: Path, name: str) -> list[str]:
    """Write what every page on a single data set has below its title."""
    runs = value["runs"]
    return [
        _scores(runs, value["together"], []),
        "",
        *_errors(runs[0], folder, name),
        *_maps(runs[0], folder, name),
        _samples(runs),
        "",
        making(value),
        "",
    ]


DICTIONARIES = {
    "english": (
        "English, SIGMORPHON 2021",
        "33,344 words to learn from, 4,168 to be tested on, the official split.",
    ),
    "german": (
        "German, WikiPron",
        "Split by word; an answer is right if it is any of a word's listed pronunciations.",
    ),
    "cmudict": (
        "English, CMUdict",
        "112,052 words to learn from, 12,000 to be tested on, without stress and split by word; "
        "right is any listed pronunciation. Models of one kind: mean ± deviation of their seeds; "
        "the ensemble: half the 95 % interval. The published 20–24 % (WER) are on an older, "
        "cleaner split that is not at hand, so they cannot stand beside these.",
    ),
}

PUBLISHED = [
    ("*shared task's baseline, an ensemble of 10*", "41.9"),
    ("*shared task's best*", "37.4"),
]
"""What is known of SIGMORPHON 2021, English: word error rates."""


def _scores(runs: Runs, together: Runs, published: list[tuple[str, str]]) -> str:
    keys = list(runs[0]["test"]["scores"])
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        minutes = mean(run["training"]["seconds"] for run in own) / 60
        cells = [_spread(own, key) for key in keys]
        size = f"{own[0]['parameters'] / 1e6:.1f} M"
        rows.append((name.split(maxsplit=1)[-1], len(own), size, *cells, f"{minutes:.1f}"))
    for row in together:
        cells = [score(row, key) for key in keys]
        name = f"ensemble: {row['name'].split(', ')[-1]}"
        rows.append((name, len(row["members"]), f"{row['parameters'] / 1e6:.1f} M", *cells, ""))
    for name, best in published:
        rows.append((name, "", "", best, *[""] * len(keys)))
    head = ("model", "runs", "weights", *(TITLES.get(key, key) for key in keys), "minutes")
    return table(head, rows)


def _spread(runs: Runs, key: str) -> str:
    found = [run["test"]["scores"][key]["value"] for run in runs]
    if len(found) == 1:
        return score(runs[0], key)
    return f"{mean(found):.1f} ± {stdev(found):.1f}"


def _errors(run: dict[str, Any], folder: Path, name: str) -> list[str]:
    """Tell where answers are missed: by length, by unit, and what is taken for what."""
    groups = [group for group in run["test"]["by_length"] if group["count"] >= LEAST]
    key = next(iter(run["test"]["scores"]))
    values = {f"{group['name']} ({group['count']:,})": group[key] for group in groups}
    title = TITLES.get(key, key)
    drawing = curves.bars(values, x_label=title)
    picture.save(folder / f"{name}-lengths.svg", drawing)
    unit = run["test"].get("by_unit", [])[:12]
    edits = run["test"].get("edits", [])[:12]
    parts = [
        f"Where `{run['name'].split()[-1]}` (seed {run['seed']}) goes wrong, by the length of "
    ]
    parts[0] += "the source:"
    parts += ["", f"![{title} by length]({name}-lengths.svg)", ""]
    if unit and edits:
        rows = [
            (
                f"{one['name']}",
                f"{one['count']:,}",
                f"{next(v for k, v in one.items() if k not in ('name', 'count')):.1f}",
                f"{edit['right'] or NOTHING} → {edit['written'] or NOTHING}",
                f"{edit['count']:,}",
            )
            for one, edit in zip(unit, edits, strict=False)
        ]
        head = ("most missed", "occurs", "wrong %", "most frequent errors", "times")
        parts += [table(head, rows), ""]
    return parts


def _alignments(runs: Runs, folder: Path) -> list[str]:
    parts = [
        "## Soft and hard: where the models look",
        "",
        "Pronunciation is nearly monotonic. Soft attention (`toshniwal2016`) spreads over letters "
        "and may go back; hard monotonic attention (`raffel2017`) stands on one letter and only "
        "moves on. Each row is a phone that is written, each column a letter.",
        "",
    ]
    soft, hard = (
        next((run for run in runs if run["name"] == f"english {name}" and run["maps"]), None)
        for name in ("toshniwal2016", "raffel2017")
    )
    for run, name in ((soft, "soft"), (hard, "hard")):
        if run is not None:
            parts += _maps(run, folder, f"pronunciation-{name}", title=f"{name}: `{run['recipe']}`")
    return parts


def _maps(run: dict[str, Any], folder: Path, name: str, *, title: str = "") -> list[str]:
    parts = [f"### {title or 'Where it looks'}", ""]
    for number, one in enumerate(run["maps"], start=1):
        file = f"{name}-{number}.svg"
        drawing = heatmap.svg(np.array(one["weights"]), one["rows"], one["columns"])
        write_text(folder / file, str(drawing))
        parts += [f"![{one['source']} → {one['target']}]({file})", ""]
    return parts


def _samples(runs: Runs) -> str:
    shown = [run for run in runs if run["samples"]]
    rows = [
        (source, right, *(run["samples"][number][2] for run in shown))
        for number, (source, right, _) in enumerate(shown[0]["samples"])
    ]
    names = [run["name"].removeprefix("english ") for run in shown]
    head = ("given", "right", *names)
    return "\n".join(["## The first twenty of the test set, unpicked", "", table(head, rows)])
