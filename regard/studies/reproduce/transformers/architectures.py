"""Recurrent nets, convolutions and a Transformer on one data set at equal CPU time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.data.example import Example
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.plots.curves import lines
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.transformers.attention_heads import short_sentences, without_marks
from regard.studies.reproduce.transformers.training import (
    SMALL_TRANSFORMER,
    Training,
    read_recipe,
    train_small,
)
from regard.tasks.generation.task import Predictor
from regard.tasks.metrics import measure

RNN, RNN_ATTENTION, CONVOLUTION, TRANSFORMER = (
    "RNN",
    "RNN + attention",
    "convolution",
    "Transformer",
)
MODELS = {
    RNN: ("cho2014-laptop", 740),
    RNN_ATTENTION: ("bahdanau2015-laptop", 500),
    CONVOLUTION: ("gehring2017-laptop", 540),
    TRANSFORMER: (SMALL_TRANSFORMER, 1_000),
}
"""Recipe and number of steps of each model; the steps take about the same CPU time."""

SETTINGS = (
    "data.batch.max_tokens=300",
    "data.batch.max_length=64",
    "train.max_epochs=0",
    "search.beams=1",
)
NUM_CURVE, NUM_POINTS = 60, 8
"""Number of test sentences and of points of the learning curves."""

EXAMPLE = "schools opened their doors"
BLEU, EXACT, THROUGHPUT, SECONDS = "BLEU", "exact %", "target tokens/s", "CPU seconds"
SHARED = "loss at the shared CPU time"


@dataclass(frozen=True)
class Course:
    """A training with its learning curve."""

    training: Training
    curve: list[tuple[float, float]]
    """CPU seconds of training, and the loss per token on test sentences."""

    def loss_at(self, seconds: float) -> float:
        """Return the loss at a CPU time, interpolated between two points of the curve."""
        before, after = self.curve[0], self.curve[-1]
        for point in self.curve:
            if point[0] <= seconds:
                before = point
            else:
                after = point
                break
        if after[0] <= before[0]:
            return before[1]
        share = (seconds - before[0]) / (after[0] - before[0])
        return before[1] + min(max(share, 0.0), 1.0) * (after[1] - before[1])


def architectures(seed: int, _folder: Path | None = None) -> Findings:
    """Train four architectures for about the same CPU time, and compare BLEU and throughput."""
    train, test = short_sentences()
    courses = {
        name: train_model(recipe, num_steps, train=train, test=test, seed=seed)
        for name, (recipe, num_steps) in MODELS.items()
    }
    shared = min(course.training.seconds for course in courses.values())
    numbers = {name: _measure(course, test, shared) for name, course in courses.items()}
    transformer = courses[TRANSFORMER].training.task
    return Findings(
        tables={
            "Models": numbers,
            "Input of the decoder, shifted right": shift_right(),
            "Widths of a decoder block": describe_block(transformer),
        },
        claims=_claims(numbers, shift_right(), describe_block(transformer)),
        plots={"architectures": _plot(courses)},
    )


def train_model(
    recipe: str, num_steps: int, *, train: Sequence[Example], test: Sequence[Example], seed: int
) -> Course:
    """Train a recipe for a number of steps, with a learning curve on some test sentences."""
    steps = (f"train.max_steps={num_steps}", f"train.log_every={num_steps // NUM_POINTS}")
    curve: list[tuple[float, float]] = []

    def observe(training: Training) -> None:
        model = training.task.model
        model.eval()
        with torch.no_grad():
            loss = training.task.mean_nll(training.task.batches(test[:NUM_CURVE]))
        model.train()
        curve.append((training.seconds, loss))

    loaded = read_recipe(recipe, (*SETTINGS, *steps), seed=seed)
    return Course(train_small(loaded, train, observe=observe), curve)


def shift_right() -> dict[str, dict[str, str]]:
    """Return input and label of each decoder position for the example of the lectures.

    As in the loss of a `Predictor`, inputs are all tokens but the last, labels all but the first.
    """
    field = TextField.fit(TokenizerConfig(kind="word"), [EXAMPLE])
    field.add_start()
    (ids,) = field.read_all([EXAMPLE])
    tokens = without_marks(field.tokenizer.tokens(ids))
    return {
        f"position {number}": {"input": before, "label": label}
        for number, (before, label) in enumerate(zip(tokens[:-1], tokens[1:], strict=True), 1)
    }


def describe_block(task: Predictor) -> dict[str, dict[str, int]]:
    """Return the widths of the inputs and outputs of the layers of a decoder block."""
    decoder: Any = task.model.decoder
    block = decoder.blocks[0]
    maps = {
        "masked self-attention": block.self_attention.output_map,
        "cross-attention": block.cross_attention.output_map,
        "feed-forward, up": block.feed_forward.hidden_map,
        "feed-forward, back": block.feed_forward.output_map,
    }
    return {name: {"in": one.in_features, "out": one.out_features} for name, one in maps.items()}


def _measure(course: Course, test: Sequence[Example], shared: float) -> dict[str, float]:
    training = course.training
    outputs = [[best[0].text] for best in training.task.predict([pair.source for pair in test])]
    scores = measure(("bleu", "accuracy"), outputs, [[pair.target] for pair in test])
    return {
        BLEU: scores["bleu"].value,
        EXACT: scores["accuracy"].value,
        SHARED: course.loss_at(shared),
        THROUGHPUT: training.num_tokens / training.seconds,
        SECONDS: training.seconds,
        "parameters": training.task.num_parameters,
    }


def _claims(
    numbers: dict[str, dict[str, float]],
    shifted: dict[str, dict[str, str]],
    block: dict[str, dict[str, int]],
) -> tuple[Claim, ...]:
    fixed, attending, transformer = (numbers[name] for name in (RNN, RNN_ATTENTION, TRANSFORMER))
    fastest = max(numbers, key=lambda name: numbers[name][THROUGHPUT])
    times = [row[SECONDS] for row in numbers.values()]
    inputs, labels = ([row[key] for row in shifted.values()] for key in ("input", "label"))
    hidden, dim = (block["feed-forward, up"][side] for side in ("out", "in"))
    widths = {(row["in"], row["out"]) for name, row in block.items() if "attention" in name}
    return (
        Claim(
            "Attention improves a recurrent encoder–decoder.",
            f"BLEU {attending[BLEU]:.1f} with and {fixed[BLEU]:.1f} without attention; loss at the "
            f"shared CPU time {attending[SHARED]:.2f} and {fixed[SHARED]:.2f}.",
            attending[BLEU] > fixed[BLEU] and attending[SHARED] < fixed[SHARED],
        ),
        Claim(
            "At equal CPU time, the Transformer is better than the recurrent net with attention.",
            f"BLEU {transformer[BLEU]:.1f} and {attending[BLEU]:.1f}; loss at the shared CPU time "
            f"{transformer[SHARED]:.2f} and {attending[SHARED]:.2f}. The trainings took "
            f"{min(times):.0f} to {max(times):.0f} CPU seconds.",
            transformer[BLEU] > attending[BLEU] and transformer[SHARED] < attending[SHARED],
        ),
        Claim(
            "Without recurrence, a Transformer processes more tokens per second.",
            ", ".join(f"{name} {row[THROUGHPUT]:,.0f}" for name, row in numbers.items())
            + " target tokens per CPU second in training.",
            fastest == TRANSFORMER,
        ),
        Claim(
            "The input of the decoder is the target, shifted right: <START> schools opened their.",
            f"Inputs {' '.join(inputs)}; labels {' '.join(labels)}.",
            inputs[1:] == labels[:-1] and inputs[1:4] == EXAMPLE.split()[:3],
        ),
        Claim(
            "The feed-forward layer maps to 4 times the width and back; input and output of a "
            "block have the same width.",
            f"Feed-forward {dim} → {hidden} → {block['feed-forward, back']['out']}; attention "
            f"{dim} → {dim}.",
            hidden == 4 * dim == 4 * block["feed-forward, back"]["out"] and widths == {(dim, dim)},
        ),
    )


def _plot(courses: dict[str, Course]) -> Plot:
    figure = lines(
        {name: course.curve for name, course in courses.items()},
        x_label="CPU time of training (s)",
        y_label="loss per token (nats)",
    )
    return Plot(
        figure,
        f"Loss on {NUM_CURVE} test sentences by CPU time of training. English to German sentences "
        "of at most nine words.",
    )
