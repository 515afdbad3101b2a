"""A sensible recipe for the data and the machine, with the reasons."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.data.example import Example
from regard.data.modality import detect_modality
from regard.data.text.field import texts_of
from regard.metrics.table import ERROR_RATES

WORD_LIMIT = 2_000
"""Up to so many distinct words, words themselves are the best pieces."""

SMALL_DATA = 10_000
"""Fewer pairs than this are read more often, in smaller batches: they make too few steps else."""

SYMBOL_LENGTH = 2
"""What stands between blanks and is no longer than this on average is no word: a phone, a digit."""

WORD_LENGTH = 20
"""A line without blanks that is longer than this is no word, but text without blanks."""

LABEL_WORDS = 3
"""What is said of images or recordings in so few words, and of two of them alike, is a label."""


FEW_STEPS = {"train.max_epochs": 0, "train.max_steps": 2_000, "train.validate_every": 200}
"""How long a model is trained on small data."""


@dataclass(frozen=True)
class Choice:
    """A recipe, the settings that the data changes in it, and why."""

    recipe: str
    settings: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def choose(
    examples: Sequence[Example], device: torch.device, *, metric: str | None = None
) -> Choice:
    """Choose a recipe for the training data and the device.

    Args:
        examples: The training data.
        device: Where to train.
        metric: What was asked to judge by, which the reasons then name; by the pieces if not given.
    """
    choose_for = CHOOSERS.get(detect_modality(examples).name)
    if choose_for is not None:
        return choose_for(examples, device)
    settings: dict[str, Any] = {"data.is_joint": False}
    if device.type == "cuda":
        recipe, reasons = "bahdanau2015", ["there is a GPU"]
        # Two vocabularies cannot share one embedding, as the recipe would have it.
        settings["model.ties"] = "output"
    else:
        recipe, reasons = "bahdanau2015-laptop", ["there is no GPU"]
    for side, texts in (
        ("source", [text for example in examples for text in texts_of(example.source)]),
        ("target", [example.target for example in examples]),
    ):
        pieces = _choose_pieces(texts)
        settings[f"data.{side}.kind"] = pieces.kind
        settings[f"data.{side}.vocab_size"] = pieces.vocab_size
        reasons.append(f"{side} pieces: {pieces.kind} ({pieces.reason})")
    # The target's, which came last, say what an answer is made of.
    settings["metrics"] = list(pieces.metrics)
    settings["validation.metric"] = pieces.metrics[0]
    judge = metric or pieces.metrics[0]
    reasons.append(f"judged by {judge} ({'less' if judge in ERROR_RATES else 'more'} is better)")
    if len(examples) < SMALL_DATA:
        settings |= {"data.batch.max_sentences": 32, **FEW_STEPS}
        reasons.append(f"2,000 steps of 32 pairs (only {len(examples):,} pairs)")
    return Choice(recipe, settings, tuple(reasons))


def _choose_for_images(examples: Sequence[Example], device: torch.device) -> Choice:
    is_large = device.type == "cuda"
    settings: dict[str, Any] = {}
    if num := _num_labels(examples):
        recipe = "he2016" if is_large else "he2016-laptop"
        what = f"sources are images and targets labels ({num:,} distinct ones)"
    else:
        recipe = "xu2015" if is_large else "xu2015-laptop"
        what = "sources are images and targets captions"
        if not is_large:
            settings = {"data.target.vocab_size": 4 * WORD_LIMIT, "validation.metric": "cider"}
    return _with_steps(examples, recipe, settings, is_large=is_large, what=what)


def _choose_for_audio(examples: Sequence[Example], device: torch.device) -> Choice:
    is_large = device.type == "cuda"
    if num := _num_labels(examples):
        what = f"sources are recordings and targets labels ({num:,} distinct ones)"
        return _with_steps(examples, "sound-labels", {}, is_large=is_large, what=what)
    recipe = "chan2016" if is_large else "chan2016-laptop"
    pieces = _choose_pieces([example.target for example in examples])
    # What is heard is compared word by word, or letter by letter, whatever it is made of.
    metric = "cer" if pieces.kind == "char" else "wer"
    settings = {
        "data.target.kind": pieces.kind,
        "data.target.vocab_size": pieces.vocab_size,
        "validation.metric": metric,
    }
    what = f"sources are recordings; target pieces: {pieces.kind} ({pieces.reason})"
    return _with_steps(examples, recipe, settings, is_large=is_large, what=what)


CHOOSERS: dict[str, Callable[[Sequence[Example], torch.device], Choice]] = {
    "image": _choose_for_images,
    "audio": _choose_for_audio,
}
"""By modality; what is not here is treated as text."""


def _num_labels(examples: Sequence[Example]) -> int:
    """Return how many distinct labels there are, 0 where targets are texts."""
    labels = {example.target for example in examples}
    mean_words = sum(len(label.split()) for label in labels) / len(labels)
    is_label = mean_words <= LABEL_WORDS and 2 * len(labels) <= len(examples)
    return len(labels) if is_label else 0


def _with_steps(
    examples: Sequence[Example], recipe: str, settings: dict[str, Any], *, is_large: bool, what: str
) -> Choice:
    reasons = ["there is a GPU" if is_large else "there is no GPU", what]
    if len(examples) < SMALL_DATA:
        settings = settings | FEW_STEPS
        reasons.append(f"2,000 steps (only {len(examples):,} examples)")
    return Choice(recipe, settings, tuple(reasons))


@dataclass(frozen=True)
class Pieces:
    """What the texts of one side are cut into, and how answers made of it are judged."""

    kind: str
    vocab_size: int
    metrics: tuple[str, ...]
    reason: str


def _choose_pieces(texts: Sequence[str]) -> Pieces:
    words = [text.split() for text in texts]
    distinct = {word for line in words for word in line}
    mean_words = sum(map(len, words)) / len(words)
    if mean_words < 1.5 and _mean_length(texts) > WORD_LENGTH:
        why = f"text without blanks, {_mean_length(texts):.0f} characters a line"
        return Pieces("char", 8_000, ("chrf", "bleu_char", "cer", "accuracy"), why)
    if mean_words < 1.5:
        return Pieces("char", 1_000, ("cer", "accuracy"), "most lines are a single word")
    if len(distinct) <= WORD_LIMIT and _mean_length(distinct) <= SYMBOL_LENGTH:
        why = f"{len(distinct):,} distinct symbols between blanks"
        return Pieces("whitespace", 4 * WORD_LIMIT, ("per", "word_errors"), why)
    metrics = ("bleu", "chrf", "accuracy", "lecture_bleu")
    if len(distinct) <= WORD_LIMIT:
        return Pieces("word", 4 * WORD_LIMIT, metrics, f"only {len(distinct):,} distinct words")
    size = 4_000 if len(texts) < 10_000 else 8_000
    return Pieces("bpe", size, metrics, f"{len(distinct):,} distinct words")


def _mean_length(texts: Collection[str]) -> float:
    return sum(map(len, texts)) / len(texts)
