"""Attention of a classifier over its source, or a saliency map if it has no attention."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.attend import Attention
from regard.attention.recording import record
from regard.attention.rollout import rollout
from regard.data.audio.field import AudioField
from regard.data.example import Example
from regard.data.labels import LabelledBatch
from regard.data.modality import SourceField
from regard.data.text.field import TextField
from regard.models.classifier import Classifier
from regard.models.encoders.text_image import TextImageEncoder
from regard.models.encoders.video import VideoEncoder
from regard.models.encoders.vit import VitEncoder
from regard.models.heads.pooling import AlignedPooling, FirstPooling
from regard.models.interfaces import Encoder, Memory, TokenEncoder, masked_mean
from regard.tasks.batches import map_batches
from regard.tasks.prediction import AttentionMap, Recording, cell_names, to_image

if TYPE_CHECKING:
    from regard.tasks.classification.task import ClassificationTask

SALIENCY = "gradient x input"
"""The kind of a saliency map: gradient of the label's logit times input."""
ROLLOUT = "attention rollout"
"""The kind of a map of attention weights multiplied over all layers."""
CAM = "gradient x activation"
"""The kind of a class activation map: gradient of the label's logit times hidden state."""


def attend(task: "ClassificationTask", examples: Sequence[Example]) -> list[AttentionMap]:
    """Return the weight of each token, cell or frame for the label of each example: one row."""
    attend_batch: Callable[..., list[AttentionMap]] = _BY_MODALITY.get(
        task.source.modality, _attend_images
    )
    batches = task.batches(examples, task.read_targets(examples))
    return map_batches(
        lambda batch: attend_batch(task, task.source, batch),
        batches,
        description="Computing attention",
    )


def _attend_texts(
    task: "ClassificationTask", field: TextField, batch: LabelledBatch
) -> list[AttentionMap]:
    on_device = batch.to(task.device)
    weights, kind = weigh_tokens(
        task.model, on_device.source, batch.source_mask, labels=on_device.labels
    )
    aligned = None
    if isinstance(task.model.pooling, AlignedPooling):
        aligned = align(task.model, on_device.source, batch.source_mask).cpu().float()
    maps = []
    for row, label in enumerate(batch.labels.tolist()):
        ids = batch.source[row, : int(batch.source_mask[row].sum())].tolist()
        tokens = field.tokenizer.tokens(ids)
        # The length of the first of two texts, its end token included.
        first = ids.index(field.tokenizer.eos) + 1
        if aligned is not None and first < len(ids):
            cross = aligned[row, :, :, first : len(ids), :first]
            maps.append(AttentionMap(source=tokens[:first], target=tokens[first:], weights=cross))
        else:
            row_weights = weights[row, ..., : len(ids)].cpu().float()
            target = (task.labels.write(label),)
            maps.append(AttentionMap(source=tokens, target=target, weights=row_weights, kind=kind))
    return maps


def weigh_tokens(
    model: Classifier, source: Tensor, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, str]:
    """Compute the weight of each position of a text for its label.

    The weights are those of attention pooling; else the self-attention weights of the pooled
    position, or their mean over all positions; else, without attention or if the pooling aligns
    two texts, a saliency.

    Args:
        model: The classifier, in evaluation mode.
        source: (B, S) token ids.
        mask: (B, S), True = not padding.
        labels: (B,), label ids.

    Returns:
        Weights (B, N, H, 1, S), which sum to one over the positions, and their kind.
    """
    # The alignment of two texts is not a weight for the label.
    is_aligned = isinstance(model.pooling, AlignedPooling)
    if has_attention(model.pooling) and not is_aligned:
        return align(model, source, mask), "attention of the pooling"
    if has_attention(model.encoder) and not is_aligned:
        return _self_attention(model, source, mask), "self-attention"
    return _token_saliency(model, source, mask, labels=labels), SALIENCY


def align(model: Classifier, source: Tensor, mask: Tensor) -> Tensor:
    """Return the attention weights of the pooling: (B, N, H, T, S).

    Args:
        model: The classifier, in evaluation mode.
        source: (B, S) token ids.
        mask: (B, S), True = not padding.
    """
    with torch.inference_mode(), record(model.pooling) as maps:
        model(source, mask)
    return maps.stack()


def _self_attention(model: Classifier, source: Tensor, mask: Tensor) -> Tensor:
    with torch.inference_mode(), record(model.encoder, is_self=True) as maps:
        model(source, mask)
    weights = maps.stack_self()  # (B, N, H, S, S)
    if isinstance(model.pooling, FirstPooling):
        return weights[..., :1, :]
    rows = mask.to(weights.device)[:, None, None, :, None]  # (B, 1, 1, S, 1)
    total: Tensor = (weights * rows).sum(3, keepdim=True)  # (B, N, H, 1, S)
    return total / rows.sum(3, keepdim=True).clamp(min=1)


def _token_saliency(model: Classifier, source: Tensor, mask: Tensor, *, labels: Tensor) -> Tensor:
    """Return |gradient · embedding| of each token, divided by the sum: (B, 1, 1, 1, S)."""
    assert isinstance(model.encoder, TokenEncoder)
    # cuDNN computes gradients of recurrent layers only in training mode.
    with (
        torch.enable_grad(),
        torch.backends.cudnn.flags(enabled=False),
        _leaf_outputs(model.encoder.embedding) as embedded,
    ):
        gradient = label_gradient(model(source, mask), labels, embedded[0])
    saliency = (gradient * embedded[0]).sum(-1).abs() * mask.to(gradient.device)  # (B, S)
    total = saliency.sum(-1, keepdim=True).clamp(min=torch.finfo(saliency.dtype).tiny)
    return (saliency / total).detach()[:, None, None, None]  # (B, 1, 1, 1, S)


@contextmanager
def _leaf_outputs(module: torch.nn.Module) -> Iterator[list[Tensor]]:
    """Replace the outputs of a module by leaf tensors that require a gradient; collect them."""
    leaves: list[Tensor] = []

    def replace(_module: torch.nn.Module, _inputs: object, output: Tensor) -> Tensor:
        leaves.append(output.detach().requires_grad_())
        return leaves[-1]

    handle = module.register_forward_hook(replace)
    try:
        yield leaves
    finally:
        handle.remove()


def _attend_recordings(
    task: "ClassificationTask", field: AudioField, batch: LabelledBatch
) -> list[AttentionMap]:
    hop = field.config.hop_ms / 1000
    labels = batch.labels.to(task.device)
    weights = _frame_saliency(task.model, task.inputs(batch), batch.source_mask, labels=labels)
    maps = []
    for row, frame_weights in enumerate(weights.cpu()):
        mask = batch.source_mask[row]
        frames = batch.source[row][mask].numpy()  # (F, M)
        maps.append(
            AttentionMap(
                source=tuple(f"{number * hop:.2f} s" for number in range(len(frames))),
                target=(task.labels.write(int(batch.labels[row])),),
                weights=frame_weights[mask][None, None, None],
                kind=SALIENCY,
                recording=Recording(frames, hop, frames_per_position=1),
            )
        )
    return maps


def _frame_saliency(model: Classifier, inputs: Tensor, mask: Tensor, *, labels: Tensor) -> Tensor:
    """Return |gradient · frame| of standardised frames (B, F, M), divided by the sum: (B, F).

    The baseline of the saliency is the mean frame of the training data, which is zero.
    """
    # cuDNN computes gradients of recurrent layers only in training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        frames = inputs.detach().float().requires_grad_()
        gradient = label_gradient(model(frames, mask), labels, frames)
    mask = mask.to(frames.device)
    saliency = (gradient * frames.detach()).sum(-1).abs() * mask  # (B, F)
    # If all gradients are zero, the weights are uniform.
    saliency = torch.where(saliency.sum(1, keepdim=True) > 0, saliency, mask.float())
    return saliency / saliency.sum(1, keepdim=True)


def has_attention(module: torch.nn.Module) -> bool:
    """Return whether a module contains attention."""
    return any(isinstance(part, Attention) for part in module.modules())


def label_gradient(logits: Tensor, labels: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient of the logits (B, V) of labels (B,) with respect to inputs."""
    (gradient,) = torch.autograd.grad(logits.gather(1, labels[:, None]).sum(), [inputs])
    return gradient


def _attend_images(
    task: "ClassificationTask", field: SourceField, batch: LabelledBatch
) -> list[AttentionMap]:
    """Return the weight of each cell of an image or video for its label: one row.

    If tokens and cells attend to each other, tokens also have weights.
    """
    inputs, labels = task.inputs(batch), batch.labels.to(task.device)
    weights, memory, kind = _weigh_cells(task.model, inputs, batch.source_mask, labels=labels)
    assert memory.layout is not None
    num_cells = math.prod(memory.layout)
    images: Tensor = batch.source if field.text is None else batch.source[1]
    maps = []
    for row, row_weights in enumerate(weights.cpu().float()):
        cell_weights, token_weights = row_weights[:num_cells], row_weights[num_cells:]
        tokens: tuple[str, ...] = ()
        if field.text is not None:
            ids = batch.source[0][row][batch.source_mask[row]].tolist()
            tokens = field.text.tokenizer.tokens(ids)[: len(token_weights)]
        # In a map, tokens come before cells.
        joined = torch.cat([token_weights[: len(tokens)], cell_weights])
        maps.append(
            AttentionMap(
                source=(*tokens, *cell_names(memory.layout)),
                target=(task.labels.write(int(batch.labels[row])),),
                weights=joined[None, None, None],
                kind=kind,
                grid=memory.layout,
                image=to_image(images[row]),
            )
        )
    return maps


def _weigh_cells(
    model: Classifier, inputs: Any, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, Memory, str]:
    """Return weights (B, L) over the cells, then over tokens that attend to cells.

    The weights sum to one. Also return the memory of the cells, and the kind of the weights.
    """
    joint, image_encoder = _joint_blocks(model.encoder), _image_encoder(model.encoder)
    blocks = image_encoder if joint is None else joint
    if joint is None and not (isinstance(blocks, VitEncoder) and has_attention(blocks)):
        return _activation_map(model, inputs, mask, labels=labels)
    with torch.inference_mode(), record(blocks, is_self=True) as maps:
        memory = model.encoder(inputs, mask)
    rolled = rollout(maps.stack_self())  # (B, L, L)
    if not isinstance(blocks, VitEncoder):
        return masked_mean(rolled, memory.mask), memory, ROLLOUT
    rows = rolled[:, :1] if blocks.num_before else rolled
    weights = rows.mean(1)[:, blocks.num_before :]  # (B, P)
    return _normalize(weights), memory, ROLLOUT


def _joint_blocks(encoder: Encoder) -> torch.nn.Module | None:
    """Return the blocks in which tokens and cells, or cells of several frames, attend; or None."""
    if isinstance(encoder, TextImageEncoder):
        return encoder.blocks if len(encoder.blocks) else None
    if isinstance(encoder, VideoEncoder) and has_attention(encoder.over_time):
        return encoder.over_time
    return None


def _image_encoder(encoder: Encoder) -> Encoder:
    """Return the encoder of the images."""
    return encoder.image if isinstance(encoder, TextImageEncoder) else encoder


def _activation_map(
    model: Classifier, inputs: Any, mask: Tensor, *, labels: Tensor
) -> tuple[Tensor, Memory, str]:
    """Weigh the states of the grid by the gradient of the label's logit (Selvaraju et al. 2017)."""
    memories: list[Memory] = []
    image_encoder = _image_encoder(model.encoder)
    hook = image_encoder.register_forward_hook(lambda *call: memories.append(call[-1]))
    try:
        with torch.enable_grad():
            # The states need a gradient even if all weights are frozen.
            logits = model(_with_gradient(inputs), mask)
            gradient = label_gradient(logits, labels, memories[0].states)
    finally:
        hook.remove()
    states = memories[0].states.detach()
    activation = (gradient.mean(1, keepdim=True) * states).sum(-1).clamp(min=0)  # (B, P)
    return _normalize(activation), memories[0], CAM


def _with_gradient(inputs: Any) -> Any:
    if isinstance(inputs, tuple):
        *tokens, images = inputs
        return (*tokens, images.detach().requires_grad_())
    return inputs.detach().requires_grad_()


def _normalize(weights: Tensor) -> Tensor:
    """Divide weights by their sum; uniform weights if all are zero."""
    total = weights.sum(-1, keepdim=True)
    return torch.where(total > 0, weights / total.clamp(min=1e-12), 1 / weights.shape[-1])


_BY_MODALITY: dict[str, Callable[[Any, Any, Any], list[AttentionMap]]] = {
    "text": _attend_texts,
    "audio": _attend_recordings,
}
"""Functions that compute the maps, by the modality of the source; default: images."""
