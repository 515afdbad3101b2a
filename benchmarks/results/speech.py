"""Spoken digits: word errors by what a model learns by, by speaker, and in long recordings."""

from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from regard.core.files import read_json
from regard.plots import curves, spectrogram
from regard.plots import figure as picture

from .parts import Runs, changes, making, plain, score, shrink, spread, table

GOAL = 3
"""Per cent of words that may be wrong."""

CRITERIA = {"joint": "attention and CTC", "attention": "attention alone", "ctc": "CTC alone"}
TITLES = {"wer": "WER %", "cer": "CER %", "accuracy": "right %"}
WHOLE = "whole"
"""The last word of a run's name for which nothing was hidden."""

LICENCE = (
    "The spectrograms are of recordings of the Free Spoken Digit Dataset (Jackson et al., "
    "CC BY-SA 4.0), and under the same licence."
)


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its pictures."""
    runs: Runs = value["runs"]
    parts = [
        "# Strings of spoken digits",
        "",
        "Three to seven digits of one speaker, joined with pauses (Free Spoken Digit Dataset); the "
        f"{runs[0]['test']['num_examples']:,} test strings are of the official test recordings, "
        "which no training string has. `chan2016` listens with a pyramid of LSTMs and spells with "
        "attention, `speech-transformer` has convolutions and transformers. Both learn by the "
        "decoder's loss, by CTC, or by both, and are searched alike. SpecAugment hides parts of "
        "the sound while training. Mean ± deviation over seeds; of one run, half the 95 % "
        f"interval. {_changes(runs)}",
        "",
        _scores(runs),
        "",
        *_learning(runs, folder),
        *_speakers(runs, folder),
        *_misheard(runs),
        *_alignments(runs, folder),
        *_chunks([row for row in value["together"] if row["kind"] == "chunks"]),
        *_memory([row for row in value["together"] if row["kind"] == "memory"]),
        making(value),
        "",
    ]
    return "\n".join(parts)


def _changes(runs: Runs) -> str:
    """Say what is common to all; the rest is in the table."""
    return changes([run for run in runs if run["name"].endswith("joint")])


def _scores(runs: Runs) -> str:
    keys = list(runs[0]["test"]["scores"])
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        recipe, criterion, *whole = name.split()
        minutes = mean(run["training"]["seconds"] for run in own) / 60
        cells = [spread(own, key, digits=2) for key in keys]
        errors = mean(run["test"]["scores"]["wer"]["value"] for run in own)
        reached = "reached" if errors <= GOAL else "missed"
        hidden = "no" if whole else "yes"
        rows.append(
            (recipe, CRITERIA[criterion], hidden, len(own), *cells, reached, f"{minutes:.1f}")
        )
    titles = [TITLES.get(key, key) for key in keys]
    head = ("model", "learns by", "SpecAugment", "runs", *titles, f"WER ≤ {GOAL} %", "minutes")
    return table(head, rows)


def _learning(runs: Runs, folder: Path) -> list[str]:
    """Draw how the first run of each kind with SpecAugment learned."""
    first = {run["name"]: run for run in reversed(runs) if not run["name"].endswith(WHOLE)}
    series = {
        name: [(row["step"], row["wer"]) for row in run["journal"] if "wer" in row]
        for name, run in reversed(first.items())
    }
    drawing = curves.lines(series, x_label="step", y_label="validation WER %, greedy")
    picture.save(folder / "speech-learning.svg", drawing)
    return ["![validation word errors by step](speech-learning.svg)", ""]


def _speakers(runs: Runs, folder: Path) -> list[str]:
    """Set the errors of each speaker beside those of a model that never heard the speaker."""
    path = folder / "speakers.json"
    if not path.exists():
        return []
    value = read_json(path)
    recipe = value["runs"][0]["recipe"]
    known = [run for run in runs if run["name"] == f"{recipe} joint"][:1]
    rates = {group["name"]: group["wer"] for run in known for group in run["test"]["by_tag"]}
    held_out = {run["name"].split()[-1]: run for run in value["runs"]}
    rows = [
        (name, f"{rates[name]:.1f}" if name in rates else "–", score(run, "wer"))
        for name, run in held_out.items()
    ]
    found = [run["test"]["scores"]["wer"]["value"] for run in held_out.values()]
    told = [rates[name] for name in held_out if name in rates]
    rows.append(("*mean*", f"{mean(told):.1f}" if told else "–", f"{mean(found):.1f}"))
    return [
        "## A speaker never heard",
        "",
        f"WER % of `{recipe}` (attention and CTC, first seed) by speaker: one model that learned "
        "from all six, and for each speaker another that learned from the other five and is tested "
        "on all recordings of this one.",
        "",
        table(("speaker", "known", "never heard"), rows),
        "",
        f"`{value['command']}`; every number: [`speakers.json`](speakers.json)",
        "",
    ]


def _misheard(runs: Runs) -> list[str]:
    parts = ["## What is misheard", ""]
    for run in runs:
        edits = run["test"].get("edits", [])[:5]
        if run["name"].endswith("joint") and run["seed"] == 1 and edits:
            told = ", ".join(
                f"{one['right'] or '∅'} → {one['written'] or '∅'} ({one['count']})" for one in edits
            )
            parts += [f"`{run['recipe']}`, attention and CTC, seed 1: {told}. First in the test:"]
            rows = [tuple(plain(text) for text in row) for row in run["misheard"]]
            parts += ["", table(("speaker", "said", "heard"), rows), ""]
    return parts if len(parts) > 2 else []


def _alignments(runs: Runs, folder: Path) -> list[str]:
    """Draw when words are heard over the spectrogram: by attention, and by CTC."""
    parts = [
        "## When each word is heard",
        "",
        "The first strings of the test set, unpicked. Above, frequencies over time and the stretch "
        "in which a word is heard; below, the weights: those of the decoder's attention, and the "
        f"single states in which CTC says a word. {LICENCE}",
        "",
    ]
    for run in runs:
        for number, one in enumerate(run["maps"], start=1):
            heard = spectrogram.AudioAlignment(
                frames=np.array(one["frames"]),
                seconds=one["seconds"],
                words=tuple(one["words"]),
                weights={name: np.array(weights) for name, weights in one["roads"].items()},
                step=one["step"],
            )
            file = f"speech-{run['recipe']}-{number}.png"
            title = f"{run['recipe']}: {' '.join(one['words'])}"
            spectrogram.save(folder / file, heard, title=title)
            shrink(folder / file)
            parts += [f"![{title}; said was: {one['right']}]({file})", ""]
    return parts


def _chunks(rows: Runs) -> list[str]:
    """Tell the errors in one long recording by the length of its parts."""
    if not rows:
        return []
    columns = list(dict.fromkeys((row["pause"], row["chunk"]) for row in rows))
    found = {(r["recipe"], r["criterion"], r["pause"], r["chunk"]): r for r in rows}
    models = dict.fromkeys((row["recipe"], row["criterion"]) for row in rows)
    cells = [
        (f"{model[0]}, {CRITERIA[model[1]]}", *(_heard(found[*model, *key]) for key in columns))
        for model in models
    ]
    head = ("model", *(f"pauses {pause:g} s, parts ≤ {chunk} s" for pause, chunk in columns))
    return [
        "## A long recording",
        "",
        f"Test strings one after the other, {rows[0]['words']:,} words, with short and with long "
        "pauses between them; heard in parts, cut where it is quiet (`regard predict RUN long.wav "
        "--chunk 5`). WER %, in brackets words added and words missing. Training strings have "
        "seven words at most, so that long parts hold more words than a model has ever written.",
        "",
        table(head, cells),
        "",
    ]


def _heard(row: dict[str, Any]) -> str:
    return f"{row['wer']:.1f} (+{row['added']} −{row['missing']})"


def _memory(rows: Runs) -> list[str]:
    if not rows:
        return []
    cells = [(row["minutes"], f"{row['mib']:,}", f"{row['seconds']:.0f}") for row in rows]
    return [
        "The most memory that the whole command has at a time on a processor, torch and all, by "
        f"how long the recording is: {rows[-1]['mib'] / rows[0]['mib']:.2f} times as much for "
        f"{rows[-1]['minutes'] / rows[0]['minutes']:g} times the length.",
        "",
        table(("minutes of sound", "most memory, MiB", "seconds it took"), cells),
        "",
    ]
