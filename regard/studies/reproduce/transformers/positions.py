"""Position encodings as a controlled comparison: one task that needs order, one model, one seed."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.datasets.synthetic.toys import generate_by_length, reverse
from regard.data.example import Example
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.transformers.permutation import KINDS
from regard.studies.reproduce.transformers.training import (
    SMALL_TRANSFORMER,
    Training,
    accuracy,
    read_recipe,
    train_small,
)

NUM_TRAIN, NUM_TEST = 6_000, 50
"""Number of training pairs, and of test pairs of each length."""

TRAINED = (3, 10)
"""Shortest and longest source of the training set, in letters."""

LENGTHS = (2, 4, 6, 8, 10, 11, 12, 14, 16)
SETTINGS = ("train.max_steps=600",)
KNOWN, LONGER = "exact, 4–10 letters %", "exact, 11–16 letters %"
KNOWN_TOKENS, LONGER_TOKENS = "letters, 4–10 %", "letters, 11–16 %"


def positions(seed: int, _folder: Path | None = None) -> Findings:
    """Train the same Transformer with each position encoding to reverse letters."""
    pairs = reverse(NUM_TRAIN, seed=0, limits=TRAINED)
    seen = {pair.source for pair in pairs}
    tests = {
        length: [pair for pair in test if pair.source not in seen]
        for length, test in generate_by_length(
            "reverse", lengths=LENGTHS, num=NUM_TEST, seed=1
        ).items()
    }
    trained = {name: train_with(kind, pairs, seed) for name, kind in KINDS.items()}
    exact = {name: by_length(training, tests) for name, training in trained.items()}
    letters = {
        name: {length: word_accuracy(training, test) for length, test in tests.items()}
        for name, training in trained.items()
    }
    numbers = {
        name: {
            KNOWN: _mean(exact[name], is_longer=False),
            LONGER: _mean(exact[name], is_longer=True),
            KNOWN_TOKENS: _mean(letters[name], is_longer=False),
            LONGER_TOKENS: _mean(letters[name], is_longer=True),
            "training loss": training.final_loss,
            "CPU seconds": training.seconds,
        }
        for name, training in trained.items()
    }
    return Findings(
        tables={"Reversed letters by position encoding": numbers},
        claims=_claims(numbers),
        plots={
            "positions": _plot_lengths(exact, letters),
            "positions-loss": _plot_losses(trained),
        },
    )


def train_with(kind: str, pairs: Sequence[Example], seed: int) -> Training:
    """Train the small Transformer with one kind of position encoding in encoder and decoder."""
    kinds = (f"model.{side}.positions={kind}" for side in ("encoder", "decoder"))
    return train_small(read_recipe(SMALL_TRANSFORMER, (*SETTINGS, *kinds), seed=seed), pairs)


def by_length(training: Training, tests: dict[int, list[Example]]) -> dict[int, float]:
    """Return the percentage of exact outputs for each length."""
    return {length: accuracy(training.task, test) for length, test in tests.items()}


def word_accuracy(training: Training, examples: Sequence[Example]) -> float:
    """Return the percentage of letters predicted correctly after the true letters before them."""
    correct = [is_right for row in training.task.correct_words(examples) for is_right in row]
    return 100 * sum(correct) / len(correct)


def _mean(values: dict[int, float], *, is_longer: bool) -> float:
    low, high = TRAINED
    kept = [
        value
        for length, value in values.items()
        if (length > high if is_longer else low <= length <= high)
    ]
    return sum(kept) / len(kept)


def _claims(numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    none = numbers["none"]
    others = {name: row for name, row in numbers.items() if name != "none"}
    worst = min(others, key=lambda name: others[name][KNOWN])
    longest = max(others, key=lambda name: others[name][LONGER_TOKENS])
    sinusoidal, learned, relative, rotary = (
        numbers[name] for name in ("sinusoidal", "learned", "relative", "rotary")
    )
    return (
        Claim(
            "Without positions, a Transformer cannot use the order of the source.",
            f"It reverses {none[KNOWN]:.0f} % of the sources; with positions at least "
            f"{others[worst][KNOWN]:.0f} % ({worst}).",
            none[KNOWN] < 10 and others[worst][KNOWN] > none[KNOWN] + 30,
        ),
        Claim(
            "Learned positions are as good as sinusoidal ones.",
            f"{learned[KNOWN]:.0f} % and {sinusoidal[KNOWN]:.0f} % exact on trained lengths.",
            abs(learned[KNOWN] - sinusoidal[KNOWN]) < 10,
        ),
        Claim(
            "Trained on short sources only, no kind makes the model exact on longer ones.",
            f"At 11 to 16 letters at most {max(row[LONGER] for row in others.values()):.0f} % of "
            f"the outputs are exact; of single letters, {longest} has most correct, "
            f"{others[longest][LONGER_TOKENS]:.0f} %.",
            max(row[LONGER] for row in others.values()) < 50,
        ),
        Claim(
            "Distances (relative, rotary) extend further than absolute positions.",
            "Letters correct at 11 to 16 letters: "
            + ", ".join(f"{name} {row[LONGER_TOKENS]:.0f} %" for name, row in others.items())
            + ".",
            min(relative[LONGER_TOKENS], rotary[LONGER_TOKENS])
            > max(sinusoidal[LONGER_TOKENS], learned[LONGER_TOKENS]),
        ),
    )


def _plot_lengths(exact: dict[str, dict[int, float]], letters: dict[str, dict[int, float]]) -> Plot:
    figure = panels(
        {
            title: {name: [*map(_point, row.items())] for name, row in values.items()}
            for title, values in (("whole output", exact), ("single letters", letters))
        },
        x_label="letters in the source",
        y_label="correct (%)",
        columns=2,
        marks=dict.fromkeys(
            ("whole output", "single letters"), ("longest in training", TRAINED[1])
        ),
    )
    return Plot(
        figure,
        "Reversing letters by length of the source. Left: the whole output is correct, greedy "
        "search. Right: each letter after the true letters before it.",
    )


def _point(item: tuple[int, float]) -> tuple[float, float]:
    return float(item[0]), item[1]


def _plot_losses(trained: dict[str, Training]) -> Plot:
    figure = panels(
        {"training loss": {name: training.losses for name, training in trained.items()}},
        x_label="step",
        y_label="loss per letter (nats)",
        columns=1,
    )
    return Plot(figure, "Training loss with each position encoding; everything else is equal.")
