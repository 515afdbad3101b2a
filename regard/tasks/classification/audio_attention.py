"""When a classifier of recordings hears its label: how much each moment counts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.audio.field import AudioField
from regard.data.example import Example
from regard.models.classifier import Classifier
from regard.tasks.classification.attention import SALIENCY
from regard.tasks.prediction import AttentionMap, Recording

if TYPE_CHECKING:
    from regard.tasks.classification.task import ClassificationTask


def look_at_sounds(
    task: "ClassificationTask", field: AudioField, examples: Sequence[Example]
) -> list[AttentionMap]:
    """Return how much each moment of every example's recording counts for its label: one row."""
    maps: list[AttentionMap | None] = [None] * len(examples)
    labels = [task.labels.read(example.target) for example in examples]
    hop = field.config.hop_ms / 1000
    for batch in task.batches(examples, labels):
        asked = batch.labels.to(task.device)
        weights = _weigh(task.model, task.inputs(batch), batch.source_mask, labels=asked).cpu()
        for place, row in enumerate(batch.rows):
            real = batch.source_mask[place]
            frames = batch.source[place][real].numpy()  # (F, M)
            maps[row] = AttentionMap(
                source=tuple(f"{number * hop:.2f} s" for number in range(len(frames))),
                target=(task.labels.write(labels[row]),),
                weights=weights[place][real][None, None, None],
                kind=SALIENCY,
                recording=Recording(frames, hop, num_joined=1),
            )
    return [found for found in maps if found is not None]


def _weigh(model: Classifier, inputs: Tensor, mask: Tensor, *, labels: Tensor) -> Tensor:
    """Weigh standardised frames (B, F, M) by the gradient of the label's logit.

    The mean of all sound is zero and so counts nothing.

    Returns:
        Weights (B, F) that sum to one.
    """
    # cuDNN has gradients of recurrent layers only while they train.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        frames = inputs.detach().float().requires_grad_()
        asked = model(frames, mask).gather(1, labels[:, None]).sum()
        (gradient,) = torch.autograd.grad(asked, [frames])
    real = mask.to(frames.device)
    counts = (gradient * frames.detach()).sum(-1).abs() * real  # (B, F)
    # Where nothing moves the label, every moment counts alike.
    counts = torch.where(counts.sum(1, keepdim=True) > 0, counts, real.float())
    return counts / counts.sum(1, keepdim=True)
