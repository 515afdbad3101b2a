"""Score functions: formulas by hand, quality on one task, and time."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention.scores import SCORES
from regard.core.errors import ConfigError
from regard.core.files import read_json_lines
from regard.data.datasets.catalog import find_data
from regard.data.splits import Splits
from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.runs.folder import TRAINING_LOG
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

QUERY, KEY = (0.6, 0.3, 0.8), (0.5, 0.1, 0.9)
"""Query and key of the formulas: cat and dog of the lectures."""

RECIPE = "bahdanau2015-laptop"
DATA = "reverse:3000,3-10"
SETTINGS = (
    # A bidirectional encoder of width 32 has states as wide as the decoder's, 64.
    *("model.encoder.dim=32", "model.decoder.dim=64", "model.decoder.attention_dim=64"),
    *("model.encoder.embedding_dim=32", "model.decoder.embedding_dim=32"),
    *("model.encoder.dropout=0", "model.decoder.dropout=0", "model.decoder.max_source=16"),
    *("data.batch.max_tokens=500", "train.max_epochs=0", "train.max_steps=300"),
    *("train.log_every=20", "train.validate_every=300", "search.beams=1"),
    "train.schedule.warmup_steps=50",
)
"""Overrides of the recipe, the same for all scores."""

TIMED_DIM, TIMED_KEYS, TIMED_BATCH, NUM_REPEATS = 256, 50, 32, 15
"""Width, source length, sentences and repetitions of the timing."""

EXACT, AER, PARAMETERS = "exact targets %", "alignment error rate", "parameters of the score"
MICROSECONDS = "microseconds per step"
BY_CONTENT = ("dot", "scaled_dot", "general", "additive", "concat")
"""Scores of the lectures, which compare query and key."""


def score_functions(seed: int, folder: Path) -> Findings:
    """Evaluate the formulas, train one decoder per score and measure the time of a step.

    Args:
        seed: Seed of the models; the data are always the same.
        folder: Folder of the runs.
    """
    formulas = compare_formulas()
    times = measure_times()
    splits = find_data(DATA)
    assert isinstance(splits, Splits)
    numbers: dict[str, dict[str, float]] = {}
    losses: dict[str, Points] = {}
    for name in SCORES:
        settings = (*SETTINGS, f"model.decoder.score={name}")
        request = Request(data=(DATA,), recipe=RECIPE, settings=settings, out=folder / name)
        task = train_run(request, seed)
        results = task.evaluate(splits.test).results
        parameters = task.model.decoder.attention.score.parameters()
        numbers[name] = {
            EXACT: results["accuracy"].value,
            AER: results["aer"].value,
            PARAMETERS: sum(parameter.numel() for parameter in parameters),
            MICROSECONDS: times[name],
        }
        losses[name] = _losses(folder / f"{name}-{seed}")
    return Findings(
        tables={
            "One query and one key": formulas,
            "The same decoder with each score": numbers,
        },
        claims=_claims(formulas, numbers),
        plots={"score-functions": _plot(losses)},
    )


def by_hand(name: str, score: Any) -> float:
    """Return the score of `QUERY` and `KEY` by the formula, with plain numbers."""
    products = [q * k for q, k in zip(QUERY, KEY, strict=True)]
    return FORMULAS[name](score, sum(products))


def _general(score: Any, _dot: float) -> float:
    mapped = _multiply(score.key_map.weight, KEY)
    return sum(q * k for q, k in zip(QUERY, mapped, strict=True))


def _additive(score: Any, _dot: float) -> float:
    parts = zip(
        _multiply(score.query_map.weight, QUERY),
        _multiply(score.key_map.weight, KEY),
        score.key_map.bias.tolist(),
        strict=True,
    )
    hidden = [math.tanh(q + k + bias) for q, k, bias in parts]
    return float(sum(v * h for v, h in zip(score.weight.weight[0].tolist(), hidden, strict=True)))


def _concat(score: Any, _dot: float) -> float:
    hidden = map(math.tanh, _multiply(score.joint_map.weight, (*QUERY, *KEY)))
    return float(sum(v * h for v, h in zip(score.weight.weight[0].tolist(), hidden, strict=True)))


def _distance(score: Any, _dot: float) -> float:
    width = float(score.sharpness)
    return -0.5 * sum((width * (q - k)) ** 2 for q, k in zip(QUERY, KEY, strict=True))


def _multiply(matrix: Tensor, vector: Sequence[float]) -> list[float]:
    return [sum(w * x for w, x in zip(row, vector, strict=True)) for row in matrix.tolist()]


FORMULAS: dict[str, Callable[[Any, float], float]] = {
    "dot": lambda _, dot: dot,
    "scaled_dot": lambda _, dot: dot / math.sqrt(len(QUERY)),
    "general": _general,
    "additive": _additive,
    "concat": _concat,
    "location": lambda score, _: _multiply(score.position_map.weight, QUERY)[0],
    "cosine": lambda _, dot: dot / (math.hypot(*QUERY) * math.hypot(*KEY)),
    "gaussian": _distance,
}
"""Score of `QUERY` and `KEY` by the parameters of a score and the dot product."""

SHOWN_FORMULAS = {
    "dot": "q · k",
    "scaled_dot": "q · k / √d",
    "general": "q · W k",
    "additive": "v · tanh(W q + U k)",
    "concat": "v · tanh(W [q; k])",
    "location": "(W q)_j",
    "cosine": "q · k / (|q| |k|)",
    "gaussian": "-|w (q - k)|² / 2",
}


def compare_formulas() -> dict[str, dict[str, float | str]]:
    """Return each score of one query and one key, by hand and by its module.

    The parameters are fixed numbers: 0.1, 0.2, 0.3, … in the order of rows and columns.
    """
    rows: dict[str, dict[str, float | str]] = {}
    for name, kind in SCORES.items():
        score = kind(3, 3, dim=2, max_source=1).requires_grad_(False)
        for parameter in score.parameters():
            parameter.copy_(torch.arange(1.0, parameter.numel() + 1).view_as(parameter) / 10)
        prepared = score.prepare(torch.tensor([KEY]))
        ours = float(score(torch.tensor([QUERY]), prepared))
        hand = by_hand(name, score)
        rows[name] = {"formula": SHOWN_FORMULAS[name], "by hand": hand, "module": ours}
    return rows


def measure_times() -> dict[str, float]:
    """Return the time of scoring one query per sentence, keys prepared, forward and backward.

    The best of several rounds over all scores, so that other load affects none of them more.
    """
    queries = torch.zeros(TIMED_BATCH, 1, TIMED_DIM, requires_grad=True)
    keys = torch.zeros(TIMED_BATCH, TIMED_KEYS, TIMED_DIM)
    scores = {
        name: kind(TIMED_DIM, TIMED_DIM, max_source=TIMED_KEYS) for name, kind in SCORES.items()
    }
    prepared = {name: score.prepare(keys).detach() for name, score in scores.items()}
    best = dict.fromkeys(SCORES, math.inf)
    for _ in range(NUM_REPEATS):
        for name, score in scores.items():
            started = time.process_time()
            score(queries, prepared[name]).sum().backward()  # type: ignore[no-untyped-call]
            best[name] = min(best[name], 1e6 * (time.process_time() - started))
    return best


def accepts_widths(name: str, query_dim: int, key_dim: int) -> bool:
    """Return whether a score can be built for queries and keys of these widths."""
    try:
        SCORES[name](query_dim, key_dim, max_source=1)
    except ConfigError:
        return False
    return True


def _losses(run: Path) -> Points:
    rows = read_json_lines(run / TRAINING_LOG)
    return [(row["step"], row["nll"]) for row in rows if row["kind"] == "train"]


def _claims(
    formulas: dict[str, dict[str, float | str]], numbers: dict[str, dict[str, float]]
) -> tuple[Claim, ...]:
    error = max(abs(float(row["by hand"]) - float(row["module"])) for row in formulas.values())
    exact = {name: row[EXACT] for name, row in numbers.items()}
    additive, scaled = (numbers[name][MICROSECONDS] for name in ("additive", "scaled_dot"))
    equal_only = [name for name in SCORES if not accepts_widths(name, 64, 48)]
    unscaled = [name for name in BY_CONTENT if name != "scaled_dot"]
    worst = min(unscaled, key=lambda name: exact[name])
    return (
        Claim(
            "Each module computes the formula of its score.",
            f"largest difference from the numbers by hand {error:.1g}",
            error < 1e-5,
        ),
        Claim(
            "The dot, bilinear, additive and MLP scores all learn to attend.",
            ", ".join(f"{name} {exact[name]:.1f} %" for name in unscaled) + " exact targets",
            exact[worst] >= 80,
        ),
        Claim(
            "A score that compares query and key is better than one of the query alone.",
            f"at least {exact[worst]:.1f} % ({worst}), {exact['location']:.1f} % with the "
            "location score",
            exact[worst] > exact["location"],
        ),
        Claim(
            "Scores of small range learn slowly: recurrent states are below 1, so dividing by √d "
            "or by the lengths makes the weights nearly uniform.",
            f"dot {exact['dot']:.1f} %, scaled dot {exact['scaled_dot']:.1f} %, cosine "
            f"{exact['cosine']:.1f} %",
            exact["dot"] > max(exact["scaled_dot"], exact["cosine"]),
        ),
        Claim(
            "The scaled dot product is cheaper than the additive score.",
            f"{scaled:.0f} and {additive:.0f} microseconds for {TIMED_BATCH} sentences of "
            f"{TIMED_KEYS} keys of width {TIMED_DIM}: {additive / scaled:.1f} times as long",
            additive > 1.5 * scaled,
        ),
        Claim(
            "Dot products need queries and keys of equal width; bilinear and additive do not.",
            f"equal width only: {', '.join(equal_only)}",
            {"dot", "scaled_dot"} <= set(equal_only)
            and not {"general", "additive", "concat"} & set(equal_only),
        ),
    )


def _plot(losses: dict[str, Points]) -> Plot:
    first = {name: losses[name] for name in BY_CONTENT}
    others = {name: points for name, points in losses.items() if name not in BY_CONTENT}
    figure = panels(
        {"scores of the lectures": first, "other scores": others},
        x_label="training step",
        y_label="training loss per token",
        columns=2,
        y_scale="log",
    )
    caption = "Training loss of the same decoder with each score function."
    return Plot(figure, caption)
