"""Trained on short sources, tested on longer ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.visual import curves, picture

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
        "The same transformer, told in different ways where a token stands, on both sides. "
        "Learned vectors of places beyond the trained ones are as random as they began.",
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
        f"An answer is right if all of it is. Every run learns for {' or '.join(map(str, steps))} "
        f"steps of 64 pairs ({min(seconds):.0f}–{max(seconds):.0f} s) and answers greedily; no "
        "source that is tested was trained on.",
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
        _verdict(found, problems),
        "",
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
    rows = [
        (model, *(_cell(curves_of.get(model), problems[name]) for name, curves_of in found.items()))
        for model in models
    ]
    return table(("", *found), rows)


def _cell(curve: Curve | None, problem: Mapping[str, Any]) -> str:
    if curve is None:
        return "–"
    trained, beyond = _means(curve, problem)
    return f"{trained:.1f} / {beyond:.1f}"


def _means(curve: Curve, problem: Mapping[str, Any]) -> tuple[float, float]:
    low, high = problem["trained"]
    return mean_within(curve, low, high), mean_within(curve, high + 1, float("inf"))


def _verdict(
    found: Mapping[str, Mapping[str, Curve]], problems: Mapping[str, dict[str, Any]]
) -> str:
    """Say who holds longest, and who is best beyond the trained lengths over all problems."""
    held = "; ".join(_longest(name, models, problems[name]) for name, models in found.items())
    complete = [
        model
        for model in next(iter(found.values()))
        if all(model in models for models in found.values())
    ]
    beyond = {
        model: sum(_means(models[model], problems[name])[1] for name, models in found.items())
        / len(found)
        for model in complete
    }
    ranked = sorted(beyond, key=lambda model: -beyond[model])
    means = ", ".join(f"{model} {beyond[model]:.1f} %" for model in ranked)
    return (
        f"Who holds longest, with at least {HELD:.0f} % right at every tested length up to there: "
        f"{held}. Right at longer lengths, mean of the problems: {means}."
    )


def _longest(name: str, models: Mapping[str, Curve], problem: Mapping[str, Any]) -> str:
    last = {model: held_up_to(curve, problem["trained"]) for model, curve in models.items()}
    most = max(last.values())
    if not most:
        return f"{name}: none"
    best = ", ".join(model for model in last if last[model] == most)
    reach = "all that was tested" if most == problem["tested"][-1] else f"up to {most}"
    return f"{name}: {best} ({reach})"
