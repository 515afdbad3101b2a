"""Steps of a search as CUDA graphs: one launch per step instead of hundreds.

A search is a chain of steps, each of which computes from the results of the one before. A graph
repeats its kernels on the same memory, so the whole chain is captured, with its own copy of the
encoded sources. Batches are padded so that few shapes occur.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.core.logging import logger
from regard.models.interfaces import Memory, map_tensors
from regard.search.scorer import ModelScorer, Scorer

Result = TypeVar("Result")

MAX_CHAINS = 16
"""Captured searches of a model; the one that was used least recently is dropped for another."""
LENGTH_MULTIPLE = 8
"""Source lengths are rounded up to a multiple of it."""
STEPS_MULTIPLE = 32
"""Maximum lengths of targets are rounded up to a multiple of it."""


@dataclass
class Steps:
    """Runs the steps of a search; this class computes them eagerly."""

    scorer: Scorer
    """Scorer of next tokens."""
    limits: Tensor
    """(B,) maximum number of tokens of each sentence, on the device of the scorer."""
    num_steps: int
    """Maximum of the limits."""
    capacity: int
    """Number of steps that caches are allocated for."""
    is_captured: bool = False
    """Whether results are overwritten by the next search, and no sentence may leave the batch."""

    def run(self, index: int, step: Callable[[], Result]) -> Result:  # noqa: ARG002
        """Return the result of a step.

        Args:
            index: Index of the step.
            step: Computes the step from the scorer, the limits and the results of earlier steps.
        """
        return step()


@contextmanager
def search_steps(scorer: Scorer, max_lengths: Tensor, key: Hashable | None) -> Iterator[Steps]:
    """Run the steps of a search in the block: by CUDA graphs, if the model has them, or eagerly.

    Args:
        scorer: Scorer of next tokens.
        max_lengths: (B,) maximum number of tokens of each sentence.
        key: All that the search depends on beside scorer and maximum lengths; None = run eagerly.
    """
    num_steps = int(max_lengths.max())
    limits = max_lengths.to(scorer.device)
    eager = Steps(scorer, limits, num_steps, capacity=num_steps)
    if not isinstance(scorer, ModelScorer) or key is None or scorer.step_graphs is None:
        yield eager
        return
    graphs: StepGraphs = scorer.step_graphs
    # The results of a search are in the memory of its graphs until the block ends.
    if not graphs.lock.acquire(blocking=False):
        yield eager
        return
    try:
        yield graphs.find(scorer, eager, key) or eager
    finally:
        graphs.lock.release()


class StepGraphs:
    """Captured searches of a model.

    Args:
        model: The model. Its parameters may change, but not where they are in memory.
    """

    def __init__(self, model: nn.Module) -> None:
        self.lock = threading.Lock()
        self.is_enabled = True
        self._attentions = [part for part in model.modules() if isinstance(part, Attention)]
        self._chains: dict[Hashable, _CapturedSteps | None] = {}

    def find(self, scorer: ModelScorer, eager: Steps, key: Hashable) -> Steps | None:
        """Return the captured steps of a search, with its inputs; None = run eagerly.

        Args:
            scorer: Scorer of next tokens.
            eager: The steps without graphs.
            key: All that the search depends on beside the steps and the scorer.
        """
        is_recorded = any(part.needs_weights for part in self._attentions)
        if not self.is_enabled or is_recorded or not isinstance(scorer.source, Memory):
            return None
        capacity = -(-max(1, eager.num_steps) // STEPS_MULTIPLE) * STEPS_MULTIPLE
        memory, limits = _pad(scorer.source, eager.limits)
        shapes = [(one.shape, one.dtype) for one in _tensors(memory)]
        key = (key, scorer.banned, capacity, *shapes)
        is_new = key not in self._chains
        steps = self._chains.pop(key, None)
        if steps is not None:
            steps.load(memory, limits)
            steps.num_steps = eager.num_steps
        elif not is_new:
            steps = _CapturedSteps(
                scorer.with_source(memory),
                limits,
                eager.num_steps,
                capacity,
                graphs=self,
                memory=memory,
            )
        # The first search of a shape is eager: it warms up libraries, and many shapes never recur.
        self._chains[key] = steps
        while len(self._chains) > MAX_CHAINS:
            del self._chains[next(iter(self._chains))]
        return steps


@dataclass(kw_only=True)
class _CapturedSteps(Steps):
    """Runs steps by CUDA graphs, each of which is captured when it is needed first."""

    graphs: StepGraphs
    memory: Memory
    is_captured: bool = True
    _steps: list["StepGraph"] = field(default_factory=list)

    def load(self, memory: Memory, limits: Tensor) -> None:
        """Copy another batch of the same shape to the inputs."""
        inputs = (*_tensors(self.memory), self.limits)
        for static, new in zip(inputs, (*_tensors(memory), limits), strict=True):
            static.copy_(new)

    def run(self, index: int, step: Callable[[], Result]) -> Result:
        """Return the result of a step, whose tensors are overwritten by the next search."""
        if index == len(self._steps) and self.graphs.is_enabled:
            self._capture(step)
        if index >= len(self._steps):
            return step()
        self._steps[index].replay()
        result: Result = self._steps[index].result
        return result

    def _capture(self, step: Callable[[], Any]) -> None:
        try:
            self._steps.append(StepGraph(step))
        except RuntimeError as error:
            self.graphs.is_enabled = False
            reason = str(error).partition("\n")[0]
            logger.info("Steps of search are not captured as CUDA graphs: %s", reason)


class StepGraph:
    """A captured step.

    Args:
        step: Computes the step on a GPU.
    """

    def __init__(self, step: Callable[[], Any]) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, such as those of other models, may use CUDA meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self.result = step()

    def replay(self) -> None:
        """Compute the step again, into the same tensors."""
        self._graph.replay()


def _pad(memory: Memory, limits: Tensor) -> tuple[Memory, Tensor]:
    """Return copies of a memory and maximum lengths with more sentences and longer sources."""
    batch, length = memory.mask.shape
    num_rows, num_positions = _round_batch(batch), length
    if memory.layout is None:
        num_positions = -(-length // LENGTH_MULTIPLE) * LENGTH_MULTIPLE

    def pad_rows(tensor: Tensor) -> Tensor:
        padded = tensor.new_zeros(num_rows, *tensor.shape[1:])
        padded[:batch] = tensor
        return padded

    def pad(tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        padded = tensor.new_zeros(num_rows, num_positions, *tensor.shape[2:])
        padded[:batch, :length] = tensor
        return padded

    mask = pad(memory.mask)
    assert mask is not None
    mask[batch:, 0] = True  # a softmax needs one position
    states = pad(memory.states)
    assert states is not None
    final = None if memory.final is None else map_tensors(memory.final, pad_rows)
    padded = replace(
        memory,
        states=states,
        mask=mask,
        summary=pad_rows(memory.summary),
        values=pad(memory.values),
        final=final,
        tokens=pad(memory.tokens),
        losses={},
    )
    return padded, pad_rows(limits)


def _round_batch(batch: int) -> int:
    """Round up to a power of two, or to 1.5 times one."""
    size = 1 << (batch - 1).bit_length()
    return size * 3 // 4 if size >= 4 and batch <= size * 3 // 4 else size


def _tensors(memory: Memory) -> list[Tensor]:
    """Return all tensors of a memory."""
    found: list[Tensor] = []
    optional = (memory.values, memory.tokens, memory.final)
    parts = [memory.states, memory.mask, memory.summary]
    map_tensors([*parts, *(one for one in optional if one is not None)], found.append)
    return found
