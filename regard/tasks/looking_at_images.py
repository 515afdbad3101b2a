"""Where a classifier of images looks: rolled out attention, or how much each cell counts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.attend import Attention
from regard.attention.record import record
from regard.attention.rollout import rollout
from regard.data.examples import Example
from regard.data.sources import JoinedField
from regard.models.classifier import Classifier
from regard.models.encoders import VitEncoder
from regard.models.interfaces import Memory
from regard.tasks.prediction import AttentionMap, as_picture, cell_names

if TYPE_CHECKING:
    from regard.tasks.classification import ClassificationTask

ROLLOUT = "attention rollout"
"""Attention multiplied through all layers: where what is decided by comes from."""
CAM = "gradient x activation"
"""What stands in for attention: how much each cell's state moves the label's logit (Grad-CAM)."""


def look_at_images(task: "ClassificationTask", examples: Sequence[Example]) -> list[AttentionMap]:
    """Return how much each cell of every example's image counts for its label: one row."""
    maps: list[AttentionMap | None] = [None] * len(examples)
    labels = [task.labels.read(example.target) for example in examples]
    for batch in task.batches(examples, labels):
        inputs, asked = task.inputs(batch), batch.labels.to(task.device)
        weights, layout, kind = _look(task.model, inputs, batch.source_mask, labels=asked)
        images = batch.source[1] if isinstance(task.source, JoinedField) else batch.source
        for place, row in enumerate(batch.rows):
            maps[row] = AttentionMap(
                source=cell_names(layout),
                target=(task.labels.write(labels[row]),),
                weights=weights[place][None, None, None].cpu().float(),
                kind=kind,
                grid=layout,
                image=as_picture(images[place]),
            )
    return [found for found in maps if found is not None]


def _look(
    model: Classifier, inputs: Tensor, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, tuple[int, int], str]:
    """Return weights (B, P) over the cells, which sum to one, the grid, and what they are."""
    encoder = model.encoder
    if isinstance(encoder, VitEncoder) and _has_attention(encoder):
        with torch.inference_mode(), record(encoder, is_self=True) as maps:
            memory = encoder(inputs, mask)
        rolled = rollout(maps.stack_self())  # (B, L, L)
        rows = rolled[:, :1] if encoder.num_before else rolled
        weights = rows.mean(1)[:, encoder.num_before :]  # (B, P)
        return _shares(weights), _layout(memory), ROLLOUT
    return _activation_map(model, inputs, mask, labels=labels)


def _activation_map(
    model: Classifier, inputs: Tensor, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, tuple[int, int], str]:
    """Weigh the states of the grid by the gradient of the label's logit (Selvaraju et al. 2017)."""
    seen: list[Memory] = []
    hook = model.encoder.register_forward_hook(lambda _module, _inputs, memory: seen.append(memory))
    try:
        with torch.enable_grad():
            # The weights' gradients are not asked for; the states' are, so something must lead
            # to them even where the weights are frozen.
            logits = model(_with_gradient(inputs), mask)
            asked = logits.gather(1, labels[:, None]).sum()
            layout = _layout(seen[0])
            cells = layout[0] * layout[1]
            (gradient,) = torch.autograd.grad(asked, [seen[0].states])
    finally:
        hook.remove()
    states, gradient = seen[0].states[:, :cells].detach(), gradient[:, :cells]
    counts = (gradient.mean(1, keepdim=True) * states).sum(-1).clamp(min=0)  # (B, P)
    return _shares(counts), layout, CAM


def _with_gradient(inputs: Any) -> Any:
    if isinstance(inputs, tuple):
        *words, images = inputs
        return (*words, images.detach().requires_grad_())
    return inputs.detach().requires_grad_()


def _shares(counts: Tensor) -> Tensor:
    """Divide by the sum; where nothing counts, all do alike."""
    total = counts.sum(-1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp(min=1e-12), 1 / counts.shape[-1])


def _layout(memory: Memory) -> tuple[int, int]:
    assert memory.layout is not None
    return memory.layout


def _has_attention(module: torch.nn.Module) -> bool:
    return any(isinstance(part, Attention) for part in module.modules())
