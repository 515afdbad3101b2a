"""Forced passes of each task: translation, continuation of a text, and prediction of a label."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.data.audio.field import AudioField
from regard.data.batch import Batch
from regard.data.example import Example
from regard.data.text.field import TextField, as_text
from regard.interpret.forced import ForcedPass, is_not_last, shift_back, take_rows
from regard.interpret.sources import (
    GRID,
    GridSource,
    SourcePart,
    TextSource,
    delete_tokens,
    embed_tokens,
    find_embedding,
    is_content,
    replace_outputs,
)
from regard.models.ensemble import EnsembleDecoder
from regard.models.heads.pooling import AlignedPooling
from regard.models.language_model import token_log_probs
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.classification.attention import CAM, SALIENCY
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.attention import attend_batches
from regard.tasks.generation.task import Predictor
from regard.tasks.language_modeling import LanguageModelingTask
from regard.tasks.source_task import EncoderTask

NO_ATTENTION = (
    "The model of this run has no attention to its source, so there are no weights to show. Choose "
    "another method, such as 'gradients'."
)

MAX_CONTINUATION = 24
"""Maximum number of tokens by which a language model continues a text to be explained."""


class TranslationPass(ForcedPass):
    """Forced decoding of an encoder–decoder.

    Args:
        task: The run.
        source: The raw source.
        target: The target as text, or the token ids of a prediction.
    """

    def __init__(self, task: Predictor, source: Any, target: str | Sequence[int]) -> None:
        if task.recipe.model.ctc_weight == 1:
            raise ConfigError(
                "Only the CTC head of this run is trained, but attribution explains the decoder. "
                "Take a run whose `model.ctc.weight` is below 1."
            )
        if isinstance(task.model.decoder, EnsembleDecoder):
            raise ConfigError(
                "An explanation is for one model, but this is an ensemble. Name one run."
            )
        tokenizer = task.target.tokenizer
        ids = task.target.read(target)[1:] if isinstance(target, str) else list(target)
        self._task, self._pad = task, tokenizer.pad
        self.ids, self.target_names = tuple(ids), tokenizer.tokens(ids)
        self.num_classes = tokenizer.vocab_size
        self.text = task.target.write(ids)
        self._batch = forced_batch(task, source, ids)
        self.source = read_source(task, self._batch)
        full = self._batch.target[0].to(task.device)
        self._inputs, self._labels = full[:-1], full[1:]
        values = embed_tokens(self._inputs, tokenizer, task.model.decoder.embedding)
        # Column k is the input of position k + 1; the first input, the start token, is fixed.
        self._first = values[0][:1]
        self.prefix_values, self.prefix_baseline = (shift_back(part) for part in values)
        self.prefix_is_free = is_content(self._labels, tokenizer) & is_not_last(self._labels)

    def log_probs_of(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, T), with gradients; see `ForcedPass`."""
        model = self._task.model
        embedded = torch.cat([self._first.expand(len(prefix), 1, -1), prefix[:, :-1]], dim=1)
        with self.source.with_values(source) as (values, mask):
            memory = model.encode(values, mask)
        with replace_outputs((model.decoder.embedding, embedded)):
            logits = model.decoder(self._inputs.expand(len(prefix), -1), memory).logits
        return token_log_probs(logits, self._labels.expand(len(prefix), -1))

    def log_probs_without(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, T) without some inputs; see `ForcedPass`."""
        model = self._task.model
        values, mask = self.source.without(source)
        kept = torch.cat([torch.ones_like(prefix[:, :1]), prefix[:, :-1]], dim=1)
        tokens, _ = delete_tokens(self._inputs, kept, self._pad)
        with torch.inference_mode():
            logits = model.decoder(tokens, model.encode(values, mask)).logits
            # The position of the last kept token before each output.
            logits = take_rows(logits, kept.cumsum(1) - 1)
            return token_log_probs(logits, self._labels.expand(len(prefix), -1))

    def attention(self) -> tuple[Tensor, Tensor]:
        """Return attention weights (T, S) and (T, T); see `ForcedPass`."""
        (found,) = attend_batches(self._task, [self._batch])
        if not found.weights.shape[0]:
            raise ConfigError(NO_ATTENTION)
        weights = self.source.attention_by_part(found.mean())
        return weights, self._self_attention()

    def _self_attention(self) -> Tensor:
        """Return the weights of the decoder on earlier tokens of the target, (T, T)."""
        model, batch = self._task.model, self._batch
        with torch.inference_mode(), record(model.decoder, is_self=True) as recorded:
            model(self._task.inputs(batch), batch.source_mask, self._inputs[None])
        if not recorded.num_layers:
            return torch.zeros(self.num_outputs, self.num_outputs)
        weights = recorded.stack_self()[0].mean((0, 1)).cpu().float()  # (T, T)
        return shift_back(weights.T).T


class ContinuationPass(ForcedPass):
    """Forced decoding of a language model: the prompt is the source.

    Args:
        task: The run.
        source: The prompt.
        target: The continuation as text or token ids.
    """

    def __init__(
        self, task: LanguageModelingTask, source: str, target: str | Sequence[int]
    ) -> None:
        self._task, self._model = task, task.model
        tokenizer = task.text.tokenizer
        ids = read_continuation(task, source, target) if isinstance(target, str) else list(target)
        if not ids:
            raise ConfigError("The continuation must have at least one token, but is empty.")
        prompt = TextSource(
            task.read_sources([source])[0], tokenizer, embedding=task.model.embedding
        )
        # The line end before the prompt is never left out.
        prompt.is_free[0], prompt.baseline[0] = False, prompt.values[0]
        self.source, self._num_prompt = prompt, len(prompt.ids)
        self.text = task.text.write(ids)
        self.ids, self.target_names = tuple(ids), tokenizer.tokens(ids)
        self.num_classes = tokenizer.vocab_size
        self._pad = tokenizer.pad
        self._labels = torch.tensor(ids, device=task.device)
        self._ids = torch.cat([prompt.ids, self._labels])
        self.prefix_values, self.prefix_baseline = embed_tokens(
            self._labels, tokenizer, self._model.embedding
        )
        self.prefix_is_free = is_content(self._labels, tokenizer) & is_not_last(self._labels)

    def log_probs_of(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, T), with gradients; see `ForcedPass`."""
        embedded = torch.cat([source, prefix[:, :-1]], dim=1)
        with replace_outputs((self._model.embedding, embedded)):
            logits = self._model(self._ids[:-1].expand(len(prefix), -1)).logits
        logits = logits[:, self._num_prompt - 1 :]
        return token_log_probs(logits, self._labels.expand(len(prefix), -1))

    def log_probs_without(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, T) without some inputs; see `ForcedPass`."""
        kept = torch.cat([source, prefix[:, :-1]], dim=1)
        tokens, _ = delete_tokens(self._ids[:-1], kept, self._pad)
        with torch.inference_mode():
            rows = kept.cumsum(1)[:, source.shape[1] - 1 :] - 1
            logits = take_rows(self._model(tokens).logits, rows)
            return token_log_probs(logits, self._labels.expand(len(prefix), -1))

    def attention(self) -> tuple[Tensor, Tensor]:
        """Return attention weights (T, S) and (T, T); see `ForcedPass`."""
        with torch.inference_mode(), record(self._model, is_self=True) as recorded:
            self._model(self._ids[None, :-1])
        if not recorded.num_layers:
            raise ConfigError(NO_ATTENTION)
        first = self._num_prompt
        weights = recorded.stack_self()[0].mean((0, 1))[first - 1 :].cpu().float()
        prefix = torch.zeros(self.num_outputs, self.num_outputs)
        prefix[:, :-1] = weights[:, first:]
        return weights[:, :first], prefix


class LabelPass(ForcedPass):
    """The label of a source: one output token, which depends on the source alone.

    Args:
        task: The run.
        source: The raw source.
        target: The label, or its index as the only token id.
    """

    def __init__(self, task: ClassificationTask, source: Any, target: str | Sequence[int]) -> None:
        if not isinstance(target, str):
            target = task.labels.write(*target)
        self._task, self._example = task, Example(source, target)
        self._label, self.num_classes = task.labels.read(target), task.labels.size
        self.ids, self.text, self.target_names = (self._label,), target, (target,)
        (batch,) = task.batches([self._example])
        self.source = read_source(task, batch)
        self.prefix_values = self.prefix_baseline = torch.zeros(1, 0, device=task.device)
        self.prefix_is_free = torch.zeros(1, dtype=torch.bool, device=task.device)

    def log_probs_of(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, 1), with gradients; see `ForcedPass`."""
        with self.source.with_values(source) as (values, mask):
            return self._choose(self._task.model(values, mask))

    def log_probs_without(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return log-probabilities (B, 1) without some inputs; see `ForcedPass`."""
        values, mask = self.source.without(source)
        with torch.inference_mode():
            return self._choose(self._task.model(values, mask))

    def attention(self) -> tuple[Tensor, Tensor]:
        """Return attention weights (1, S) and (1, 1); see `ForcedPass`."""
        if isinstance(self._task.model.pooling, AlignedPooling):
            raise ConfigError(
                "The attention of this run aligns two texts, so it is no weight for the label. "
                "Choose another method, such as 'gradients'."
            )
        (found,) = self._task.attend([self._example])
        if found.kind in (SALIENCY, CAM) or not found.weights.shape[0]:
            raise ConfigError(NO_ATTENTION)
        return self.source.attention_by_part(found.mean()), torch.zeros(1, 1)

    def _choose(self, logits: Tensor) -> Tensor:
        labels = torch.full((len(logits), 1), self._label, device=logits.device)
        return token_log_probs(logits[:, None], labels)


def force(
    task: Task[Any],
    source: Any,
    target: str | Sequence[int] | None = None,
    *,
    search: SearchConfig | None = None,
) -> ForcedPass:
    """Return the forced pass of a source with its prediction, or with another target.

    Args:
        task: The run.
        source: The raw source.
        target: A target, a continuation or a label in place of the prediction, or token ids.
        search: Settings of the search for the prediction; those of the recipe if not given.
    """
    if isinstance(source, str) and not source.strip():
        raise ConfigError("The source must have at least one word, but is empty.")
    if isinstance(task, Predictor | LanguageModelingTask):
        target = predict(task, source, search) if target is None else target
        kind = TranslationPass if isinstance(task, Predictor) else ContinuationPass
        return kind(task, source, target)  # type: ignore[arg-type]
    if isinstance(task, ClassificationTask):
        label = task.best_texts([source])[0] if target is None else target
        return LabelPass(task, source, label)
    raise ConfigError(
        "Explanations are for models that generate texts or predict labels, but the task of this "
        f"run is '{task.recipe.task}'."
    )


def forced_batch(task: Predictor, source: Any, ids: Sequence[int]) -> Batch:
    """Return the batch of a source and the token ids of its target, without the start token."""
    (batch,) = task.batches([Example(task.parse_source(source), task.target.write(ids))])
    full = torch.tensor([[task.target.tokenizer.sos, *ids]])
    # The text of a prediction need not be tokenised as the prediction was.
    return replace(batch, target=full, target_mask=torch.ones_like(full).bool())


def predict(
    task: Predictor | LanguageModelingTask,
    source: Any,
    search: SearchConfig | None = None,
    *,
    prefix: Sequence[int] = (),
) -> tuple[int, ...]:
    """Return the tokens of the best target, or of the best continuation of limited length.

    Args:
        task: The run.
        source: The raw source.
        search: The search settings; those of the recipe if not given.
        prefix: Tokens that the output begins with.
    """
    config = search or task.search
    if isinstance(task, Predictor):
        ids = _search(task, source, config, prefix=prefix)
    else:
        max_extra = min(config.max_extra, MAX_CONTINUATION)
        config = replace(config, max_ratio=0.0, max_extra=max_extra)
        prompt, numbers = task.text.read(source), [crc32(source.encode())]
        tokens = [*prompt, *prefix]
        ((best,),) = task.continue_tokens([tokens], config, num_best=1, numbers=numbers)
        ids = best.token_ids[len(prompt) :]
    if not ids:
        raise ConfigError("There is no output to explain: the prediction has no tokens.")
    return ids


def _search(
    task: Predictor, source: Any, search: SearchConfig, *, prefix: Sequence[int]
) -> tuple[int, ...]:
    parsed = task.parse_source(source)
    (batch,) = task.batches([Example(parsed)])
    limits = task.max_lengths(batch.source_mask, search).clamp(min=len(prefix) + 1)
    with torch.inference_mode():
        ((best,),) = task.generate(
            task.encode_batch(batch),
            search,
            max_lengths=limits,
            prefix=prefix,
            numbers=[crc32(as_text(parsed).encode())],
        )
    return best.tokens


def read_source(task: EncoderTask[Any], batch: Any) -> SourcePart:
    """Return the only source of a batch with its parts: tokens, cells of an image, or frames."""
    field, encoder = task.source_field, task.encoder
    if isinstance(field, TextField):
        ids = batch.source[0][batch.source_mask[0]].tolist()
        embedding = find_embedding(encoder)
        return TextSource(ids, field.tokenizer, embedding=embedding, encoder=encoder)
    if isinstance(batch.source, tuple):
        raise ConfigError(
            "Attribution is for sources of one kind, but the sources of this run have a text and "
            "an image. Choose 'attention' alone."
        )
    inputs = task.inputs(batch)
    with torch.inference_mode():
        memory = encoder(inputs, batch.source_mask)
    if isinstance(field, AudioField):
        num, step = memory.states.shape[1], field.config.hop_ms / 1000
        step *= len(inputs[0]) / num
        names = tuple(f"{number * step:.2f} s" for number in range(num))
        return GridSource(inputs[0], (num,), names=names)
    grid = memory.layout or ()
    if math.prod(grid) < 2:
        grid = tuple(min(GRID, size) for size in inputs.shape[-2:])
    return GridSource(inputs[0], grid)


def read_continuation(task: LanguageModelingTask, prompt: str, text: str) -> list[int]:
    """Return the tokens of a continuation, as in the whole text if the prompt's are the same."""
    before, whole = task.text.read_all([prompt, prompt + text])
    return whole[len(before) :] if whole[: len(before)] == before else task.text.read(text)
