"""Autoencoders of sentences: what comes back from narrow codes, and what lies between two."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import LEAST, Runs, changes, making, noted, plain, score, table

NUM_SAMPLES = 8
"""Test sentences that are shown with what every widest model makes of them."""

NUM_MADE_UP = 12
"""Sentences that are shown of each model that makes some up."""


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its pictures."""
    runs: Runs = value["runs"]
    widest = max(run["width"] for run in runs)
    most = [run for run in runs if run["width"] == widest]
    parts = [
        "# Sentences through a bottleneck",
        "",
        "English sentences of Tatoeba are read, become a code of so many numbers, and are written "
        "anew from it alone. `dai2015-autoencoder` is the plain sequence autoencoder, `hill2016` "
        "learns from sentences whose words were dropped and swapped, `bowman2016` draws its codes "
        "from a distribution that is kept near a normal one. No test sentence is in the training "
        f"data. {changes(runs)}",
        "",
        *noted(value),
        _scores(runs),
        "",
        "Exact: the sentence comes back to the letter. Tokens: the share that is the likeliest "
        "after the right ones before it. ± half the 95 % interval.",
        "",
        *_draw_widths(runs, folder),
        *_draw_lengths(most, folder),
        *_restoring(runs),
        *_bounds(runs),
        *_made_up(runs),
        *_walks(runs),
        *_samples(most),
        making(value),
        "",
    ]
    return "\n".join(parts)


def _scores(runs: Runs) -> str:
    rows = [
        (
            _model(run),
            run["width"],
            f"{run['parameters'] / 1e6:.1f} M",
            score(run, "accuracy"),
            score(run, "bleu"),
            score(run, "token_accuracy"),
            f"{run['training']['seconds'] / 60:.1f}",
        )
        for run in runs
    ]
    head = ("model", "numbers of a code", "weights", "exact %", "BLEU", "tokens %", "minutes")
    return table(head, rows)


def _draw_widths(runs: Runs, folder: Path) -> list[str]:
    series: dict[str, list[tuple[float, float]]] = {}
    for run in sorted(runs, key=lambda run: int(run["width"])):
        point = (run["width"], run["test"]["scores"]["accuracy"]["value"])
        series.setdefault(_model(run), []).append(point)
    drawing = curves.scaling(series, x_label="numbers of a code", y_label="exact %")
    picture.save(folder / "sentences-widths.svg", drawing)
    return ["![exact sentences by width of the code](sentences-widths.svg)", ""]


def _draw_lengths(runs: Runs, folder: Path) -> list[str]:
    series = {
        _model(run): [
            (_middle(group["name"]), group["accuracy"])
            for group in run["test"]["by_length"]
            if group["count"] >= LEAST
        ]
        for run in runs
    }
    drawing = curves.lines(series, x_label="words", y_label="exact %")
    picture.save(folder / "sentences-lengths.svg", drawing)
    width = runs[0]["width"]
    return [
        f"By length, with {width} numbers:",
        "",
        "![exact sentences by length](sentences-lengths.svg)",
        "",
    ]


def _middle(name: str) -> float:
    """Return the middle of a group of lengths, such as `≤ 5`, `6–10` or `> 50`."""
    low, _, high = name.replace("≤ ", "0–").replace("> ", "").partition("–")
    return (float(low) + float(high or low)) / 2


def _restoring(runs: Runs) -> list[str]:
    own = [run for run in runs if "restored_bleu" in run["test"]["scores"]]
    if not own:
        return []
    rows = [
        (_model(run), run["width"], score(run, "corrupted_bleu"), score(run, "restored_bleu"))
        for run in own
    ]
    noise = own[0]["settings"]["data"]["noise"]
    return [
        "## Spoilt sentences",
        "",
        f"Each token of a test sentence is dropped with probability {noise['drop']:g}, each pair "
        f"of neighbours swapped with {noise['swap']:g}; always in the same way.",
        "",
        table(("model", "numbers of a code", "BLEU as they are", "BLEU restored"), rows),
        "",
    ]


def _bounds(runs: Runs) -> list[str]:
    rows = []
    for run in runs:
        found = run["test"]["scores"]
        if "elbo" not in found:
            continue
        detail = found["elbo"]["detail"]
        active = f"{found['active_units']['value']:.0f} of {run['width']}"
        rows.append(
            (
                _model(run),
                run["width"],
                score(run, "elbo"),
                f"{detail['reconstruction']:.1f}",
                score(run, "kl"),
                f"{detail['per_token']:.2f}",
                active,
            )
        )
    if not rows:
        return []
    head = ("model", "numbers", "ELBO", "reconstruction", "KL", "ELBO a token", "in use")
    return [
        "## The bound",
        "",
        "In nats a sentence, with one code drawn for each. A number of a code is in use where its "
        "mean varies over sentences by more than 0.01 (Burda et al. 2016).",
        "",
        table(head, rows),
        "",
    ]


def _made_up(runs: Runs) -> list[str]:
    own = [run for run in runs if run["made_up"]]
    if not own:
        return []
    parts = ["## Made up", "", "Codes drawn from the normal distribution, unpicked.", ""]
    for run in own:
        parts += [f"With {run['width']} numbers:", ""]
        parts += [f"- {plain(sentence)}" for sentence in run["made_up"][:NUM_MADE_UP]]
        parts.append("")
    return parts


def _walks(runs: Runs) -> list[str]:
    """Show the ways between two test sentences through the widest codes of each kind."""
    parts = ["## Between two sentences", "", "A straight line from code to code.", ""]
    for name in dict.fromkeys(map(_model, runs)):
        run = max((run for run in runs if _model(run) == name), key=lambda run: int(run["width"]))
        parts += [f"### {name}, {run['width']} numbers", ""]
        for first, *between, last in run["walks"]:
            parts += [f"*{plain(first)}* … *{plain(last)}*", ""]
            parts += [*(f"- {plain(one)}" for one in _once(between)), ""]
    return parts


def _once(sentences: Sequence[str]) -> list[str]:
    """Leave out what is the same as the sentence before."""
    pairs = zip(sentences, [None, *sentences], strict=False)
    return [sentence for sentence, before in pairs if sentence != before]


def _samples(runs: Runs) -> list[str]:
    parts = [f"## The first {NUM_SAMPLES} test sentences, unpicked", ""]
    for number, (source, _, _) in enumerate(runs[0]["samples"][:NUM_SAMPLES]):
        parts.append(f"{number + 1}. {plain(source)}")
        parts += [f"   - {_model(run)}: {plain(run['samples'][number][2])}" for run in runs]
    return [*parts, ""]


def _model(run: dict[str, Any]) -> str:
    """Return a run's name without the width of its code."""
    name: str = run["name"]
    return name.rpartition(" ")[0]
