"""A sensible recipe for the data and the machine, with the reasons."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.data.examples import Example

WORD_LIMIT = 2_000
"""Up to so many distinct words, words themselves are the best pieces."""

SMALL_DATA = 10_000
"""Fewer pairs than this are read more often, in smaller batches: they make too few steps else."""


@dataclass(frozen=True)
class Choice:
    """A recipe, the settings that the data changes in it, and why."""

    recipe: str
    settings: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def choose(examples: Sequence[Example], device: torch.device) -> Choice:
    """Choose a recipe for the training data and the device."""
    settings: dict[str, Any] = {"data.is_joint": False}
    if device.type == "cuda":
        recipe, reasons = "bahdanau2015", ["there is a GPU"]
        # Two vocabularies cannot share one embedding, as the recipe would have it.
        settings["model.ties"] = "output"
    else:
        recipe, reasons = "bahdanau2015-laptop", ["there is no GPU"]
    for side, texts in (
        ("source", [example.source for example in examples]),
        ("target", [example.target for example in examples]),
    ):
        kind, size, why = _choose_pieces(texts)
        settings[f"data.{side}.kind"] = kind
        settings[f"data.{side}.vocab_size"] = size
        reasons.append(f"{side} pieces: {kind} ({why})")
    if len(examples) < SMALL_DATA:
        settings |= {
            "data.batch.max_sentences": 32,
            "train.max_epochs": 0,
            "train.max_steps": 2_000,
            "train.validate_every": 200,
        }
        reasons.append(f"2,000 steps of 32 pairs (only {len(examples):,} pairs)")
    return Choice(recipe, settings, tuple(reasons))


def _choose_pieces(texts: Sequence[str]) -> tuple[str, int, str]:
    words = [text.split() for text in texts]
    distinct = {word for line in words for word in line}
    mean_length = sum(map(len, words)) / len(words)
    if mean_length < 1.5:
        return "char", 1_000, "most lines are a single word"
    if len(distinct) <= WORD_LIMIT:
        return "word", 4 * WORD_LIMIT, f"only {len(distinct):,} distinct words"
    size = 4_000 if len(texts) < 10_000 else 8_000
    return "bpe", size, f"{len(distinct):,} distinct words"
