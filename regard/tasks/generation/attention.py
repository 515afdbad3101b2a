"""Attention weights of an encoder–decoder under forced decoding, with CTC alignment for audio."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.attention.recording import record
from regard.data.audio.field import AudioField
from regard.data.batch import Batch
from regard.data.example import Example
from regard.data.modality import SourceField
from regard.data.text.field import TextField
from regard.models.heads import ctc
from regard.models.heads.copying import CopyAttention
from regard.models.interfaces import Memory
from regard.tasks.attention_plots import CTC
from regard.tasks.batches import map_batches
from regard.tasks.prediction import COPYING, AttentionMap, Recording, cell_names, to_image

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def attend(task: "Predictor", examples: Sequence[Example]) -> list[AttentionMap]:
    """Return the attention weights of each example's target over its source.

    Maps of a model without attention have no layers. Maps of a model that copies hold only the
    copying probabilities. A source may be a line, as for `predict`.
    """
    parsed = [replace(example, source=task.parse_source(example.source)) for example in examples]
    return attend_batches(task, task.batches(parsed))


def attend_batches(task: "Predictor", batches: Iterable[Batch]) -> list[AttentionMap]:
    """Return the attention weights of the targets of batches, in the order of the examples."""
    pointers = [part for part in task.model.modules() if isinstance(part, CopyAttention)]
    recorded_part: nn.Module = nn.ModuleList(pointers) if pointers else task.model
    kind = COPYING if pointers else "attention"
    describe: Callable[..., list[_Source]] = _BY_MODALITY.get(
        task.source.modality, _describe_images
    )

    def attend_batch(batch: Batch) -> list[AttentionMap]:
        target = batch.target.to(task.device)
        with torch.inference_mode(), record(recorded_part) as recorded:
            task.model(task.inputs(batch), batch.source_mask, target[:, :-1])
        stacked = recorded.stack().cpu().float() if recorded.num_layers else None
        return [
            _map(task, batch, row, source=source, kind=kind, weights=stacked)
            for row, source in enumerate(describe(task, task.source, batch))
        ]

    return map_batches(attend_batch, batches, description="Computing attention")


@dataclass(frozen=True)
class _Source:
    """Labels of the memory positions of one source."""

    labels: tuple[str, ...]
    columns: slice | Tensor
    """The memory position of each label."""
    grid: tuple[int, ...] | None = None
    image: Any = None
    recording: Recording | None = None


def _map(
    task: "Predictor", batch: Batch, row: int, *, source: _Source, weights: Tensor | None, kind: str
) -> AttentionMap:
    """Return the map of one row of a batch; `weights` (B, N, H, T, S) are those of the batch."""
    num_target = int(batch.target_mask[row].sum()) - 1
    row_weights = torch.zeros(0, 1, num_target, len(source.labels))
    if weights is not None:
        row_weights = weights[row, :, :, :num_target][..., source.columns]
    recording = source.recording
    if recording and recording.aligned is not None and task.recipe.model.ctc_weight == 1:
        # The decoder is not trained, so its weights are meaningless.
        row_weights, kind = recording.aligned[None, None], CTC
    return AttentionMap(
        source=source.labels,
        target=task.target.tokenizer.tokens(batch.target[row, 1 : num_target + 1].tolist()),
        weights=row_weights,
        kind=kind,
        grid=source.grid,
        image=source.image,
        recording=recording,
    )


def _describe_texts(task: "Predictor", field: TextField, batch: Batch) -> list[_Source]:
    """Return the tokens of texts, or whole texts if the encoder has one position per text."""
    tokenizer = field.tokenizer
    sources = [ids[real] for ids, real in zip(batch.source, batch.source_mask, strict=True)]
    groups = task.model.encoder.memory_positions(batch.source, batch.source_mask)
    if groups is None:
        labels = [tokenizer.tokens(ids.tolist()) for ids in sources]
    else:
        labels = [
            tuple(
                tokenizer.decode(ids[group[: len(ids)] == number].tolist())
                for number in range(int(group[: len(ids)].max()) + 1)
            )
            for ids, group in zip(sources, groups, strict=True)
        ]
    return [_Source(names, slice(len(names))) for names in labels]


def _describe_recordings(task: "Predictor", field: AudioField, batch: Batch) -> list[_Source]:
    """Return the times of memory positions, the frames, and the CTC alignment of the targets."""
    memory = _encode(task, batch)
    hop = field.config.hop_ms / 1000
    groups = task.model.encoder.memory_positions(batch.source, batch.source_mask)
    frames_per_position = 1 if groups is None else int((groups[0] == 0).sum())
    described = []
    for row, aligned in enumerate(align_ctc(task, batch, memory)):
        frames = batch.source[row][batch.source_mask[row]].cpu().numpy()
        num_positions = int(memory.mask[row].sum())
        times = tuple(
            f"{number * frames_per_position * hop:.2f} s" for number in range(num_positions)
        )
        recording = Recording(frames, hop, frames_per_position, aligned)
        described.append(_Source(times, slice(num_positions), recording=recording))
    return described


def _describe_images(task: "Predictor", field: SourceField, batch: Batch) -> list[_Source]:
    """Return the cells of images or videos, after the tokens of a text if there is one."""
    memory = _encode(task, batch)
    assert memory.layout is not None
    cells = cell_names(memory.layout)
    described = []
    for row in range(len(batch.rows)):
        tokens: tuple[str, ...] = ()
        images = batch.source
        if field.text is not None:
            ids, images = batch.source
            tokens = field.text.tokenizer.tokens(ids[row][batch.source_mask[row]].tolist())
        # In the memory, cells come before tokens; in the map, after them.
        columns = memory.mask[row].cpu().nonzero()[:, 0].roll(-len(cells))
        described.append(_Source((*tokens, *cells), columns, memory.layout, to_image(images[row])))
    return described


_BY_MODALITY: dict[str, Callable[..., list[_Source]]] = {
    "text": _describe_texts,
    "audio": _describe_recordings,
}
"""Functions that label memory positions, by the modality of the source; default: images."""


def _encode(task: "Predictor", batch: Batch) -> Memory:
    with torch.inference_mode():
        return task.encode_batch(batch)


def align_ctc(task: "Predictor", batch: Batch, memory: Memory) -> list[Tensor | None]:
    """Return the CTC alignment of each target, (T, S); None without CTC.

    The row of the end token is zero.
    """
    if task.model.ctc is None:
        return [None] * len(batch.rows)
    with torch.inference_mode():
        emissions = task.model.ctc(memory)
    alignments: list[Tensor | None] = []
    for row in range(len(batch.rows)):
        num_target = int(batch.target_mask[row].sum()) - 1
        labels = batch.target[row, 1:num_target].tolist()
        log_probs = emissions.log_probs[row, : int(emissions.lengths[row])]
        weights = torch.zeros(num_target, len(log_probs))
        # A target that is too long for its recording has no alignment.
        is_possible = ctc.min_positions(labels) <= len(log_probs)
        for position, number in enumerate(ctc.align(log_probs, labels) if is_possible else []):
            if number >= 0:
                weights[number, position] = 1.0
        alignments.append(weights)
    return alignments
