"""Encoder–decoders of the lectures and of the papers, trained on one data set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from regard.data.example import Example
from regard.models.decoders import RecurrentPrefixDecoder
from regard.models.interfaces import Memory, State
from regard.models.seq2seq import EncoderDecoder
from regard.plots.curves import lines
from regard.plots.panels import panels
from regard.studies.reproduce.encoder_decoders.small_models import (
    MIN_DIGITS,
    Scores,
    measure_by_length,
    rnn,
    sample_numbers,
    tables_by_length,
    train_models,
)
from regard.studies.reproduce.findings import Claim, Findings, Plot

DIM = 64
"""Width of embeddings and states."""

ONE_SEQUENCE, INPUT, DENSE = "one sequence (001a)", "[y; c], s₀ = h_T (000, 001b)", "dense s₀ (002)"
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

NUM_TRAIN, MAX_DIGITS, NUM_TESTS = 8_000, 7, 60
SHORT, LONG = range(MIN_DIGITS, 5), range(6, MAX_DIGITS + 1)
"""Lengths, in digits, that count as short and as long."""


def encoder_decoders(seed: int, folder: Path) -> Findings:
    """Train all forms and compare them by source length.

    Args:
        seed: Seed of the models; the numbers are always the same.
        folder: Folder of the runs.
    """
    data = sample_numbers(NUM_TRAIN, max_digits=MAX_DIGITS, num_tests=NUM_TESTS)
    tasks = train_models(FORMS, data, seed=seed, folder=folder)
    results = {name: measure_by_length(task, data.tests) for name, task in tasks.items()}
    longest = data.tests[MAX_DIGITS]
    influence = {
        name: measure_influence(tasks[name], longest, seed=seed) for name in (ONE_SEQUENCE, INPUT)
    }
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
            "Influence of c on the logits by target position, first position = 1": {
                name: {str(position): value for position, value in enumerate(values, start=1)}
                for name, values in influence.items()
            },
        },
        claims=_claims(results, influence),
        plots={
            "encoder-decoders": _plot_lengths(results),
            "encoder-decoders-influence": _plot_influence(influence),
        },
    )


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
    results: Mapping[str, Scores], influence: Mapping[str, Sequence[float]]
) -> tuple[Claim, ...]:
    short, long = (
        {name: scores.mean_bleu(lengths) for name, scores in results.items()}
        for lengths in (SHORT, LONG)
    )
    fixed = [name for name in results if name != BAHDANAU]
    falls = {name: short[name] - long[name] for name in fixed}
    smallest = min(fixed, key=lambda name: falls[name])
    best = max(fixed, key=lambda name: long[name])
    last = {name: values[-1] for name, values in influence.items()}
    num_positions = len(influence[ONE_SEQUENCE])
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
            "In one sequence, c wanes as the output grows.",
            f"The influence of c on the logits at position {num_positions} is "
            f"{last[ONE_SEQUENCE]:.2f} of that at the first.",
            last[ONE_SEQUENCE] < 0.5,
        ),
        Claim(
            "If c is an input of every step, it wanes less.",
            f"{last[INPUT]:.2f} at position {num_positions}, against {last[ONE_SEQUENCE]:.2f}.",
            last[INPUT] > last[ONE_SEQUENCE],
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


def _plot_influence(influence: Mapping[str, Sequence[float]]) -> Plot:
    figure = lines(
        {
            name: [(float(position), value) for position, value in enumerate(values, start=1)]
            for name, values in influence.items()
        },
        x_label="target position t",
        y_label="‖∂z_t / ∂c‖, t = 1: 1",
    )
    return Plot(
        figure,
        "Influence of the context c on the logits z_t, relative to the first position, on the test "
        f"numbers of {MAX_DIGITS} digits. In one sequence, c is the initial state only; with "
        "[y; c], it is an input of every step.",
    )
