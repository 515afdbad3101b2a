"""Roles of queries, keys and values on a sentence, and attention to a set without order."""

from itertools import permutations
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.multihead import CrossAttention
from regard.attention.pooling import AttentionPooling
from regard.attention.positions import sinusoids
from regard.attention.scores import SCORES, DotScore
from regard.plots.word_maps import WordMap, word_maps
from regard.studies.reproduce.findings import Claim, Findings, Plot, Table

SOURCE = ("elle", "alla", "à", "la", "plage")
KEYS = ("subject", "verb", "filler", "filler", "location")
VALUES = ("she", "to go, past", "–", "–", "beach")
TARGET = ("she", "went", "to", "the", "?????")
"""Output of the lectures; its queries are the keys."""

SHARPNESS = 10.0
"""Length of a query: the dot product of a query with its own key."""

NUM_POSITIONS, DIM = 8, 16
"""Size of the random memory whose positions are shuffled."""

LOCATION = "location"
"""The score that depends on the index of a key instead of its contents."""


def queries_keys_values(seed: int, _folder: Path | None = None) -> Findings:
    """Select values by hand-set keys, and shuffle memories.

    Args:
        seed: Seed of the random memory.
    """
    contexts, weights = select(KEYS)
    differences = shuffle_differences(seed)
    deviation = sentence_deviation()
    return Findings(
        tables={
            "Values selected by the queries": _selected_table(contexts, weights),
            "Largest change of the output if the memory is shuffled": {
                name: {"change": difference} for name, difference in differences.items()
            },
        },
        claims=_claims(contexts, weights, deviation=deviation, differences=differences),
        plots={"queries-keys-values": _plot(weights)},
    )


def one_hot(names: tuple[str, ...], kinds: tuple[str, ...]) -> Tensor:
    """Return a row per name: 1 at its kind, else 0. A name that is no kind is a row of zeros."""
    rows = [[float(name == kind) for kind in kinds] for name in names]
    return torch.tensor(rows)


KINDS = ("subject", "verb", "filler", "location")
MEANINGS = ("she", "to go, past", "beach")


def select(queries: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    """Return the contexts over `MEANINGS` and the weights over the source of named queries."""
    attention = AttentionPooling(DotScore(len(KINDS), len(KINDS)))
    # Fillers have no meaning: their values are zeros.
    contexts, weights = attention(
        SHARPNESS * one_hot(queries, KINDS), one_hot(KEYS, KINDS), one_hot(VALUES, MEANINGS)
    )
    return contexts, weights


def sentence_deviation() -> float:
    """Return the largest change of a context over all orders of the source sentence."""
    attention = AttentionPooling(DotScore(len(KINDS), len(KINDS)))
    queries = SHARPNESS * one_hot(KEYS, KINDS)
    keys, values = one_hot(KEYS, KINDS), one_hot(VALUES, MEANINGS)
    expected, _ = attention(queries, keys, values)
    changes = []
    for order in permutations(range(len(SOURCE))):
        contexts, _ = attention(queries, keys[list(order)], values[list(order)])
        changes.append(float((contexts - expected).abs().max()))
    return max(changes)


def shuffle_differences(seed: int) -> dict[str, float]:
    """Return the largest change of the context of a random query if the memory is shuffled.

    Each score function attends to the same random memory, as does multi-head cross-attention,
    without positions and with sinusoidal positions added to the memory.
    """
    torch_state = torch.get_rng_state()
    torch.manual_seed(seed)
    modules = {
        name: AttentionPooling(kind(DIM, DIM, max_source=NUM_POSITIONS))
        for name, kind in SCORES.items()
    }
    heads = CrossAttention(dim=DIM, num_heads=4)
    memory, queries = torch.randn(NUM_POSITIONS, DIM), torch.randn(3, DIM)
    order = torch.randperm(NUM_POSITIONS)
    torch.set_rng_state(torch_state)
    positions = sinusoids(torch.arange(NUM_POSITIONS), DIM)
    differences = {}
    with torch.no_grad():
        for name, module in modules.items():
            before, _ = module(queries, memory, memory)
            after, _ = module(queries, memory[order], memory[order])
            differences[f"{name} score"] = float((before - after).abs().max())
        for name, added in (("without", 0 * positions), ("with", positions)):
            before, _ = heads(queries[None], (memory + added)[None])
            after, _ = heads(queries[None], (memory[order] + added)[None])
            differences[f"multi-head, {name} positions"] = float((before - after).abs().max())
    return differences


def _selected_table(contexts: Tensor, weights: Tensor) -> Table:
    rows: dict[str, dict[str, float | str]] = {}
    for word, key, context, row in zip(TARGET, KEYS, contexts, weights, strict=True):
        largest = float(row.max())
        attended = [
            source
            for source, weight in zip(SOURCE, row.tolist(), strict=True)
            if weight > 0.9 * largest
        ]
        meaning = MEANINGS[int(context.argmax())] if context.max() > 0.5 else "–"
        rows[word] = {
            "query": key,
            "attends to": " ".join(attended),
            "largest weight": largest,
            "context": meaning,
        }
    return rows


def _claims(
    contexts: Tensor, weights: Tensor, *, deviation: float, differences: dict[str, float]
) -> tuple[Claim, ...]:
    answer = MEANINGS[int(contexts[-1].argmax())]
    fillers = weights[2:4, 2:4]
    by_content = {
        name: change
        for name, change in differences.items()
        if "score" in name and LOCATION not in name
    }
    by_index = differences[f"{LOCATION} score"]
    without, with_positions = (
        differences[f"multi-head, {name} positions"] for name in ("without", "with")
    )
    return (
        Claim(
            "The query location selects the value beach: ????? = beach.",
            f"'{answer}' with weight {float(weights[-1, -1]):.4f} on plage",
            answer == "beach" and float(weights[-1, -1]) > 0.99,
        ),
        Claim(
            "Equal keys share the weight: the query filler attends to à and la alike.",
            f"weights {float(fillers.min()):.3f} to {float(fillers.max()):.3f}",
            bool((fillers - 0.5).abs().max() < 0.01),
        ),
        Claim(
            "The source needs no order: all 120 orders of the sentence give the same contexts.",
            f"largest change {deviation:.1g}",
            deviation < 1e-6,
        ),
        Claim(
            "Scores of contents do not depend on the order of the memory; a location score does.",
            f"largest change {max(by_content.values()):.1g} over {len(by_content)} scores, "
            f"{by_index:.2f} with the location score",
            max(by_content.values()) < 1e-4 < 0.01 < by_index,
        ),
        Claim(
            "Positions added to the memory make the output depend on its order.",
            f"change {with_positions:.2f} with positions, {without:.1g} without",
            without < 1e-5 < 0.01 < with_positions,
        ),
    )


def _plot(weights: Tensor) -> Plot:
    rows = [f"{word}: {query}" for word, query in zip(TARGET, KEYS, strict=True)]
    columns = [f"{word}: {key}" for word, key in zip(SOURCE, KEYS, strict=True)]
    figure = word_maps({"": WordMap(weights, rows, columns)}, has_values=True)
    caption = (
        "Weights of the queries (rows, with the target word that each predicts) over the keys of "
        "the source words (columns)."
    )
    return Plot(figure, caption)
