"""What an encoder–decoder says of given targets: one pass over each, the right tokens before it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.attention.recording import record
from regard.data.audio.field import AudioField
from regard.data.batch import Batch
from regard.data.example import Example
from regard.data.modality import JoinedField
from regard.data.text.field import TextField
from regard.models.heads.copying import CopyAttention
from regard.search.forced import force, walk_along
from regard.tasks.generation.audio_alignment import CTC, listen
from regard.tasks.generation.ctc import build_scorer
from regard.tasks.prediction import (
    COPYING,
    AttentionMap,
    Prediction,
    Recording,
    as_picture,
    cell_names,
)

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def score(task: "Predictor", examples: Sequence[Example]) -> list[Prediction]:
    """Return the log-probability of every example's own target, as a prediction of it.

    Where the decoder learns nothing, it is that of CTC.
    """
    scored: list[Prediction | None] = [None] * len(examples)
    for batch in task.batches(examples):
        on_device = batch.to(task.device)
        with torch.inference_mode():
            if task.recipe.model.ctc_weight == 1:
                roles, memory = task.target.tokenizer, task.read_memory(batch)
                scorer = build_scorer(task.model, memory, roles, weight=1.0)
                log_probs = walk_along(scorer, on_device.target).cpu()
            else:
                log_probs = force(
                    task.model, task.inputs(batch), batch.source_mask, targets=on_device.target
                ).cpu()
        for place, row in enumerate(batch.rows):
            length = int(batch.target_mask[place].sum()) - 1
            said = tuple(log_probs[place, :length].tolist())
            tokens = task.target.tokenizer.tokens(batch.target[place, 1 : length + 1].tolist())
            scored[row] = Prediction(examples[row].target, sum(said), tokens, said)
    return [prediction for prediction in scored if prediction is not None]


def foretell(task: "Predictor", examples: Sequence[Example]) -> list[tuple[bool, ...]]:
    """Tell for each word of every example's own target whether the model foretells it.

    It does if each piece of the word is the likeliest after the right ones before it. A word that
    the vocabulary does not know is never foretold.
    """
    told: list[tuple[bool, ...]] = [()] * len(examples)
    roles = task.target.tokenizer
    for batch in task.batches(examples):
        on_device = batch.to(task.device)
        labels = on_device.target[:, 1:]  # (B, T - 1)
        with torch.inference_mode():
            output = task.model(task.inputs(batch), batch.source_mask, on_device.target[:, :-1])
        hits = (output.logits.argmax(-1) == labels) & (labels != roles.unk)
        for row, pieces in zip(batch.rows, hits.tolist(), strict=True):
            words = roles.word_index(examples[row].target)
            right = [True] * (max(words, default=-1) + 1)
            # The end token and padding belong to no word.
            for word, is_hit in zip(words, pieces, strict=False):
                right[word] &= is_hit
            told[row] = tuple(right)
    return told


def attend(task: "Predictor", examples: Sequence[Example]) -> list[AttentionMap]:
    """Return where the model looks while it writes each example's own target.

    A model without attention gives maps without layers. Of a model that copies, the map is where
    each token is copied from and with which probability; what else it looks at is left out. A
    source may be a line, as for `predict`.
    """
    pointers = [part for part in task.model.modules() if isinstance(part, CopyAttention)]
    looking: nn.Module = nn.ModuleList(pointers) if pointers else task.model
    maps: list[AttentionMap | None] = [None] * len(examples)
    read = [replace(example, source=task.split(example.source)) for example in examples]
    for batch in task.batches(read):
        on_device = batch.to(task.device)
        with torch.inference_mode(), record(looking) as recorded:
            task.model(task.inputs(batch), batch.source_mask, on_device.target[:, :-1])
        seen = _seen(task, batch)
        for place, row in enumerate(batch.rows):
            source = seen[place].labels
            num_target = int(batch.target_mask[place].sum()) - 1
            weights = torch.zeros(0, 1, num_target, len(source))
            if recorded.num_layers:
                weights = recorded.stack()[place, :, :, :num_target].cpu().float()
                weights = weights[..., seen[place].columns]
            recording = seen[place].recording
            kind = COPYING if pointers else "attention"
            if recording and recording.aligned is not None and task.recipe.model.ctc_weight == 1:
                # The decoder has learned nothing: where it looks means nothing.
                weights, kind = recording.aligned[None, None], CTC
            target = batch.target[place, 1 : num_target + 1].tolist()
            maps[row] = AttentionMap(
                source=source,
                target=task.target.tokenizer.tokens(target),
                weights=weights,
                kind=kind,
                grid=seen[place].grid,
                image=seen[place].image,
                recording=seen[place].recording,
            )
    return [found for found in maps if found is not None]


@dataclass(frozen=True)
class _Seen:
    """What of one source can be looked at."""

    labels: tuple[str, ...]
    columns: slice | Tensor
    """Which positions of the memory these are."""
    grid: tuple[int, ...] | None = None
    image: Any = None
    recording: Recording | None = None


def _seen(task: "Predictor", batch: Batch) -> list[_Seen]:
    if isinstance(task.source, TextField):
        labels = _text_labels(task, task.source, batch)
        return [_Seen(found, slice(len(found))) for found in labels]
    with torch.inference_mode():
        memory = task.read_memory(batch)
    if isinstance(task.source, AudioField):
        heard = listen(task, task.source, batch, memory=memory)
        return [_Seen(times, slice(len(times)), recording=one) for times, one in heard]
    assert memory.layout is not None
    cells = cell_names(memory.layout)
    found = []
    for place in range(len(batch.rows)):
        pieces: tuple[str, ...] = ()
        images = batch.source
        if isinstance(task.source, JoinedField):
            ids, images = batch.source
            real = ids[place][batch.source_mask[place]].tolist()
            pieces = task.source.text.tokenizer.tokens(real)
        # In the memory cells come before words; people read the words first.
        columns = memory.mask[place].cpu().nonzero()[:, 0].roll(-len(cells))
        found.append(_Seen((*pieces, *cells), columns, memory.layout, as_picture(images[place])))
    return found


def _text_labels(task: "Predictor", field: TextField, batch: Batch) -> list[tuple[str, ...]]:
    """Return for each source what can be looked at: its pieces, or what the encoder made of them.

    Pieces that went into one position of the memory are one text.
    """
    tokenizer = field.tokenizer
    sources = [ids[real] for ids, real in zip(batch.source, batch.source_mask, strict=True)]
    groups = task.model.encoder.groups(batch.source, batch.source_mask)
    if groups is None:
        return [tokenizer.tokens(ids.tolist()) for ids in sources]
    return [
        tuple(
            tokenizer.decode(ids[own[: len(ids)] == number].tolist())
            for number in range(int(own[: len(ids)].max()) + 1)
        )
        for ids, own in zip(sources, groups, strict=True)
    ]
