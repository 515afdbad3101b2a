"""When each word of an answer is heard: by the decoder's attention, and by CTC."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.audio.field import AudioField
from regard.data.batch import Batch
from regard.models.heads.ctc import align, num_needed
from regard.models.interfaces import Memory
from regard.plots.spectrogram import Hearing
from regard.tasks.prediction import AttentionMap, Recording

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor

CTC = "CTC alignment"
"""What a map's weights are where the decoder has learned nothing, and beside them where it has."""


def listen(
    task: "Predictor", field: AudioField, batch: Batch, *, memory: Memory
) -> list[tuple[tuple[str, ...], Recording]]:
    """Return for each recording of a batch the times of its positions, and what was heard.

    Args:
        task: What listens.
        field: Its source.
        batch: Recordings with targets.
        memory: What the encoder made of the batch.
    """
    hop = field.config.hop_ms / 1000
    groups = task.model.encoder.groups(batch.source, batch.source_mask)
    num_joined = 1 if groups is None else int((groups[0] == 0).sum())
    aligned = _align(task, batch, memory)
    heard = []
    for place in range(len(batch.rows)):
        frames = batch.source[place][batch.source_mask[place]].cpu().numpy()
        num_positions = int(memory.mask[place].sum())
        times = tuple(f"{number * num_joined * hop:.2f} s" for number in range(num_positions))
        heard.append((times, Recording(frames, hop, num_joined, aligned[place])))
    return heard


def _align(task: "Predictor", batch: Batch, memory: Memory) -> list[Tensor | None]:
    """Return where CTC hears each target, (T, S); the end token is heard nowhere."""
    if task.model.ctc is None:
        return [None] * len(batch.rows)
    with torch.inference_mode():
        emissions = task.model.ctc(memory)
    found: list[Tensor | None] = []
    for place in range(len(batch.rows)):
        num_target = int(batch.target_mask[place].sum()) - 1
        labels = batch.target[place, 1:num_target].tolist()
        log_probs = emissions.log_probs[place, : int(emissions.lengths[place])]
        weights = torch.zeros(num_target, len(log_probs))
        # Of a target that is too long for its recording nothing is heard.
        path = align(log_probs, labels) if num_needed(labels) <= len(log_probs) else []
        for position, number in enumerate(path):
            if number >= 0:
                weights[number, position] = 1.0
        found.append(weights)
    return found


def listen_through(found: AttentionMap) -> Hearing | None:
    """Return a map over sound as it is drawn; None where a map is over something else.

    Args:
        found: A map with its recording. The end token is left out: it is heard nowhere. A label
            stands alone and has none.
    """
    recording = found.recording
    if recording is None:
        return None
    words, _ = found.labels
    num = max(1, len(words) - 1)
    roads = {found.kind: found.mean()} if found.weights.shape[0] else {}
    if recording.aligned is not None:
        roads[CTC] = recording.aligned
    return Hearing(
        frames=recording.frames,
        seconds=len(recording.frames) * recording.hop,
        words=tuple(words[:num]),
        roads={name: weights[:num].numpy() for name, weights in roads.items()},
        step=recording.num_joined * recording.hop,
    )
