"""One step of attention by its numbers, and every step of trained decoders recomputed.

Bahdanau et al. 2015 attend with the previous state s_{i-1}, Luong et al. 2015 with
the new state s_i.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention.attend import masked_softmax, weighted_sum
from regard.attention.recording import record
from regard.attention.scores import DotScore
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.data.splits import Splits
from regard.models.decoders.bahdanau import BahdanauDecoder
from regard.models.decoders.luong import LuongDecoder
from regard.models.interfaces import Memory
from regard.plots.word_maps import WordMap, word_maps
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot, Table
from regard.studies.reproduce.running import train_run

STATE = torch.tensor([1.0, 0.0])
"""Decoder state s of the worked example."""
ENCODER_STATES = torch.tensor([[math.log(3), 1.0], [math.log(5), 0.0], [0.0, 2.0], [0.0, -1.0]])
"""Encoder states h_1 … h_4, chosen so that s · h_j is ln 3, ln 5, 0, 0."""
EXPECTED = torch.tensor([0.3, 0.5, 0.1, 0.1])
"""Weights of the lectures."""
EMBEDDING = torch.tensor([0.5, -0.5])
"""Embedding of the last output word y."""
INPUT_MAP = torch.tensor([[0.4, 0.0, 0.2, 0.0], [0.0, 0.4, 0.0, 0.2]])
STATE_MAP = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
"""Weights of the recurrent step s' = tanh(W [y; c] + U s), chosen by us."""

DATA = "reverse:3000,3-10"
SMALL = (
    *("model.encoder.embedding_dim=32", "model.decoder.embedding_dim=32", "model.decoder.dim=64"),
    *("model.encoder.dropout=0", "model.decoder.dropout=0", "data.batch.max_tokens=500"),
    *("train.max_epochs=0", "train.max_steps=400", "train.validate_every=400"),
    *("train.schedule.warmup_steps=50", "search.beams=1"),
)
BAHDANAU, LUONG = "Bahdanau, query s_{i-1}", "Luong, query s_i"
MODELS: dict[str, tuple[str, tuple[str, ...]]] = {
    BAHDANAU: (
        "bahdanau2015-laptop",
        ("model.encoder.dim=32", "model.decoder.attention_dim=64"),
    ),
    LUONG: (
        "luong2015-laptop",
        (
            *("model.encoder.cell=gru", "model.encoder.num_layers=1", "model.encoder.dim=64"),
            *("model.decoder.cell=gru", "model.decoder.num_layers=1"),
            # As for Bahdanau's decoder; the recipe's own values are for stacked LSTMs.
            *("model.init.rule=default", "model.init.recurrent=orthogonal"),
            *("model.init.embedding=normal", "model.init.scale=0.1"),
            "train.optimizer.learning_rate=0.004",
        ),
    ),
}
"""Recipes and overrides of the two decoders."""

EXACT, AER = "exact targets %", "alignment error rate"
WEIGHTS, LOGITS = "largest difference of weights", "largest difference of logits"

SHOWN_LENGTH = 6
"""Number of letters of the sentence that is traced: the first of this length in the test set."""


@dataclass(frozen=True)
class Trace:
    """Numbers of all steps of a decoder for one target."""

    scores: Tensor
    """(T, S)."""
    weights: Tensor
    """(T, S)."""
    logits: Tensor
    """(T, V)."""


def attention_step(seed: int, folder: Path) -> Findings:
    """Compute one step by hand, train both decoders and recompute their steps.

    Args:
        seed: Seed of the models; the data are always the same.
        folder: Folder of the runs.
    """
    step = worked_step()
    splits = find_data(DATA)
    assert isinstance(splits, Splits)
    shown = next(one for one in splits.test if len(one.source.split()) == SHOWN_LENGTH)
    numbers: dict[str, dict[str, float]] = {}
    steps: dict[str, Table] = {}
    maps: dict[str, WordMap] = {}
    for name, (recipe, settings) in MODELS.items():
        out = folder / recipe.removesuffix("-laptop")
        request = Request(data=(DATA,), recipe=recipe, settings=(*SMALL, *settings), out=out)
        task = train_run(request, seed)
        results = task.evaluate(splits.test).results
        trace, differences = run_traced(task, shown, TRACES[name])
        (attention,) = task.attend([shown])
        steps[f"Steps for '{shown.source}': {name}"] = _steps(task, trace, attention.labels)
        maps[name] = WordMap(attention.mean(), *attention.labels)
        numbers[name] = {EXACT: results["accuracy"].value, AER: results["aer"].value, **differences}
    return Findings(
        tables={
            "The step of the lectures": _step_table(step),
            "Trained decoders": numbers,
            **steps,
        },
        claims=_claims(step, numbers),
        plots={
            "attention-step": Plot(
                word_maps(maps, columns=2, has_values=True),
                "Attention weights of both trained decoders for one test example of the task "
                "'reverse': one row per output letter, over the input letters.",
            ),
            "attention-step-numbers": _plot_step(step),
        },
    )


def worked_step() -> dict[str, Tensor]:
    """Compute scores, weights, context and the next state of the worked example."""
    scores = DotScore(2, 2)(STATE[None], ENCODER_STATES)  # (1, 4)
    weights = masked_softmax(scores)
    context = weighted_sum(weights, ENCODER_STATES)[0]
    next_state = torch.tanh(INPUT_MAP @ torch.cat([EMBEDDING, context]) + STATE_MAP @ STATE)
    return {"scores": scores[0], "weights": weights[0], "context": context, "next": next_state}


def trace_bahdanau(decoder: BahdanauDecoder, memory: Memory, tokens: Tensor) -> Trace:
    """Recompute the steps of Bahdanau's decoder: attend with s_{i-1}, then compute s_i.

    Args:
        decoder: The decoder, in evaluation mode.
        memory: One encoded source.
        tokens: (T,) token ids from the start token on.
    """
    state = decoder.start(memory)
    source, layers = state.per_source, state.per_hypothesis["layers"]
    all_scores, all_weights, all_logits = [], [], []
    for token in tokens:
        word = decoder.embedding(token[None])  # (1, D)
        previous = layers[-1][0]  # s_{i-1}
        scores = decoder.attention.score(previous, source["keys"][0])  # e_ij = f(s_{i-1}, h_j)
        weights = masked_softmax(scores, source["mask"])  # α_ij
        context = weighted_sum(weights, source["values"][0])  # c_i = Σ α_ij h_j
        new, layers = decoder.recurrence.step(torch.cat([word, context], dim=-1), layers)  # s_i
        all_scores.append(scores)
        all_weights.append(weights)
        all_logits.append(decoder.output(decoder.readout(new, word, context)))
    return Trace(*map(torch.cat, (all_scores, all_weights, all_logits)))


def trace_luong(decoder: LuongDecoder, memory: Memory, tokens: Tensor) -> Trace:
    """Recompute the steps of Luong's decoder: compute s_i, then attend with it.

    Arguments are those of `trace_bahdanau`.
    """
    state = decoder.start(memory)
    source, layers = state.per_source, state.per_hypothesis["layers"]
    fed = state.per_hypothesis["fed"]
    all_scores, all_weights, all_logits = [], [], []
    for token in tokens:
        word = decoder.embedding(token[None])  # (1, D)
        new, layers = decoder.recurrence.step(torch.cat([word, fed], dim=-1), layers)  # s_i
        scores = decoder.attention.score(new, source["keys"][0])  # e_ij = s_i · W h_j
        weights = masked_softmax(scores, source["mask"])  # α_ij
        context = weighted_sum(weights, source["values"][0])  # c_i = Σ α_ij h_j
        fed = decoder.attentional_map(torch.cat([context, new], dim=-1)).tanh()
        all_scores.append(scores)
        all_weights.append(weights)
        all_logits.append(decoder.output(fed))
    return Trace(*map(torch.cat, (all_scores, all_weights, all_logits)))


TRACES: dict[str, Callable[[Any, Memory, Tensor], Trace]] = {
    BAHDANAU: trace_bahdanau,
    LUONG: trace_luong,
}


def run_traced(
    task: Any, example: Example, trace: Callable[[Any, Memory, Tensor], Trace]
) -> tuple[Trace, dict[str, float]]:
    """Return the recomputed steps and their largest differences from the decoder's own."""
    (batch,) = task.batches([example])
    decoder = task.model.eval().decoder
    with torch.inference_mode():
        memory = task.encode_batch(batch)
        tokens = batch.target[0, :-1]
        with record(decoder) as recorded:
            logits = decoder(tokens[None], memory).logits[0]
        ours = trace(decoder, memory, tokens)
    weights = recorded.stack()[0, 0, 0]  # (T, S)
    return ours, {
        WEIGHTS: float((ours.weights - weights).abs().max()),
        LOGITS: float((ours.logits - logits).abs().max()),
    }


def _steps(task: Any, trace: Trace, labels: tuple[Sequence[str], Sequence[str]]) -> Table:
    """Return a row for each step: the attended source letter and the predicted token."""
    target, source = labels
    inputs = ("<sos>", *target)
    rows = {}
    for step, (scores, weights, logits) in enumerate(
        zip(trace.scores, trace.weights, trace.logits, strict=True)
    ):
        best = int(weights.argmax())
        probabilities = logits.log_softmax(-1).exp()
        (predicted,) = task.target.tokenizer.tokens([int(probabilities.argmax())])
        rows[f"step {step + 1}"] = {
            "last word y": inputs[step],
            "attends to": source[best],
            "its score": float(scores[best]),
            "its weight": float(weights[best]),
            "predicts": predicted.removeprefix("▁"),
            "probability": float(probabilities.max()),
        }
    return rows


def _step_table(step: dict[str, Tensor]) -> Table:
    return {
        "encoder states h": {
            "values": ", ".join(f"({x:.3f}, {y:g})" for x, y in ENCODER_STATES.tolist())
        },
        "decoder state s": {"values": _numbers(STATE)},
        "scores s · h": {"values": _numbers(step["scores"])},
        "weights, softmax": {"values": _numbers(step["weights"])},
        "context Σ weight · h": {"values": _numbers(step["context"])},
        "next state tanh(W [y; c] + U s)": {"values": _numbers(step["next"])},
    }


def _numbers(values: Tensor) -> str:
    return ", ".join(f"{value:.3f}" for value in values.tolist())


def _claims(step: dict[str, Tensor], numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    weights = step["weights"]
    by_hand = EXPECTED @ ENCODER_STATES
    return (
        Claim(
            "Scores ln 3, ln 5, 0, 0 give the weights 0.3, 0.5, 0.1, 0.1.",
            _numbers(weights),
            bool((weights - EXPECTED).abs().max() < 1e-6),
        ),
        Claim(
            "The context is 0.3 h₁ + 0.5 h₂ + 0.1 h₃ + 0.1 h₄.",
            f"({_numbers(step['context'])}), by hand ({_numbers(by_hand)})",
            bool((step["context"] - by_hand).abs().max() < 1e-6),
        ),
        *(
            Claim(
                f"{name}: the formulas give the decoder's own weights and logits at every step.",
                f"largest differences {row[WEIGHTS]:.1g} and {row[LOGITS]:.1g}",
                max(row[WEIGHTS], row[LOGITS]) < 1e-4,
            )
            for name, row in numbers.items()
        ),
        Claim(
            "Both decoders learn where to attend by backpropagation alone.",
            "; ".join(
                f"{name}: {row[EXACT]:.1f} % exact, alignment error rate {row[AER]:.4f}"
                for name, row in numbers.items()
            ),
            all(row[EXACT] >= 90 for row in numbers.values()),
        ),
    )


def _plot_step(step: dict[str, Tensor]) -> Plot:
    columns = [f"h{index}" for index in range(1, 5)]
    maps = {
        "scores": WordMap(step["scores"][None], ["s"], columns),
        "weights": WordMap(step["weights"][None], ["s"], columns),
    }
    caption = "The step of the lectures: scores of the state s with h₁ … h₄, and their softmax."
    return Plot(word_maps(maps, columns=2, has_values=True), caption)
