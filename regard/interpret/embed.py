"""Vectors of sources from a run's encoder, of its output or of one layer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from regard.core.config import within
from regard.core.errors import ConfigError, DataError
from regard.core.files import check_suffix, replacing
from regard.core.logging import logger
from regard.core.progress import track
from regard.core.tables import pick
from regard.data.example import Example, require_list
from regard.data.text.field import as_text
from regard.models.ensemble import EnsembleEncoder
from regard.models.heads.pooling import (
    FinalPooling,
    FirstPooling,
    MeanPooling,
    Pooling,
    SummaryPooling,
)
from regard.models.interfaces import Encoder, Memory
from regard.models.layer_states import layer_states
from regard.models.pca import Pca
from regard.tasks.base import Embeds, Task
from regard.tasks.batches import EncoderBatch, count_rows
from regard.tasks.reading import drop_unreadable

POOLINGS: dict[str, type[Pooling]] = {
    "summary": SummaryPooling,
    "mean": MeanPooling,
    "first": FirstPooling,
    "final": FinalPooling,
}
"""Poolings of hidden states to one vector, without parameters."""

Vectors = NDArray[np.float32]

VECTORS = "vectors"
"""The name of the vectors in a `.safetensors` file."""


def require_embedder(task: Task[Any]) -> Embeds:
    """Return a task that embeds sources with one encoder; raise a `ConfigError` for any other."""
    if not isinstance(task, Embeds) or isinstance(task.encoder, EnsembleEncoder):
        raise ConfigError(
            f"Vectors need a run with one encoder, but this one, for the task "
            f"'{task.recipe.task}', has none or several. Name a single run folder."
        )
    return task


def embed(
    task: Task[Any], sources: Sequence[Any], *, layer: int | None = None, pooling: str | None = None
) -> Vectors:
    """Return one vector per source, in the order given.

    The vectors of empty and unreadable sources are zero; a warning states how many.

    Args:
        task: A run with an encoder.
        sources: Texts, or paths of images and recordings.
        layer: Index of the layer, 0 = the embeddings; the encoder output if not given.
        pooling: Pooling of the states: 'summary' of the encoder, 'mean', 'first', or 'final', the
            final states of all layers of a recurrent encoder. If not given, 'summary', or 'mean'
            with a `layer`, which has no summary.
    """
    require_list(sources, "sources")
    embedder = require_embedder(task)
    pool = _find_pooling(task, layer, pooling)
    rows = [row for row, source in enumerate(sources) if as_text(source).strip()]
    if len(rows) < len(sources):
        num_empty = len(sources) - len(rows)
        logger.warning("%s of %s lines are empty: their vectors are zeros", num_empty, len(sources))
    readable = set(drop_unreadable_sources(task, [sources[row] for row in rows]))
    rows = [row for row in rows if sources[row] in readable]
    by_row: dict[int, Vectors] = {}
    with torch.inference_mode():
        batches = embedder.encoder_batches([sources[row] for row in rows])
        for batch in track(batches, "Encoding", total=len(rows), size=count_rows):
            pooled = pool(_memory(embedder.encoder, batch, layer)).float().cpu().numpy()
            by_row.update(zip((rows[index] for index in batch.rows), pooled, strict=True))
    dim = len(next(iter(by_row.values()))) if by_row else embedder.encoder.memory_dim
    vectors = np.zeros((len(sources), dim), dtype=np.float32)
    for row, vector in by_row.items():
        vectors[row] = vector
    return vectors


def drop_unreadable_sources(task: Task[Any], sources: Sequence[Any]) -> list[Any]:
    """Drop images and recordings that cannot be read, and log how many; keep all texts."""
    kept = drop_unreadable([Example(source) for source in sources], task.recipe.data)
    return [example.source for example in kept]


def check_vector_file(path: Path) -> str:
    """Return the suffix in lower case; raise unless it is `.npy` or `.safetensors`."""
    return check_suffix(path, "--out", ".npy", ".safetensors")


def save_vectors(path: Path, vectors: Vectors, metadata: Mapping[str, object]) -> None:
    """Write vectors (N, D) atomically, in the format of the file name.

    Args:
        path: Ends in `.npy` or `.safetensors`.
        vectors: One row per source.
        metadata: Origin of the vectors; `.npy` files do not store it.
    """
    suffix = check_vector_file(path)
    try:
        with replacing(path) as temporary:
            if suffix == ".npy":
                with temporary.open("wb") as file:
                    np.save(file, vectors)
            else:
                tensors = {VECTORS: np.ascontiguousarray(vectors)}
                texts = {name: str(value) for name, value in metadata.items()}
                save_file(tensors, temporary, metadata=texts)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}). Name another file."
        ) from None


def project(vectors: NDArray[Any], num: int = 2) -> tuple[NDArray[np.float64], float]:
    """Project vectors (B, D) on their first principal components, (B, `num`).

    Also return the fraction of the variance that these components explain.
    """
    values = torch.from_numpy(np.asarray(vectors, dtype=np.float64))
    pca = Pca.fit(values, num)
    total = float(values.var(0).sum())
    points: NDArray[np.float64] = pca.encode(values).double().numpy()
    return points, float(pca.variances.sum()) / max(total, 1e-300)


def _find_pooling(task: Task[Any], layer: int | None, pooling: str | None) -> Pooling:
    embedder = require_embedder(task)
    if pooling is None:
        pooling = "summary" if layer is None else "mean"
    kind = pick(POOLINGS, pooling, "pooling")
    if pooling in ("summary", "final") and layer is not None:
        raise ConfigError(
            "`pooling` must be 'mean' or 'first' with a `layer`, which has no summary, but is "
            f"'{pooling}'."
        )
    if pooling == "first" and not embedder.reads_text:
        raise ConfigError(
            "`pooling` 'first' is for runs that read text, but this one, for the task "
            f"'{task.recipe.task}', does not. Use 'summary' or 'mean'."
        )
    return kind(embedder.encoder.memory_dim)


def _memory(encoder: Encoder, batch: EncoderBatch, layer: int | None) -> Memory:
    if layer is None:
        return encoder(batch.values, batch.mask)
    layers = layer_states(encoder, batch.values, batch.mask)
    within("layer", layer, low=0, high=len(layers) - 1)
    states = layers[layer]
    return Memory(states, batch.mask.to(states.device), summary=states[:, 0])
