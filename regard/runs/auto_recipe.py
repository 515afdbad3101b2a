"""Automatic choice of a recipe from the training data and the device, with reasons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.modality import detect_modality
from regard.data.text.field import texts_of
from regard.metrics.table import ERROR_RATES
from regard.runs.auto_tokens import WORD_LIMIT, choose_tokens

SMALL_DATA = 10_000
"""Number of pairs below which batches are smaller and the number of steps is fixed."""

LABEL_WORDS = 3
"""Largest mean number of words of a label; longer targets are captions or transcripts."""


FEW_STEPS = {"train.max_epochs": 0, "train.max_steps": 2_000, "train.validate_every": 200}
"""Training length on small data."""


@dataclass(frozen=True)
class Choice:
    """A recipe, the settings changed because of the data, and the reasons."""

    recipe: str
    settings: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def choose_recipe(
    examples: Sequence[Example], device: torch.device, *, metric: str | None = None
) -> Choice:
    """Choose a recipe for the training data and the device.

    Args:
        examples: The training data.
        device: Device of the training.
        metric: Validation metric named in the reasons; chosen by the kind of tokens if not given.
    """
    modality = detect_modality(examples).name
    if modality == "text+image":
        raise ConfigError(
            "No recipe is chosen automatically for a text with an image. Name one: `--recipe "
            "scenes-questions-laptop` for labels, `--recipe multimodal-laptop` for texts."
        )
    if modality in CHOOSERS:
        return CHOOSERS[modality](examples, device)
    settings: dict[str, Any] = {"data.is_joint": False}
    if device.type == "cuda":
        recipe, reasons = "bahdanau2015", ["there is a GPU"]
        # The recipe ties source and target embeddings, which needs one joint vocabulary.
        settings["model.ties"] = "output"
    else:
        recipe, reasons = "bahdanau2015-laptop", ["there is no GPU"]
    for side, texts in (
        ("source", [text for example in examples for text in texts_of(example.source)]),
        ("target", [example.target for example in examples]),
    ):
        tokens = choose_tokens(texts)
        settings[f"data.{side}.kind"] = tokens.kind
        settings[f"data.{side}.vocab_size"] = tokens.vocab_size
        reasons.append(f"{side} tokens: {tokens.kind} ({tokens.reason})")
    # `tokens` are now those of the target, which decide the metrics.
    settings["metrics"] = list(tokens.metrics)
    settings["validation.metric"] = tokens.metrics[0]
    metric = metric or tokens.metrics[0]
    reasons.append(f"metric: {metric} ({'lower' if metric in ERROR_RATES else 'higher'} is better)")
    if len(examples) < SMALL_DATA:
        settings |= {"data.batch.max_sentences": 32, **FEW_STEPS}
        reasons.append(f"2,000 steps of 32 pairs (only {len(examples):,} pairs)")
    return Choice(recipe, settings, tuple(reasons))


def _choose_for_images(examples: Sequence[Example], device: torch.device) -> Choice:
    is_gpu = device.type == "cuda"
    settings: dict[str, Any] = {}
    if num_labels := _count_labels(examples):
        recipe = "he2016" if is_gpu else "he2016-laptop"
        reason = f"sources are images and targets labels ({num_labels:,} distinct ones)"
    else:
        recipe = "xu2015" if is_gpu else "xu2015-laptop"
        reason = "sources are images and targets captions"
        if not is_gpu:
            settings = {"data.target.vocab_size": 4 * WORD_LIMIT, "validation.metric": "cider"}
    return _with_steps(examples, recipe, settings, is_gpu=is_gpu, reason=reason)


def _choose_for_audio(examples: Sequence[Example], device: torch.device) -> Choice:
    is_gpu = device.type == "cuda"
    if num_labels := _count_labels(examples):
        reason = f"sources are recordings and targets labels ({num_labels:,} distinct ones)"
        return _with_steps(examples, "sound-labels", {}, is_gpu=is_gpu, reason=reason)
    recipe = "chan2016" if is_gpu else "chan2016-laptop"
    tokens = choose_tokens([example.target for example in examples])
    # Transcripts are compared by words or characters, also if tokens are subwords.
    metric = "cer" if tokens.kind == "char" else "wer"
    settings = {
        "data.target.kind": tokens.kind,
        "data.target.vocab_size": tokens.vocab_size,
        "validation.metric": metric,
    }
    reason = f"sources are recordings; target tokens: {tokens.kind} ({tokens.reason})"
    return _with_steps(examples, recipe, settings, is_gpu=is_gpu, reason=reason)


def _choose_for_videos(examples: Sequence[Example], device: torch.device) -> Choice:
    is_gpu = device.type == "cuda"
    num_labels = _count_labels(examples)
    recipe = "moving-directions" if num_labels else "moving"
    targets = f"labels ({num_labels:,} distinct ones)" if num_labels else "captions"
    reason = f"sources are videos and targets {targets}"
    recipe = recipe if is_gpu else f"{recipe}-laptop"
    return _with_steps(examples, recipe, {}, is_gpu=is_gpu, reason=reason)


CHOOSERS: dict[str, Callable[[Sequence[Example], torch.device], Choice]] = {
    "image": _choose_for_images,
    "audio": _choose_for_audio,
    "video": _choose_for_videos,
}
"""Choice by modality; text has no entry."""


def _count_labels(examples: Sequence[Example]) -> int:
    """Return the number of distinct labels, or 0 if the targets are texts."""
    labels = {example.target for example in examples}
    mean_words = sum(len(label.split()) for label in labels) / len(labels)
    is_label = mean_words <= LABEL_WORDS and 2 * len(labels) <= len(examples)
    return len(labels) if is_label else 0


def _with_steps(
    examples: Sequence[Example], recipe: str, settings: dict[str, Any], *, is_gpu: bool, reason: str
) -> Choice:
    reasons = ["there is a GPU" if is_gpu else "there is no GPU", reason]
    if len(examples) < SMALL_DATA:
        settings = settings | FEW_STEPS
        reasons.append(f"2,000 steps (only {len(examples):,} examples)")
    return Choice(recipe, settings, tuple(reasons))
