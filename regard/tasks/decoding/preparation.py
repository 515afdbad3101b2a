"""Preparation of search: models with packed weights, sizes of batches, worker threads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import nn

from regard.core.errors import ConfigError
from regard.data.batching import BatchConfig
from regard.models.packing import SearchPrecision, pack
from regard.search.cuda_graphs import StepGraphs

NUM_ROWS = 320
"""Hypotheses in a batch on a CPU: more take longer per hypothesis, since their log-probabilities
over the vocabulary leave the caches of the processor."""

ONE_CORE_POSITIONS = 256
"""Maximum number of source positions that one core decodes as fast as several."""

Versions = tuple[tuple[int, int], ...]

_is_packing: ContextVar[bool] = ContextVar("is_packing", default=True)

PrecisionSetting = SearchPrecision | Literal["auto"]
"""Values of `search.precision`."""


class PackedModels:
    """Packed copies of models, which are made again when the weights have changed."""

    def __init__(self) -> None:
        self._packed: WeakKeyDictionary[nn.Module, tuple[Versions, dict[str, Any]]] = (
            WeakKeyDictionary()
        )

    def find(self, model: Any, precision: SearchPrecision) -> Any:
        """Return a copy of a model in a precision.

        A model with hooks, such as those of `record`, is returned itself, since the hooks are for
        its own modules.
        """
        versions = _versions(model)
        if versions is None:
            return model
        known, copies = self._packed.get(model, (None, {}))
        if known != versions:
            copies = {}
            self._packed[model] = versions, copies
        if precision not in copies:
            copies[precision] = pack(model, precision)
            if next(model.parameters()).device.type == "cuda":
                copies[precision].step_graphs = StepGraphs(copies[precision])
        return copies[precision]

    def forget(self, model: nn.Module) -> None:
        """Free the copies of a model."""
        self._packed.pop(model, None)


PACKED_MODELS = PackedModels()
"""The copies of all models of this process."""


def _versions(model: nn.Module) -> Versions | None:
    """Return where the parameters are in memory, and how often they were changed in place.

    None if a part of the model has hooks. Faster than `parameters()`, since every prediction checks
    this.
    """
    versions = []
    parts = [model]
    while parts:
        part = parts.pop()
        if part._forward_hooks:
            return None
        for one in part._parameters.values():
            if one is not None:
                versions.append((one.data_ptr(), -1 if one.is_inference() else one._version))
        parts += [child for child in part._modules.values() if child is not None]
    return tuple(versions)


@contextmanager
def without_packing() -> Iterator[None]:
    """Search with models themselves during the block: for a few sentences, packing takes longer."""
    token = _is_packing.set(False)
    try:
        yield
    finally:
        _is_packing.reset(token)


def find_packed(task: Any, precision: PrecisionSetting) -> Any:
    """Return a copy of the model of a task in a precision; the model itself if it has hooks.

    Within `without_packing`, it is the model itself too.
    """
    if not _is_packing.get() or (precision == "auto" and _versions(task.model) is None):
        return task.model
    return PACKED_MODELS.find(task.model, resolve_precision(task, precision))


def resolve_precision(task: Any, precision: PrecisionSetting) -> SearchPrecision:
    """Return the precision to search in; raise `ConfigError` if there is none for `auto`."""
    if precision != "auto":
        return precision
    if task.find_precision is None:
        raise ConfigError(
            "`search.precision` must be 'fp32', 'bf16' or 'int8' for language models, denoisers, "
            "ensembles and models that were not loaded from a run folder, but is 'auto'. Set "
            "search.precision=fp32, or load a single run of an encoder–decoder."
        )
    found: SearchPrecision = task.find_precision(task)
    return found


def count_workers(device: torch.device) -> int:
    """Return the number of threads that search batches side by side."""
    return torch.get_num_threads() if device.type == "cpu" else 1


@contextmanager
def limit_threads(batches: Any, num_workers: int) -> Iterator[None]:
    """Use one core for a search of one short source: waiting for another takes longer than it adds.

    Args:
        batches: The batches.
        num_workers: Number of threads that search batches side by side.
    """
    is_one = isinstance(batches, Sequence) and len(batches) == 1
    if num_workers == 1 or not is_one or batches[0].source_mask.numel() > ONE_CORE_POSITIONS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_workers)


def search_batches(
    config: BatchConfig, *, num_sources: int, beams: int, device: torch.device
) -> BatchConfig:
    """Return the settings of batches for search; on a GPU, those given.

    Args:
        config: The settings of the recipe.
        num_sources: Number of sources.
        beams: Hypotheses per source.
        device: The device of the model.
    """
    if device.type != "cpu":
        return config
    sentences = max(1, NUM_ROWS // beams)
    if config.max_sentences:
        sentences = min(sentences, config.max_sentences)
    # As many batches for each worker, so that none waits for the others at the end.
    num_workers = count_workers(device)
    num_batches = num_workers * max(1, -(-num_sources // (num_workers * sentences)))
    return replace(config, max_sentences=max(1, -(-num_sources // num_batches)))
