"""Attention of a classifier over images and videos: attention rollout, or Grad-CAM."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.attend import Attention
from regard.attention.recording import record
from regard.attention.rollout import rollout
from regard.data.labels import LabelledBatch
from regard.data.modality import JoinedField
from regard.models.classifier import Classifier
from regard.models.encoders.text_image import TextImageEncoder
from regard.models.encoders.video import VideoEncoder
from regard.models.encoders.vit import VitEncoder
from regard.models.interfaces import Encoder, Memory, masked_mean
from regard.tasks.prediction import AttentionMap, as_picture, cell_names

if TYPE_CHECKING:
    from regard.tasks.classification.task import ClassificationTask

ROLLOUT = "attention rollout"
"""The kind of a map of attention weights multiplied through all layers."""
CAM = "gradient x activation"
"""The kind of a map without attention: how much each state moves the logit of the label."""


def has_attention(module: torch.nn.Module) -> bool:
    """Return whether a part of a module is attention."""
    return any(isinstance(part, Attention) for part in module.modules())


def label_gradient(logits: Tensor, labels: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient of the logits (B, V) of labels (B,) with respect to inputs."""
    (gradient,) = torch.autograd.grad(logits.gather(1, labels[:, None]).sum(), [inputs])
    return gradient


def attend_images(
    task: "ClassificationTask", field: Any, batch: LabelledBatch
) -> list[AttentionMap]:
    """Return the weight of each cell of an image or video for its label: one row.

    If tokens and cells attend to each other, the tokens have weights, too.
    """
    inputs, labels = task.inputs(batch), batch.labels.to(task.device)
    weights, layout, kind = _weigh_cells(task.model, inputs, batch.source_mask, labels=labels)
    num_cells = math.prod(layout)
    is_joined = isinstance(field, JoinedField)
    images: Tensor = batch.source[1] if is_joined else batch.source
    maps = []
    for row, own in enumerate(weights.cpu().float()):
        cells, tokens = own[:num_cells], own[num_cells:]
        pieces: tuple[str, ...] = ()
        if is_joined:
            ids = batch.source[0][row][batch.source_mask[row]].tolist()
            pieces = field.text.tokenizer.tokens(ids)[: len(tokens)]
        # In a map, tokens come before cells.
        shares = torch.cat([tokens[: len(pieces)], cells])
        maps.append(
            AttentionMap(
                source=(*pieces, *cell_names(layout)),
                target=(task.labels.write(int(batch.labels[row])),),
                weights=shares[None, None, None],
                kind=kind,
                grid=layout,
                image=as_picture(images[row]),
            )
        )
    return maps


def _weigh_cells(
    model: Classifier, inputs: Any, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, tuple[int, ...], str]:
    """Return weights (B, L) over the cells, then over tokens if these have any.

    They sum to one. Beside them are returned the grid, and what the weights are.
    """
    encoder = model.encoder
    if (blocks := _joint_blocks(encoder)) is not None:
        with torch.inference_mode(), record(blocks, is_self=True) as maps:
            memory = encoder(inputs, mask)
        rolled = rollout(maps.stack_self())  # (B, L, L)
        return masked_mean(rolled, memory.mask), _layout(memory), ROLLOUT
    image_encoder = _image_encoder(encoder)
    if isinstance(image_encoder, VitEncoder) and has_attention(image_encoder):
        with torch.inference_mode(), record(image_encoder, is_self=True) as maps:
            memory = encoder(inputs, mask)
        rolled = rollout(maps.stack_self())  # (B, L, L)
        rows = rolled[:, :1] if image_encoder.num_before else rolled
        weights = rows.mean(1)[:, image_encoder.num_before :]  # (B, P)
        return _shares(weights), _layout(memory), ROLLOUT
    return _activation_map(model, inputs, mask, labels=labels)


def _joint_blocks(encoder: Encoder) -> torch.nn.Module | None:
    """Return the blocks in which tokens and cells, or cells of all frames, attend, if any."""
    if isinstance(encoder, TextImageEncoder):
        return encoder.blocks if len(encoder.blocks) else None
    if isinstance(encoder, VideoEncoder) and has_attention(encoder.over_time):
        return encoder.over_time
    return None


def _image_encoder(encoder: Encoder) -> Encoder:
    """Return the encoder of the images; without joint blocks, tokens and cells meet later."""
    return encoder.image if isinstance(encoder, TextImageEncoder) else encoder


def _activation_map(
    model: Classifier, inputs: Any, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, tuple[int, ...], str]:
    """Weigh the states of the grid by the gradient of the label's logit (Selvaraju et al. 2017)."""
    found: list[Memory] = []
    image_encoder = _image_encoder(model.encoder)
    hook = image_encoder.register_forward_hook(lambda _module, _inputs, one: found.append(one))
    try:
        with torch.enable_grad():
            # The states need a gradient even if all weights are frozen.
            logits = model(_with_gradient(inputs), mask)
            gradient = label_gradient(logits, labels, found[0].states)
    finally:
        hook.remove()
    states = found[0].states.detach()
    counts = (gradient.mean(1, keepdim=True) * states).sum(-1).clamp(min=0)  # (B, P)
    return _shares(counts), _layout(found[0]), CAM


def _with_gradient(inputs: Any) -> Any:
    if isinstance(inputs, tuple):
        *tokens, images = inputs
        return (*tokens, images.detach().requires_grad_())
    return inputs.detach().requires_grad_()


def _shares(counts: Tensor) -> Tensor:
    """Divide by the sum; if all are zero, all count alike."""
    total = counts.sum(-1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp(min=1e-12), 1 / counts.shape[-1])


def _layout(memory: Memory) -> tuple[int, ...]:
    assert memory.layout is not None
    return memory.layout
