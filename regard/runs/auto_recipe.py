"""Automatic choice of a recipe from the training data and the device, with reasons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from regard.core.errors import ConfigError
from regard.data.corpus import sample
from regard.data.example import Example
from regard.data.modality import detect_modality
from regard.data.text.field import texts_of
from regard.metrics.table import ERROR_RATES
from regard.runs.auto_tokens import MAX_INSPECTED, WORD_LIMIT, TokenChoice, choose_tokens

SMALL_DATA = 10_000
"""Number of examples below which the number of steps is fixed, and a small model is enough."""

TINY_DATA = 1_000
"""Number of sentence pairs below which every epoch is validated."""

DROPOUT = {SMALL_DATA: 0.2, 25_000: 0.1}
"""Dropout of `modern-laptop` by the number of pairs below which it is used."""

LABEL_WORDS = 3
"""Largest mean number of words of a label; longer targets are captions or transcripts."""

LAPTOP_OUTLOOK = (
    "About 11 minutes on 2 cores. A GPU would train `modern-small`: 39.9 instead of 37.4 BLEU on "
    "the 29,000 pairs of Multi30k. To train longer: train.max_steps=3200."
)
MORE_PAIRS = (
    "At most 11 minutes on 2 cores. More pairs help more than a GPU or more steps: on image "
    "descriptions, 20,000 instead of 5,000 gained 8 BLEU."
)
"""Outlook of `modern-laptop`, measured in docs/results/laptop-translation.md."""

FEW_STEPS = {"train.max_epochs": 0, "train.max_steps": 2_000, "train.validate_every": 200}
"""Training length on small data."""


@dataclass(frozen=True)
class Choice:
    """A recipe, the settings changed because of the data, and the reasons."""

    recipe: str
    settings: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    outlook: str = ""
    """Training time, and the gain of a GPU or of more time, as measured."""


def choose_recipe(
    examples: Sequence[Example],
    device: torch.device,
    *,
    metric: str | None = None,
    overrides: Sequence[str] = (),
) -> Choice:
    """Choose a recipe for the training data and the device.

    Args:
        examples: The training data.
        device: Device of the training.
        metric: Validation metric named in the reasons; chosen by the kind of tokens if not given.
        overrides: Overrides of the user; with those of tokens, the sides share no vocabulary.
    """
    modality = detect_modality(examples).name
    if modality == "text+image":
        raise ConfigError(
            "No recipe is chosen automatically for a text with an image. Name one: `--recipe "
            "scenes-questions-laptop` for labels, `--recipe multimodal-laptop` for texts."
        )
    if modality in CHOOSERS:
        return CHOOSERS[modality](examples, device)
    sampled = sample(examples, MAX_INSPECTED)
    source, target = (
        choose_tokens(texts, num_per_text=len(examples) // len(sampled))
        for texts in (
            [text for example in sampled for text in texts_of(example.source)],
            [example.target for example in sampled],
        )
    )
    metric = metric or target.metrics[0]
    given = [one.partition("=")[0] for one in overrides]
    reasons = [
        f"{side} tokens: {tokens.kind} ({tokens.reason})"
        for side, tokens in (("source", source), ("target", target))
        if f"data.{side}.kind" not in given
    ]
    reasons.append(f"metric: {metric} ({'lower' if metric in ERROR_RATES else 'higher'} is better)")
    # Words and symbols, such as names and pronunciations, are compared by error rates.
    is_words = target.metrics[0] in ERROR_RATES
    choose_for_text = _choose_for_words if is_words else _choose_for_sentences
    is_set = any(key == "data.source.kind" or key.startswith("data.target.") for key in given)
    # Subwords of both sides share one vocabulary, as in Vaswani et al. 2017.
    is_joint = not (is_words or is_set) and source.kind == target.kind == "bpe"
    choice = choose_for_text(examples, device, _token_settings(source, target, is_joint=is_joint))
    device_reason, *others = choice.reasons
    return replace(choice, reasons=(device_reason, *reasons, *others))


def _token_settings(source: TokenChoice, target: TokenChoice, *, is_joint: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "data.is_joint": is_joint,
        "model.ties": "all" if is_joint else "output",
        "metrics": list(target.metrics),
        "validation.metric": target.metrics[0],
    }
    for side, tokens in (("source", source), ("target", target)):
        settings[f"data.{side}.kind"] = tokens.kind
        settings[f"data.{side}.vocab_size"] = tokens.vocab_size
    return settings


def _choose_for_words(
    examples: Sequence[Example], device: torch.device, settings: dict[str, Any]
) -> Choice:
    recipe = "bahdanau2015-laptop" if device.type == "cpu" else "bahdanau2015"
    reasons = [_device_reason(device)]
    if len(examples) < SMALL_DATA:
        settings = settings | {"data.batch.max_sentences": 32, **FEW_STEPS}
        reasons.append(f"2,000 steps of 32 pairs (only {len(examples):,} pairs)")
    return Choice(recipe, settings, tuple(reasons))


def _choose_for_sentences(
    examples: Sequence[Example], device: torch.device, settings: dict[str, Any]
) -> Choice:
    reasons = [_device_reason(device)]
    if device.type != "cpu" and len(examples) >= SMALL_DATA:
        return Choice("modern-small", settings, tuple(reasons))
    dropout = next((rate for limit, rate in DROPOUT.items() if len(examples) < limit), 0.0)
    if dropout:
        settings = settings | {"model.encoder.dropout": dropout, "model.decoder.dropout": dropout}
        reasons.append(f"dropout {dropout} (only {len(examples):,} pairs)")
    if len(examples) < TINY_DATA:
        # Few steps are made: without several validations over-fitting would go unnoticed.
        settings = settings | {"train.validate_every": 0}
    outlook = MORE_PAIRS if len(examples) < SMALL_DATA else LAPTOP_OUTLOOK
    return Choice("modern-laptop", settings, tuple(reasons), outlook)


def _device_reason(device: torch.device) -> str:
    return "no GPU" if device.type == "cpu" else "on a GPU"


def _choose_for_images(examples: Sequence[Example], device: torch.device) -> Choice:
    is_gpu = device.type != "cpu"
    settings: dict[str, Any] = {}
    if num_labels := _count_labels(examples):
        recipe = "he2016" if is_gpu else "he2016-laptop"
        reason = f"sources are images and targets labels ({num_labels:,} distinct ones)"
    else:
        recipe = "xu2015" if is_gpu else "xu2015-laptop"
        reason = "sources are images and targets captions"
        if not is_gpu:
            settings = {"data.target.vocab_size": 4 * WORD_LIMIT, "validation.metric": "cider"}
    return _with_steps(examples, device, Choice(recipe, settings, (reason,)))


def _choose_for_audio(examples: Sequence[Example], device: torch.device) -> Choice:
    if num_labels := _count_labels(examples):
        reason = f"sources are recordings and targets labels ({num_labels:,} distinct ones)"
        return _with_steps(examples, device, Choice("sound-labels", {}, (reason,)))
    recipe = "chan2016-laptop" if device.type == "cpu" else "chan2016"
    tokens = choose_tokens([example.target for example in examples])
    # Transcripts are compared by words or characters, also if tokens are subwords.
    metric = "cer" if tokens.kind == "char" else "wer"
    settings = {
        "data.target.kind": tokens.kind,
        "data.target.vocab_size": tokens.vocab_size,
        "validation.metric": metric,
    }
    reason = f"sources are recordings; target tokens: {tokens.kind} ({tokens.reason})"
    return _with_steps(examples, device, Choice(recipe, settings, (reason,)))


def _choose_for_videos(examples: Sequence[Example], device: torch.device) -> Choice:
    num_labels = _count_labels(examples)
    recipe = "moving-directions" if num_labels else "moving"
    targets = f"labels ({num_labels:,} distinct ones)" if num_labels else "captions"
    reason = f"sources are videos and targets {targets}"
    recipe = f"{recipe}-laptop" if device.type == "cpu" else recipe
    return _with_steps(examples, device, Choice(recipe, {}, (reason,)))


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


def _with_steps(examples: Sequence[Example], device: torch.device, choice: Choice) -> Choice:
    """Name the device in the reasons, and fix the number of steps on small data."""
    settings, reasons = choice.settings, (_device_reason(device), *choice.reasons)
    if len(examples) < SMALL_DATA:
        settings = settings | FEW_STEPS
        reasons += (f"2,000 steps (only {len(examples):,} examples)",)
    return Choice(choice.recipe, settings, reasons)
