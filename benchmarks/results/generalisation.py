"""Trained on short sources, tested on longer ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from regard.plots import curves
from regard.plots import figure as picture

from .parts import LEAST, Runs, making, table

HELD = 90.0
"""A model holds a length if at least so many percent of its answers are right."""

EXPERIMENTS = {
    "rungs": (
        "Every rung of the ladder",
        "From a fixed context to one language model, each in its recipe for a laptop.",
    ),
    "positions": (
        "Every kind of position",
        "The same transformer (`vaswani2017-tiny`; `sinusoidal` is the rung `vaswani2017`), told "
        "in different ways where a token stands, on both sides. Learned vectors of places beyond "
        "the trained ones are as random as they began.",
    ),
}
"""Titles of the two halves, and what is compared."""

PROBLEMS = {
    "reverse": "Letters, read backwards.",
    "sort": "Digits in ascending order.",
    "add": "The sum of two numbers, digit by digit.",
    "numbers": "Digits as words: `1 2 3` → `one hundred and twenty-three`. Up to six digits need "
    "no word that four do not, but more than one before `thousand`; `million` would be a new word.",
    "dates": "Dates as people write them, letter by letter, to `1999-12-31`. Here not the length "
    "grows but the year.",
}
"""What is asked."""

Curve = list[tuple[int, float]]
"""Lengths in ascending order, and what share of the answers is right, in percent."""


def write(value: dict[str, Any], folder: Path) -> str:
    """Write the page and draw its pictures."""
    runs: Runs = value["runs"]
    seconds = [run["training"]["seconds"] for run in runs]
    steps = sorted({run["training"]["steps"] for run in runs})
    parts = [
        "# Longer than in training",
        "",
        "Problems whose every answer is known: trained on short sources, tested on longer ones. "
        "An answer is right if all of it is. Every run learns for "
        f"{' or '.join(f'{number:,}' for number in steps)} steps of 64 pairs "
        f"({min(seconds):.0f}–{max(seconds):.0f} s) and answers greedily; no source that is tested "
        "was trained on. So short a training is part of the result: who is still wrong on trained "
        "lengths has not learned the problem, and says little about longer ones.",
        "",
        _problems(value["problems"]),
        "",
    ]
    for name in EXPERIMENTS:
        chosen = [run for run in runs if run["experiment"] == name]
        if chosen:
            parts += _experiment(name, chosen, value["problems"], folder=folder)
    return "\n".join([*parts, making(value), ""])


def _problems(problems: Mapping[str, dict[str, Any]]) -> str:
    lines = []
    for name, problem in problems.items():
        (low, high), tested, unit = problem["trained"], problem["tested"], problem["unit"]
        lines.append(
            f"- **{name}**: {PROBLEMS[name]} Trained on {low}–{high}, tested on {tested[0]}–"
            f"{tested[-1]} ({unit})."
        )
    return "\n".join(lines)


def _experiment(
    name: str, runs: Runs, problems: Mapping[str, dict[str, Any]], *, folder: Path
) -> list[str]:
    title, what = EXPERIMENTS[name]
    found = {
        problem: {
            model: curve
            for model in dict.fromkeys(run["model"] for run in runs)
            if (curve := mean_curve(runs, problem, model))
        }
        for problem in problems
    }
    found = {problem: models for problem, models in found.items() if models}
    parts = [f"## {title}", "", what, "", _accuracies(found, problems), ""]
    parts += [
        "Before the stroke the mean over trained lengths, after it over longer ones, in percent.",
        "",
        f"How far at least {HELD:.0f} % are right at every tested length, and whose answers:",
        "",
        _reaches(found, problems),
        "",
        *_shorter(found, problems),
    ]
    for problem, models in found.items():
        file = f"generalisation-{name}-{problem}.svg"
        drawing = curves.lines(
            models,
            x_label=f"{problem}: {problems[problem]['unit']}",
            y_label="right answers, %",
            shaded=("trained", *problems[problem]["trained"]),
        )
        # One scale for all problems; a little more, so that no mark is cut.
        drawing.axes[0].set_ylim(-3, 103)
        picture.save(folder / file, drawing)
        parts += [f"![{problem}: right answers by length]({file})", ""]
    return parts


def mean_curve(runs: Runs, problem: str, model: str) -> Curve:
    """Return the mean over seeds of how right a model is, without lengths of few examples."""
    own = [run["curve"] for run in runs if run["problem"] == problem and run["model"] == model]
    return [
        (points[0]["length"], sum(point["accuracy"] for point in points) / len(points))
        for points in zip(*own, strict=True)
        if points[0]["count"] >= LEAST
    ]


def mean_within(curve: Curve, low: float, high: float) -> float:
    """Return how right a model is on average at the lengths from `low` to `high`."""
    values = [accuracy for length, accuracy in curve if low <= length <= high]
    return sum(values) / len(values)


def held_up_to(curve: Curve, trained: Sequence[int]) -> int:
    """Return the greatest length up to which a model holds all from the trained ones on, or 0."""
    last = 0
    for length, accuracy in curve:
        if length < trained[0]:
            continue
        if accuracy < HELD:
            break
        last = length
    return last


def _accuracies(
    found: Mapping[str, Mapping[str, Curve]], problems: Mapping[str, dict[str, Any]]
) -> str:
    models = dict.fromkeys(model for curves_of in found.values() for model in curves_of)
    rows = []
    for model in models:
        means = [
            _means(curves_of[model], problems[name]) if model in curves_of else None
            for name, curves_of in found.items()
        ]
        rows.append((model, *map(_cell, means), _cell(_mean_of(means))))
    return table(("", *found, "mean"), rows)


Means = tuple[float, float]
"""How right a model is on average at the lengths that were trained, and at longer ones."""


def _cell(means: Means | None) -> str:
    return "–" if means is None else f"{means[0]:.1f} / {means[1]:.1f}"


def _mean_of(means: Sequence[Means | None]) -> Means | None:
    """Return the means over all problems, if a model was tried on all."""
    known = [pair for pair in means if pair is not None]
    if len(known) < len(means):
        return None
    return mean(pair[0] for pair in known), mean(pair[1] for pair in known)


def _means(curve: Curve, problem: Mapping[str, Any]) -> Means:
    low, high = problem["trained"]
    return mean_within(curve, low, high), mean_within(curve, high + 1, float("inf"))


def _reaches(
    found: Mapping[str, Mapping[str, Curve]], problems: Mapping[str, dict[str, Any]]
) -> str:
    """Say for each problem how far the best hold, and which they are."""
    rows = []
    for name, models in found.items():
        (low, high), tested = problems[name]["trained"], problems[name]["tested"]
        last = {model: held_up_to(curve, (low, high)) for model, curve in models.items()}
        best = max(last.values())
        holding = [model for model in last if best and last[model] == best]
        who = "all" if len(holding) == len(models) > 1 else ", ".join(holding)
        rows.append((name, f"{low}–{high}", tested[-1], best or "–", who or "none"))
    return table(("problem", "trained", "tested up to", "held up to", "by"), rows)


def _shorter(
    found: Mapping[str, Mapping[str, Curve]], problems: Mapping[str, dict[str, Any]]
) -> list[str]:
    """Say how right each is on sources shorter than any trained one, where there are such."""
    told = []
    for name, models in found.items():
        low, unit = problems[name]["trained"][0], problems[name]["unit"]
        short = {model: curve[0] for model, curve in models.items() if curve[0][0] < low}
        if short:
            length = next(iter(short.values()))[0]
            ranked = sorted(short, key=lambda model: -short[model][1])
            shares = ", ".join(f"{model} {short[model][1]:.0f} %" for model in ranked)
            told.append(f"{name} of {length} {unit}: {shares}")
    return [f"Shorter than in training, {'; '.join(told)}.", ""] if told else []
