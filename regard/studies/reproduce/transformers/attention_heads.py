"""Masked, cross- and multi-head attention of a trained Transformer, head by head."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from regard.attention.attend import masked_softmax, weighted_sum
from regard.attention.multihead import MultiHeadAttention
from regard.attention.recording import record
from regard.data.batch import Batch
from regard.data.datasets.catalog import find_data
from regard.data.example import Example
from regard.data.splits import Splits
from regard.interpret.probes import untrained_copy
from regard.plots.word_maps import WordMap, word_maps
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.transformers.training import (
    SMALL_TRANSFORMER,
    read_recipe,
    train_small,
)
from regard.tasks.generation.task import Predictor

MAX_WORDS, NUM_TEST = 9, 150
SHOWN_WORDS = 6
"""Number of words of the shown sentence, the first such one of the test set."""

WORD_START = "▁"
"""Mark of the tokeniser before the first token of a word."""

SETTINGS = ("train.max_steps=900",)
ENCODER, MASKED, CROSS = "encoder self-attention", "masked self-attention", "cross-attention"
POINTING = "points to the linked word %"
REMOVED = "loss without the head"
OFFSETS = range(-3, 4)
"""Relative positions of a key: 0 is the position of the query; the ends include all beyond."""


def attention_heads(seed: int, _folder: Path | None = None) -> Findings:
    """Train a small translator and measure every head of its attention."""
    train, test = short_sentences()
    task = train_small(read_recipe(SMALL_TRANSFORMER, SETTINGS, seed=seed), train).task
    shown = next(example for example in test if len(example.source.split()) == SHOWN_WORDS)
    maps = record_maps(task, shown)
    profiles, untrained = (
        profile_heads(one, test) for one in (task, cast("Predictor", untrained_copy(task)))
    )
    losses = remove_heads(task, test)
    pointing, chance = point_heads(task, test)
    numbers = _tabulate(losses, pointing)
    return Findings(
        tables={
            "Every head: removed, and its alignment": numbers,
            "Every head: mean weight by relative position of the key": _tabulate_profiles(profiles),
            "The example": {
                "source": {"text": shown.source},
                "target": {"text": shown.target},
                "prediction": {"text": task.predict([shown.source])[0][0].text},
            },
        },
        claims=_claims(
            later=float(maps[MASKED].triu(1).max()),
            distances={
                kind: (head_distance(untrained[kind]), head_distance(profile))
                for kind, profile in profiles.items()
            },
            difference=compare_by_hand(task, shown),
            losses=losses,
            pointing=pointing,
            chance=chance,
        ),
        plots=_plots(task, shown, maps),
    )


def short_sentences() -> tuple[list[Example], list[Example]]:
    """Return training and test pairs of the phrasebook with at most nine source words."""
    splits = find_data("phrasebook")
    assert isinstance(splits, Splits)
    train, test = (
        [pair for pair in side if len(pair.source.split()) <= MAX_WORDS]
        for side in (splits.train, splits.test)
    )
    return train, test[:NUM_TEST]


def attention_layers(task: Predictor) -> dict[str, list[MultiHeadAttention]]:
    """Return the attention layers of encoder and decoder by kind, from the first block on."""
    encoder: Any = task.model.encoder
    decoder: Any = task.model.decoder
    return {
        ENCODER: [block.self_attention for block in encoder.blocks],
        MASKED: [block.self_attention for block in decoder.blocks],
        CROSS: [block.cross_attention for block in decoder.blocks],
    }


@torch.no_grad()
def record_maps(task: Predictor, example: Example) -> dict[str, Tensor]:
    """Return the attention weights of one example by kind, (N, H, T, S) each."""
    (batch,) = task.batches([example])
    encoder, decoder = task.model.encoder, task.model.decoder
    with (
        record(encoder, is_self=True) as encoded,
        record(decoder, is_self=True) as masked,
        record(decoder) as crossed,
    ):
        _run(task, batch)
    return {
        ENCODER: encoded.stack_self()[0],
        MASKED: masked.stack_self()[0],
        CROSS: crossed.stack()[0],
    }


@torch.no_grad()
def compare_by_hand(task: Predictor, example: Example) -> float:
    """Return the largest difference of a layer from its heads, concatenated and projected.

    Head h has the rows of W_q, W_k and W_v from h · d_head on, and attends by itself.
    """
    layer = attention_layers(task)[ENCODER][0]
    called: list[tuple[Tensor, Tensor]] = []
    handle = layer.register_forward_hook(
        lambda _module, inputs, output: called.append((inputs[0], output[0]))
    )
    _run(task, task.batches([example])[0])
    handle.remove()
    ((states, output),) = called
    contexts = []
    for rows in _head_slices(layer):
        queries, keys, values = (
            states @ linear.weight[rows].T + linear.bias[rows]
            for linear in (layer.query_map, layer.key_map, layer.value_map)
        )
        weights = masked_softmax(queries @ keys.mT / layer.head_dim**0.5)
        contexts.append(weighted_sum(weights, values))
    return float((layer.output_map(torch.cat(contexts, dim=-1)) - output).abs().max())


@torch.no_grad()
def remove_heads(task: Predictor, examples: Sequence[Example]) -> dict[str, float]:
    """Return the loss per token on examples with all heads, and without each head."""
    batches = task.batches(examples)
    losses = {"": task.mean_nll(batches)}
    for kind, layers in attention_layers(task).items():
        for number, layer in enumerate(layers, start=1):
            for head, columns in enumerate(_head_slices(layer), start=1):
                with _without(layer, columns):
                    losses[_name(kind, number, head)] = task.mean_nll(batches)
    return losses


def point_heads(task: Predictor, examples: Sequence[Example]) -> tuple[dict[str, float], float]:
    """Return how often the largest weight of each cross-attention head is at a gold link.

    Returns:
        Percentages of the linked target words by head, and the percentage by chance.
    """
    num_found, num_linked, by_chance = torch.zeros(()), 0, 0.0
    for attention, example in zip(task.attend(examples), examples, strict=True):
        largest = attention.weights.argmax(-1)  # (N, H, T)
        linked: dict[int, set[int]] = {}
        for source, target in example.alignment or ():
            linked.setdefault(target, set()).add(source)
        for target, sources in linked.items():
            is_found = torch.isin(largest[:, :, target], torch.tensor([*sources]))
            num_found = num_found + is_found.float()
            by_chance += len(sources) / len(attention.source)
        num_linked += len(linked)
    percent = 100 * num_found / num_linked  # (N, H)
    names = {
        _name(CROSS, layer + 1, head + 1): float(percent[layer, head])
        for layer in range(percent.shape[0])
        for head in range(percent.shape[1])
    }
    return names, 100 * by_chance / num_linked


def without_marks(tokens: Sequence[str]) -> list[str]:
    """Return tokens without the mark of the tokeniser before words."""
    return [token.lstrip(WORD_START) for token in tokens]


def profile_heads(task: Predictor, examples: Sequence[Example]) -> dict[str, Tensor]:
    """Return the mean weights of every head by the relative position of the key, by kind.

    Returns:
        (N, H, len(OFFSETS)) by kind, averaged over all sentences, so that words have little effect.
    """
    sums: dict[str, Tensor] = {}
    num_queries = dict.fromkeys((ENCODER, MASKED, CROSS), 0)
    for example in examples:
        for kind, weights in record_maps(task, example).items():
            profile = weights_by_offset(weights)
            sums[kind] = sums.get(kind, torch.zeros_like(profile)) + profile
            num_queries[kind] += weights.shape[2]
    return {kind: profile / num_queries[kind] for kind, profile in sums.items()}


def weights_by_offset(weights: Tensor) -> Tensor:
    """Return the sum of the weights over queries, by the relative position of the key.

    Args:
        weights: (N, H, T, S).

    Returns:
        (N, H, len(OFFSETS)).
    """
    num_queries, num_keys = weights.shape[2:]
    offsets = torch.arange(num_keys) - torch.arange(num_queries)[:, None]  # (T, S)
    offsets = offsets.clamp(OFFSETS[0], OFFSETS[-1])
    return torch.stack([(weights * (offsets == one)).sum((2, 3)) for one in OFFSETS], dim=-1)


def head_distance(profiles: Tensor) -> float:
    """Return the mean total variation distance of two heads of a layer, 0 to 1.

    Args:
        profiles: (N, H, len(OFFSETS)).
    """
    pairs = combinations(range(profiles.shape[1]), 2)
    distances = [(profiles[:, a] - profiles[:, b]).abs().sum(-1).mean() / 2 for a, b in pairs]
    return float(torch.stack(distances).mean())


def _run(task: Predictor, batch: Batch) -> None:
    task.model(task.inputs(batch), batch.source_mask, batch.target[:, :-1])


def _head_slices(layer: MultiHeadAttention) -> list[slice]:
    width = layer.head_dim
    num_heads = layer.query_map.weight.shape[0] // width
    return [slice(head * width, (head + 1) * width) for head in range(num_heads)]


@contextmanager
def _without(layer: MultiHeadAttention, columns: slice) -> Iterator[None]:
    """Set the columns of the output projection that read one head to zero inside the block."""
    weight = layer.output_map.weight
    saved = weight.clone()
    weight[:, columns] = 0
    try:
        yield
    finally:
        weight.copy_(saved)


def _name(kind: str, layer: int, head: int) -> str:
    return f"{kind}, layer {layer}, head {head}"


def _tabulate(
    losses: dict[str, float], pointing: dict[str, float]
) -> dict[str, dict[str, float | str]]:
    return {
        name or "all heads": {REMOVED: loss, POINTING: pointing.get(name, "–")}
        for name, loss in losses.items()
    }


def _tabulate_profiles(profiles: dict[str, Tensor]) -> dict[str, dict[str, float]]:
    columns = [f"{offset:+d}" if offset else "0" for offset in OFFSETS]
    columns = [f"≤ {columns[0]}", *columns[1:-1], f"≥ {columns[-1]}"]
    return {
        _name(kind, layer, head): dict(zip(columns, row.tolist(), strict=True))
        for kind, profile in profiles.items()
        for layer, heads in enumerate(profile, start=1)
        for head, row in enumerate(heads, start=1)
    }


def _claims(
    *,
    later: float,
    distances: dict[str, tuple[float, float]],
    difference: float,
    losses: dict[str, float],
    pointing: dict[str, float],
    chance: float,
) -> tuple[Claim, ...]:
    best, worst = max(pointing, key=pointing.__getitem__), min(pointing.values())
    rises = {name: loss - losses[""] for name, loss in losses.items() if name}
    largest, median = max(rises, key=rises.__getitem__), sorted(rises.values())[len(rises) // 2]
    return (
        Claim(
            "Masked self-attention: no weight on later positions.",
            f"The largest weight above the diagonal is {later:g} in every head.",
            later == 0,
        ),
        Claim(
            "Cross-attention: queries from the decoder, keys and values from the encoder; its "
            "weights align the words.",
            f"{best} points to the linked source word for {pointing[best]:.0f} % of the target "
            f"words (by chance {chance:.0f} %).",
            pointing[best] > 3 * chance,
        ),
        Claim(
            "Each head has its own W_q, W_k, W_v; their outputs are concatenated and projected.",
            f"Four heads computed one by one differ from the layer by at most {difference:.0e}.",
            difference < 1e-5,
        ),
        Claim(
            "Each head learns another relation: by relative position, the weights of two heads "
            "differ more than before training.",
            "Mean total variation distance between two heads, before and after training: "
            + ", ".join(
                f"{kind} {before:.2f} and {after:.2f}"
                for kind, (before, after) in distances.items()
            )
            + f"; heads of the cross-attention point to the linked word for {worst:.0f} to "
            f"{pointing[best]:.0f} %.",
            all(after > before for before, after in distances.values()),
        ),
        Claim(
            "Heads are not equally important.",
            f"Loss {losses['']:.2f} with all heads. Without {largest} it is "
            f"{losses[largest]:.2f}; the median head adds {median:.3f}.",
            rises[largest] > 3 * max(median, 0.001),
        ),
    )


def _plots(task: Predictor, example: Example, maps: dict[str, Tensor]) -> dict[str, Plot]:
    attention = task.attend([example])[0]
    source, target = without_marks(attention.source), without_marks(attention.target)
    inputs = ["<START>", *target[:-1]]
    labels = {ENCODER: (source, source), MASKED: (inputs, inputs), CROSS: (target, source)}
    captions = {
        CROSS: "rows are predicted words, columns source words",
        MASKED: "rows and columns are inputs of the decoder, shifted right; no weight lies above "
        "the diagonal",
        ENCODER: "rows and columns are source words, and every word may attend to all",
    }
    plots = {}
    for kind, caption in captions.items():
        rows, columns = labels[kind]
        layer = maps[kind][-1, :, : len(rows), : len(columns)]
        figure = word_maps(
            {f"head {head}": WordMap(one, rows, columns) for head, one in enumerate(layer, 1)},
            columns=2,
        )
        name = f"attention-heads-{kind.split()[0].removesuffix('-attention')}"
        plots[name] = Plot(
            figure, f"The four heads of the last {kind} on “{example.source}”: {caption}."
        )
    return plots
