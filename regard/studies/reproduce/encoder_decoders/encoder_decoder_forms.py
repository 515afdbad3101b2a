"""Encoder–decoders of the lectures and of the papers, trained on one data set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from regard.data.example import Example
from regard.interpret.probes import untrained_copy
from regard.models.decoders.recurrent_prefix_lm import RecurrentPrefixDecoder
from regard.models.interfaces import Memory, State
from regard.models.seq2seq import EncoderDecoder
from regard.plots.curves import lines
from regard.plots.panels import panels
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

DIM = 64
"""Width of embeddings and states."""

ONE_SEQUENCE, INPUT, DENSE = "one sequence (001a)", "c at every step (000, 001b)", "dense s₀ (002)"
CHO, SUTSKEVER, BAHDANAU = "Cho 2014", "Sutskever 2014", "Bahdanau 2015 (attention)"

FORMS: dict[str, tuple[str, ...]] = {
    ONE_SEQUENCE: (
        "data.is_joint=true",
        "model.encoder.kind=embedding",
        f"model.encoder.dim={DIM}",
        "model.decoder.kind=recurrent_prefix",
        f"model.decoder.embedding_dim={DIM}",
        f"model.decoder.dim={DIM}",
        "model.decoder.dropout=0.0",
        "model.ties=all",
        # Embeddings are multiplied by √64: the recurrence gets the same scale as in the others.
        "model.init.scale=0.125",
    ),
    INPUT: (*rnn(DIM), "model.decoder.start=copy", "model.decoder.readout=linear"),
    DENSE: (*rnn(DIM), "model.decoder.start=dense", "model.decoder.readout=linear"),
    CHO: rnn(DIM),
    SUTSKEVER: (*rnn(DIM), "model.decoder.kind=sutskever", "model.encoder.is_reversed=true"),
    BAHDANAU: (
        *rnn(DIM),
        "model.encoder.is_bidirectional=true",
        f"model.encoder.dim={DIM // 2}",
        "model.decoder.kind=bahdanau",
        f"model.decoder.attention_dim={DIM}",
    ),
}
"""Overrides that make each model, by name."""

NUM_TRAIN, MAX_LENGTH, NUM_TESTS = 10_000, 9, 60
SHORT, LONG = range(MIN_LENGTH, 6), range(8, MAX_LENGTH + 1)
"""Source lengths that count as short and as long."""

WANING = (ONE_SEQUENCE, INPUT)
"""Models in which the context is followed over the target: given once, and at every step."""

BEFORE, AFTER = "before training", "after training"
NUM_ENDS = 3
"""Number of positions that count as the first and as the last of a target."""


def encoder_decoders(seed: int, folder: Path) -> Findings:
    """Train all forms and compare them by source length.

    Args:
        seed: Seed of the models; the data are always the same.
        folder: Folder of the runs.
    """
    data = sample_digits(NUM_TRAIN, max_length=MAX_LENGTH, num_tests=NUM_TESTS)
    tasks = train_models(FORMS, data, seed=seed, folder=folder)
    results = {name: measure_by_length(task, data.tests) for name, task in tasks.items()}
    longest = data.tests[MAX_LENGTH]
    influence = {
        BEFORE: {
            name: measure_influence(untrained_copy(tasks[name]), longest, seed=seed)
            for name in WANING
        },
        AFTER: {name: measure_influence(tasks[name], longest, seed=seed) for name in WANING},
    }
    by_position = {name: measure_positions(task, longest) for name, task in tasks.items()}
    return Findings(
        tables={
            "Models": {
                name: {
                    "parameters": tasks[name].num_parameters,
                    "BLEU": mean(scores.bleu.values()),
                    "exact %": mean(scores.exact.values()),
                }
                for name, scores in results.items()
            },
            **tables_by_length(results),
            f"Correct digits in % by target position, sources of {MAX_LENGTH} digits": {
                name: _number(values) for name, values in by_position.items()
            },
            "Influence of c on the logits by target position, first position = 1": {
                f"{name}, {time}": _number(values)
                for time, models in influence.items()
                for name, values in models.items()
            },
        },
        claims=_claims(results, influence[BEFORE], by_position),
        plots={
            "encoder-decoders": _plot_lengths(results),
            "encoder-decoders-positions": _plot_positions(by_position),
            "encoder-decoders-influence": _plot_influence(influence),
        },
    )


def _number(values: Sequence[float]) -> dict[str, float]:
    return {str(position): value for position, value in enumerate(values, start=1)}


def measure_positions(task: Any, examples: Sequence[Example]) -> list[float]:
    """Return the percentage of correct words by target position, after the true words before."""
    correct = task.correct_words(examples)  # a row per example, all of one length
    return [100 * mean(column) for column in zip(*correct, strict=True)]


def start_from(model: EncoderDecoder, memory: Memory) -> tuple[Tensor, State]:
    """Return the context c (B, D) as a leaf of the graph, and the decoder's state before step 1.

    In one sequence, c is the initial state only; otherwise it is an input of every step, too.
    """
    if isinstance(model.decoder, RecurrentPrefixDecoder):
        ((context,),) = model.decoder.encode_source(memory)
        context = context.detach().requires_grad_()
        return context, State({}, {"layers": ((context,),)})
    context = memory.summary.detach().requires_grad_()
    return context, model.start(replace(memory, summary=context, final=((context,),)))


def measure_influence(task: Any, examples: Sequence[Example], *, seed: int) -> list[float]:
    """Return ‖∂ v·z_t / ∂c‖ by target position t, divided by its value at the first position.

    z_t are the logits and v is a random vector, so the mean square is that of the whole Jacobian.
    Positions that some target lacks are left out.
    """
    (batch,) = task.batches(examples, replace(task.recipe.data.batch, max_tokens=10_000))
    context, state = start_from(task.model, task.encode_batch(batch))
    logits, _ = task.model.step(batch.target[:, :-1], state)  # (B, T, V)
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(logits.shape[0], logits.shape[2], generator=generator)
    norms = []
    for position in range(int(batch.target_mask[:, 1:].all(0).sum())):
        projected = (logits[:, position] * direction).sum()
        (gradient,) = torch.autograd.grad(projected, context, retain_graph=True)
        norms.append(float(gradient.norm(dim=-1).mean()))
    return [norm / norms[0] for norm in norms]


def _claims(
    results: Mapping[str, Scores],
    untrained: Mapping[str, Sequence[float]],
    by_position: Mapping[str, Sequence[float]],
) -> tuple[Claim, ...]:
    """Compare the models.

    Args:
        results: BLEU by source length.
        untrained: Influence of c by target position, before training.
        by_position: Percentage of correct digits by target position.
    """
    short, long = (
        {name: scores.mean_bleu(lengths) for name, scores in results.items()}
        for lengths in (SHORT, LONG)
    )
    fixed = [name for name in results if name != BAHDANAU]
    falls = {name: short[name] - long[name] for name in fixed}
    smallest = min(fixed, key=lambda name: falls[name])
    best = max(fixed, key=lambda name: long[name])
    once, always = (untrained[name][-1] for name in WANING)
    first, last = (
        {name: mean(values[ends]) for name, values in by_position.items()}
        for ends in (slice(NUM_ENDS), slice(-NUM_ENDS, None))
    )
    return (
        Claim(
            "Every form maps a source of any length to one vector c and generates the target "
            "from it.",
            f"BLEU for {SHORT[0]} to {SHORT[-1]} digits: "
            + ", ".join(f"{name} {short[name]:.0f}" for name in results)
            + ".",
            min(short.values()) > 50,
        ),
        Claim(
            "In one sequence, c wanes as the output grows; as an input of every step, it does not.",
            f"Before training, the influence of c on the logits at position "
            f"{len(untrained[INPUT])} is {once:.2f} of that at the first in one sequence, and "
            f"{always:.2f} with c at every step.",
            once < 0.5 < always,
        ),
        Claim(
            "In one sequence, later outputs suffer more than with c as an input of every step.",
            f"Correct digits at the first and at the last {NUM_ENDS} positions: "
            + ", ".join(f"{name} {first[name]:.0f} and {last[name]:.0f} %" for name in WANING)
            + ".",
            first[ONE_SEQUENCE] - last[ONE_SEQUENCE] > first[INPUT] - last[INPUT],
        ),
        Claim(
            "With a fixed context, long sources are worse than short ones.",
            f"The smallest loss from {SHORT[0]}–{SHORT[-1]} to {LONG[0]}–{LONG[-1]} digits is "
            f"{falls[smallest]:.0f} BLEU ({smallest}).",
            falls[smallest] > 5,
        ),
        Claim(
            "With attention, long sources are better than with any fixed context.",
            f"{LONG[0]} to {LONG[-1]} digits: {long[BAHDANAU]:.0f} BLEU with attention; the best "
            f"fixed context has {long[best]:.0f} ({best}).",
            long[BAHDANAU] > long[best],
        ),
    )


def _plot_lengths(results: Mapping[str, Scores]) -> Plot:
    attention = list(results[BAHDANAU].bleu.items())
    figure = panels(
        {
            name: {"this model": list(scores.bleu.items()), "attention": attention}
            for name, scores in results.items()
            if name != BAHDANAU
        },
        x_label="digits of the source",
        y_label="BLEU",
    )
    return Plot(
        figure,
        "BLEU by source length for each form with a fixed context and, for comparison, with "
        "attention. All models have the same widths and the same training.",
    )


def _plot_positions(by_position: Mapping[str, Sequence[float]]) -> Plot:
    figure = lines(
        {name: _points(values) for name, values in by_position.items()},
        x_label="target position",
        y_label="correct digits in %",
    )
    return Plot(
        figure,
        f"Correct digits by target position for sources of {MAX_LENGTH} digits, each predicted "
        "after the true digits before it.",
    )


def _plot_influence(influence: Mapping[str, Mapping[str, Sequence[float]]]) -> Plot:
    figure = panels(
        {
            time: {name: _points(values) for name, values in models.items()}
            for time, models in influence.items()
        },
        x_label="target position t",
        y_label="‖∂z_t / ∂c‖, t = 1: 1",
    )
    return Plot(
        figure,
        "Influence of the context c on the logits z_t, relative to the first position, on the test "
        f"sequences of {MAX_LENGTH} digits. In one sequence, c is the initial state only.",
    )


def _points(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(float(position), value) for position, value in enumerate(values, start=1)]
