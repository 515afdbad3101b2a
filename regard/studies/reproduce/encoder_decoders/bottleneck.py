"""One vector for the whole source against one context per step, by source length."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from regard.data.example import Example
from regard.plots.curves import lines
from regard.studies.reproduce.encoder_decoders.small_models import (
    MIN_LENGTH,
    Scores,
    measure_by_length,
    rnn,
    sample_digits,
    tables_by_length,
    train_models,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot

WIDTHS = (32, 64)
"""Widths of the fixed context c."""

ATTENTION = "attention, states of 64"


def name_fixed(dim: int) -> str:
    """Return the name of the model with a fixed context of a width."""
    return f"one vector c of {dim}"


LECTURE = ("model.decoder.start=copy", "model.decoder.readout=linear")
"""Overrides of all models: s_0 = h_T, and an output that is linear in the state."""

MODELS: dict[str, tuple[str, ...]] = {
    **{name_fixed(dim): (*rnn(dim), *LECTURE) for dim in WIDTHS},
    ATTENTION: (
        *rnn(64),
        "model.encoder.is_bidirectional=true",
        "model.encoder.dim=32",
        "model.decoder.kind=bahdanau",
        "model.decoder.attention_dim=64",
        *LECTURE,
    ),
}
"""Overrides that make each model; with attention, the encoder is bidirectional, of equal width."""

NUM_TRAIN, MAX_LENGTH, NUM_TESTS = 10_000, 12, 60
SHORT, LONG = range(MIN_LENGTH, 6), range(11, MAX_LENGTH + 1)
"""Source lengths that count as short and as long."""


def bottleneck(seed: int, folder: Path) -> Findings:
    """Train models with a fixed context and with attention, and compare them by source length.

    Args:
        seed: Seed of the models; the data are always the same.
        folder: Folder of the runs.
    """
    data = sample_digits(NUM_TRAIN, max_length=MAX_LENGTH, num_tests=NUM_TESTS)
    tasks = train_models(MODELS, data, seed=seed, folder=folder)
    results = {name: measure_by_length(task, data.tests) for name, task in tasks.items()}
    num_attended = count_attended(tasks[ATTENTION], data.tests[MAX_LENGTH])
    return Findings(
        tables={
            "Models": {
                name: {
                    "parameters": tasks[name].num_parameters,
                    **{
                        f"BLEU, {lengths[0]}–{lengths[-1]} digits": scores.mean_bleu(lengths)
                        for lengths in (SHORT, LONG)
                    },
                }
                for name, scores in results.items()
            },
            **tables_by_length(results),
        },
        claims=_claims(results, num_attended),
        plots={"bottleneck": _plot(results)},
    )


def count_attended(task: Any, examples: Sequence[Example]) -> float:
    """Return the mean number of source positions that some target token attends to most."""
    maps = task.attend(examples)
    return mean(len(set(one.weights[0, 0].argmax(-1).tolist())) for one in maps)


def _claims(results: Mapping[str, Scores], num_attended: float) -> tuple[Claim, ...]:
    short, long = (
        {name: scores.mean_bleu(lengths) for name, scores in results.items()}
        for lengths in (SHORT, LONG)
    )
    narrow, wide = map(name_fixed, WIDTHS)
    fall, kept = (short[name] - long[name] for name in (wide, ATTENTION))
    return (
        Claim(
            "With one vector for the whole source, long sources are worse.",
            f"c of {WIDTHS[1]}: {short[wide]:.0f} BLEU for {SHORT[0]} to {SHORT[-1]} digits, "
            f"{long[wide]:.0f} for {LONG[0]} to {LONG[-1]}.",
            fall > 20,
        ),
        Claim(
            "The vector is a harsh compression: a wider one holds more.",
            f"{LONG[0]} to {LONG[-1]} digits: {long[narrow]:.0f} BLEU with {WIDTHS[0]} numbers, "
            f"{long[wide]:.0f} with {WIDTHS[1]}.",
            long[narrow] < long[wide],
        ),
        Claim(
            "A context per step cures it: with attention, the score falls less with length.",
            f"From {short[ATTENTION]:.0f} to {long[ATTENTION]:.0f} BLEU, by {kept:.0f} instead of "
            f"{fall:.0f}.",
            kept < fall / 2,
        ),
        Claim(
            "With attention, long sources are better than with a fixed context of the same width.",
            f"{long[ATTENTION]:.0f} BLEU with attention over states of 64, {long[wide]:.0f} with "
            f"one vector of {WIDTHS[1]}.",
            long[ATTENTION] > long[wide],
        ),
        Claim(
            "The steps need different information.",
            f"On average {num_attended:.1f} of the {MAX_LENGTH} digits and the end token are the "
            "most attended position of some target digit.",
            num_attended > MAX_LENGTH / 2,
        ),
    )


def _plot(results: Mapping[str, Scores]) -> Plot:
    figure = lines(
        {
            name: [(float(length), value) for length, value in scores.bleu.items()]
            for name, scores in results.items()
        },
        x_label="digits of the source",
        y_label="BLEU",
    )
    return Plot(
        figure,
        f"BLEU by source length, {NUM_TESTS} test sequences of each. All models had the same "
        "number of updates.",
    )
