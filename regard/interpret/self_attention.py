"""Self-attention of encoders and decoders, as maps between the positions of one sequence."""

import math
from typing import Any

import torch
from torch import nn

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.text.field import TextField
from regard.tasks.base import Task
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.task import Predictor
from regard.tasks.language_modeling import LanguageModelingTask
from regard.tasks.prediction import AttentionMap, cell_names

PARTS = ("encoder", "decoder")
"""Parts of a model whose self-attention can be plotted."""


def attend_to_self(task: Task[Any], example: Example, part: str) -> AttentionMap:
    """Return the self-attention weights of a part of a model; rows are queries.

    Args:
        task: A run of a model that generates text or predicts labels.
        example: The source with its target.
        part: `encoder` or `decoder`.
    """
    if part not in PARTS:
        raise ConfigError(f"`of` must be 'cross', 'encoder' or 'decoder', but is '{part}'.")
    if isinstance(task, LanguageModelingTask) and part == "decoder":
        (found,) = task.attend([example])
    elif isinstance(task, Predictor) and part == "decoder":
        found = _of_decoder(task, example)
    elif isinstance(task, Predictor | ClassificationTask) and part == "encoder":
        found = _of_encoder(task, example)
    else:
        raise ConfigError(
            f"The model of this run has no {part} to plot. Its task is '{task.recipe.task}'."
        )
    if not found.weights.shape[0]:
        raise ConfigError(f"The {part} of this run has no self-attention, so there is no map.")
    return found


def _of_decoder(task: Predictor, example: Example) -> AttentionMap:
    parsed = Example(task.parse_source(example.source), example.target)
    (batch,) = task.batches([parsed])
    inputs = batch.target[:, :-1].to(task.device)
    with torch.inference_mode(), record(task.model.decoder, is_self=True) as recorded:
        task.model(task.inputs(batch), batch.source_mask, inputs)
    tokens = task.target.tokenizer.tokens(inputs[0].tolist())
    return AttentionMap.of_self_attention(tokens, recorded)


def _of_encoder(task: Predictor | ClassificationTask, example: Example) -> AttentionMap:
    parsed = task.parse_source(example.source)
    (batch,) = task.batches([Example(parsed, example.target)])
    encoder: nn.Module = task.encoder
    with torch.inference_mode(), record(encoder, is_self=True) as recorded:
        memory = encoder(task.inputs(batch), batch.source_mask)
    if not recorded.num_layers:
        return AttentionMap.of_self_attention((), recorded)
    length = recorded.stack_self().shape[-1]
    names: tuple[str, ...] = ()
    if isinstance(task.source, TextField):
        ids = batch.source[0][batch.source_mask[0]].tolist()
        names = task.source.tokenizer.tokens(ids)
    elif memory.layout is not None:
        # Tokens such as the class token come before the cells.
        names = cell_names(memory.layout)
        names = (*["<class>"] * (length - math.prod(memory.layout)), *names)
    if len(names) != length:
        names = tuple(str(number) for number in range(1, length + 1))
    return AttentionMap.of_self_attention(names, recorded)
