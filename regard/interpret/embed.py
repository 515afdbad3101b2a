"""What a run's encoder makes of sources: one vector each, or the states of every layer."""

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
from regard.core.tables import pick
from regard.data.example import Example
from regard.data.text.field import as_text
from regard.models.ensemble import EnsembleEncoder
from regard.models.heads.pooling import FirstPooling, MeanPooling, Pooling, SummaryPooling
from regard.models.interfaces import Encoder, Memory
from regard.models.layer_states import layer_states
from regard.models.pca import Pca
from regard.tasks.base import Embeds, EncoderBatch, Task
from regard.tasks.reading import drop_unreadable

POOLINGS: dict[str, type[Pooling]] = {
    "summary": SummaryPooling,
    "mean": MeanPooling,
    "first": FirstPooling,
}
"""What makes one vector of many states; none of them learns."""

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
    """Return one vector a source, in the order given.

    What is empty, and what cannot be read among others, is all zeros, which is said.

    Args:
        task: A run with an encoder.
        sources: Texts, or references of images and recordings.
        layer: Which layer's states to take, 0 being the embeddings; what the encoder ends in if
            not given.
        pooling: What makes one vector of the states: the encoder's own summary, their mean or the
            first of them. If not given, the summary, and of a layer, which has none, the mean.
    """
    embedder = require_embedder(task)
    pool = _find_pooling(task, layer, pooling)
    filled = [row for row, source in enumerate(sources) if as_text(source).strip()]
    if len(filled) < len(sources):
        num_empty = len(sources) - len(filled)
        logger.warning("%s of %s lines are empty: their vectors are zeros", num_empty, len(sources))
    readable = set(drop_unreadable_sources(task, [sources[row] for row in filled]))
    filled = [row for row in filled if sources[row] in readable]
    found: dict[int, Vectors] = {}
    with torch.inference_mode():
        for batch in embedder.encoder_batches([sources[row] for row in filled]):
            pooled = pool(_memory(embedder.encoder, batch, layer)).float().cpu().numpy()
            found.update(zip((filled[row] for row in batch.rows), pooled, strict=True))
    width = len(next(iter(found.values()))) if found else embedder.encoder.memory_dim
    vectors = np.zeros((len(sources), width), dtype=np.float32)
    for row, vector in found.items():
        vectors[row] = vector
    return vectors


def drop_unreadable_sources(task: Task[Any], sources: Sequence[Any]) -> list[Any]:
    """Leave out images and the like that cannot be read, and say how many; texts are all kept."""
    kept = drop_unreadable([Example(source) for source in sources], task.recipe.data)
    return [example.source for example in kept]


def check_vector_file(path: Path) -> None:
    """Raise a `ConfigError` unless a file name ends in a format of vectors."""
    check_suffix(path, "--out", ".npy", ".safetensors")


def save_vectors(path: Path, vectors: Vectors, made: Mapping[str, object]) -> None:
    """Write vectors (N, D) completely or not at all, in the format of the file name.

    Args:
        path: Ends in `.npy` or `.safetensors`.
        vectors: One row a source.
        made: How they were computed; `.npy` cannot hold it.
    """
    check_vector_file(path)
    try:
        with replacing(path) as temporary:
            if path.suffix == ".npy":
                with temporary.open("wb") as file:
                    np.save(file, vectors)
            else:
                metadata = {name: str(value) for name, value in made.items()}
                save_file({VECTORS: np.ascontiguousarray(vectors)}, temporary, metadata=metadata)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror or error}). Name another place."
        ) from None


def project(vectors: NDArray[Any], num: int = 2) -> tuple[NDArray[np.float64], float]:
    """Return where vectors (B, D) lie on their first principal components, (B, `num`).

    Beside it stands the share of their variance that these components tell.
    """
    wide = torch.from_numpy(np.asarray(vectors, dtype=np.float64))
    fitted = Pca.fit(wide, num)
    total = float(wide.var(0).sum())
    points: NDArray[np.float64] = fitted.encode(wide).double().numpy()
    return points, float(fitted.variances.sum()) / max(total, 1e-300)


def _find_pooling(task: Task[Any], layer: int | None, pooling: str | None) -> Pooling:
    embedder = require_embedder(task)
    if pooling is None:
        pooling = "summary" if layer is None else "mean"
    kind = pick(POOLINGS, pooling, "pooling")
    if pooling == "summary" and layer is not None:
        raise ConfigError(
            "`pooling` must be 'mean' or 'first' with a `layer`, which has no summary of its own, "
            "but is 'summary'."
        )
    if pooling == "first" and not embedder.reads_text:
        raise ConfigError(
            "`pooling` 'first' is for runs that read text, whose first token may stand for all, "
            f"but this one, for the task '{task.recipe.task}', reads something else. Take "
            "'summary' or 'mean'."
        )
    return kind(embedder.encoder.memory_dim)


def _memory(encoder: Encoder, batch: EncoderBatch, layer: int | None) -> Memory:
    if layer is None:
        return encoder(batch.values, batch.mask)
    layers = layer_states(encoder, batch.values, batch.mask)
    within("layer", layer, low=0, high=len(layers) - 1)
    states = layers[layer]
    return Memory(states, batch.mask.to(states.device), summary=states[:, 0])
