"""Where a classifier of images or videos looks: attention rolled out, or what each cell counts."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.attend import Attention
from regard.attention.recording import record
from regard.attention.rollout import rollout
from regard.data.example import Example
from regard.data.labels import LabelledBatch
from regard.data.modality import JoinedField
from regard.models.classifier import Classifier
from regard.models.encoders import TextImageEncoder, VideoEncoder, VitEncoder
from regard.models.interfaces import Encoder, Memory, masked_mean
from regard.tasks.prediction import AttentionMap, as_picture, cell_names

if TYPE_CHECKING:
    from regard.tasks.classification.task import ClassificationTask

ROLLOUT = "attention rollout"
"""Attention multiplied through all layers: where what is decided by comes from."""
CAM = "gradient x activation"
"""What stands in for attention: how much each cell's state moves the label's logit (Grad-CAM)."""


def look_at_images(task: "ClassificationTask", examples: Sequence[Example]) -> list[AttentionMap]:
    """Return how much each cell of what every example shows counts for its label: one row.

    Where words and cells have looked at each other, the words count as well.
    """
    maps: list[AttentionMap | None] = [None] * len(examples)
    labels = [task.labels.read(example.target) for example in examples]
    for batch in task.batches(examples, labels):
        inputs, asked = task.inputs(batch), batch.labels.to(task.device)
        weights, layout, kind = _look(task.model, inputs, batch.source_mask, labels=asked)
        num_cells = math.prod(layout)
        for place, row in enumerate(batch.rows):
            cells, words = (
                weights[place]
                .cpu()
                .float()
                .split_with_sizes([num_cells, weights.shape[1] - num_cells])
            )
            pieces = _pieces(task, batch, place)[: len(words)]
            # People read the words first.
            shares = torch.cat([words[: len(pieces)], cells])
            maps[row] = AttentionMap(
                source=(*pieces, *cell_names(layout)),
                target=(task.labels.write(labels[row]),),
                weights=shares[None, None, None],
                kind=kind,
                grid=layout,
                image=as_picture(_pictures(task, batch)[place]),
            )
    return [found for found in maps if found is not None]


def _pictures(task: "ClassificationTask", batch: LabelledBatch) -> Tensor:
    pictures: Tensor = batch.source[1] if isinstance(task.source, JoinedField) else batch.source
    return pictures


def _pieces(task: "ClassificationTask", batch: LabelledBatch, place: int) -> tuple[str, ...]:
    """Return the words of a source, where it has some."""
    if not isinstance(task.source, JoinedField):
        return ()
    ids = batch.source[0][place][batch.source_mask[place]]
    return task.source.text.tokenizer.tokens(ids.tolist())


def _look(
    model: Classifier, inputs: Any, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, tuple[int, ...], str]:
    """Return weights (B, L) over the cells, and the words after them where these count.

    They sum to one. With them come the grid, and what the weights are.
    """
    encoder = model.encoder
    if (blocks := _mixing(encoder)) is not None:
        with torch.inference_mode(), record(blocks, is_self=True) as maps:
            memory = encoder(inputs, mask)
        rolled = rollout(maps.stack_self())  # (B, L, L)
        # Padding looks, too, but nobody asks it.
        return masked_mean(rolled, memory.mask), _layout(memory), ROLLOUT
    eyes = _eyes(encoder)
    if isinstance(eyes, VitEncoder) and _has_attention(eyes):
        with torch.inference_mode(), record(eyes, is_self=True) as maps:
            memory = encoder(inputs, mask)
        rolled = rollout(maps.stack_self())  # (B, L, L)
        rows = rolled[:, :1] if eyes.num_before else rolled
        weights = rows.mean(1)[:, eyes.num_before :]  # (B, P)
        return _shares(weights), _layout(memory), ROLLOUT
    return _activation_map(model, inputs, mask, labels=labels)


def _mixing(encoder: Encoder) -> torch.nn.Module | None:
    """Return the blocks, if any, in which words and cells, or cells of all frames, look around."""
    if isinstance(encoder, TextImageEncoder):
        return encoder.blocks if len(encoder.blocks) else None
    if isinstance(encoder, VideoEncoder) and _has_attention(encoder.over_time):
        return encoder.over_time
    return None


def _eyes(encoder: Encoder) -> Encoder:
    """Return what sees: in a joined encoder without blocks, words and image meet only later."""
    return encoder.image if isinstance(encoder, TextImageEncoder) else encoder


def _activation_map(
    model: Classifier, inputs: Any, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, tuple[int, ...], str]:
    """Weigh the states of the grid by the gradient of the label's logit (Selvaraju et al. 2017)."""
    seen: list[Memory] = []
    eyes = _eyes(model.encoder)
    hook = eyes.register_forward_hook(lambda _module, _inputs, memory: seen.append(memory))
    try:
        with torch.enable_grad():
            # The weights' gradients are not asked for; the states' are, so something must lead
            # to them even where the weights are frozen.
            logits = model(_with_gradient(inputs), mask)
            asked = logits.gather(1, labels[:, None]).sum()
            (gradient,) = torch.autograd.grad(asked, [seen[0].states])
    finally:
        hook.remove()
    states = seen[0].states.detach()
    counts = (gradient.mean(1, keepdim=True) * states).sum(-1).clamp(min=0)  # (B, P)
    return _shares(counts), _layout(seen[0]), CAM


def _with_gradient(inputs: Any) -> Any:
    if isinstance(inputs, tuple):
        *words, images = inputs
        return (*words, images.detach().requires_grad_())
    return inputs.detach().requires_grad_()


def _shares(counts: Tensor) -> Tensor:
    """Divide by the sum; where nothing counts, all do alike."""
    total = counts.sum(-1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp(min=1e-12), 1 / counts.shape[-1])


def _layout(memory: Memory) -> tuple[int, ...]:
    assert memory.layout is not None
    return memory.layout


def _has_attention(module: torch.nn.Module) -> bool:
    return any(isinstance(part, Attention) for part in module.modules())
