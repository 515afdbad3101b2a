"""Steps of a search as CUDA graphs: one launch per step instead of hundreds.

A search is a chain of steps, each of which computes from the results of the one before. A graph
repeats its kernels on the same memory, so the whole chain is captured, with its own copy of the
encoded sources. Batches are padded so that few shapes occur.
"""

import gc
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.positions import LearnedPositions
from regard.attention.scores import LocationScore
from regard.core.logging import logger
from regard.models.interfaces import Memory, map_tensors
from regard.search.scorer import ModelScorer, Scorer

Result = TypeVar("Result")

MAX_CHAINS = 16
"""Captured searches of a model, and captured encoders; the one that was used least recently is
dropped for another."""
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


def encode(model: Any, values: Tensor, mask: Tensor) -> Memory:
    """Encode sources: by a CUDA graph, if the model has them, or eagerly.

    Args:
        model: An encoder–decoder.
        values: (B, S) token ids, or (B, C, Y, X) images.
        mask: (B, S), True = a real position; may be on the CPU.
    """
    graphs: StepGraphs | None = getattr(model, "step_graphs", None)
    if graphs is None or values.dim() != 2 or not graphs.lock.acquire(blocking=False):
        memory: Memory = model.encode(values, mask)
        return memory
    try:
        return graphs.encode(model.encode, values, mask)
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
        self._max_length = _max_source(model)
        self._chains: dict[Hashable, _CapturedSteps | None] = {}
        self._can_encode = True
        self._encoders: dict[tuple[int, int], _CapturedEncoder | None] = {}

    @property
    def is_recorded(self) -> bool:
        """Whether attention weights are recorded, which the replay of a graph would not do."""
        return any(part.needs_weights for part in self._attentions)

    def encode(
        self, encoder: Callable[[Tensor, Tensor], Memory], values: Tensor, mask: Tensor
    ) -> Memory:
        """Return the memory of token ids (B, S) with a mask (B, S)."""
        length = _round_length(values.shape[1], self._max_length)
        shape = _round_batch(len(values)), length
        if not self._can_encode or self.is_recorded:
            return encoder(values, mask)
        is_new = shape not in self._encoders
        captured = self._encoders.pop(shape, None)
        if captured is None and not is_new:
            try:
                captured = _CapturedEncoder(encoder, values, shape)
            except RuntimeError as error:  # such as lengths that must be on the CPU
                self._can_encode = False
                logger.info("The encoder is not captured as a CUDA graph: %s", _first_line(error))
        self._encoders[shape] = captured
        while len(self._encoders) > MAX_CHAINS:
            del self._encoders[next(iter(self._encoders))]
        return encoder(values, mask) if captured is None else captured.encode(values, mask)

    def find(self, scorer: ModelScorer, eager: Steps, key: Hashable) -> Steps | None:
        """Return the captured steps of a search, with its inputs; None = run eagerly.

        Args:
            scorer: Scorer of next tokens.
            eager: The steps without graphs.
            key: All that the search depends on beside the steps and the scorer.
        """
        if not self.is_enabled or self.is_recorded or not isinstance(scorer.source, Memory):
            return None
        capacity = -(-max(1, eager.num_steps) // STEPS_MULTIPLE) * STEPS_MULTIPLE
        memory, limits = _pad(scorer.source, eager.limits, self._max_length)
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
            pool = self._steps[0].pool if self._steps else None
            self._steps.append(StepGraph(step, pool))
        except RuntimeError as error:
            self.graphs.is_enabled = False
            message = "Steps of search are not captured as CUDA graphs: %s"
            logger.info(message, _first_line(error))


class _CapturedEncoder:
    """Encodes batches of one shape by a CUDA graph.

    Args:
        encoder: Returns the memory of token ids and a mask.
        values: Token ids (B, S) of a smaller batch.
        shape: Number of sources and of positions.
    """

    def __init__(
        self,
        encoder: Callable[[Tensor, Tensor], Memory],
        values: Tensor,
        shape: tuple[int, int],
    ) -> None:
        self._values = values.new_zeros(shape)
        self._mask = torch.ones(shape, dtype=torch.bool, device=values.device)
        self._graph = StepGraph(lambda: encoder(self._values, self._mask))

    def encode(self, values: Tensor, mask: Tensor) -> Memory:
        """Return the memory of token ids (B, S) with a mask (B, S)."""
        batch, length = values.shape
        self._values[:batch, :length] = values
        self._mask.zero_()
        self._mask[batch:, 0] = True  # a softmax needs one position
        self._mask[:batch, :length] = mask.to(values.device)
        self._graph.replay()
        memory: Memory = self._graph.result
        return _change(
            memory,
            rows=lambda tensor: tensor[:batch].clone(),
            positions=lambda tensor: tensor[:batch, :length].clone(),
        )


class StepGraph:
    """A captured step.

    Args:
        step: Computes the step on a GPU.
        pool: Memory that the graphs of a chain share, since they run one after another; None = its
            own.
    """

    def __init__(self, step: Callable[[], Any], pool: Any = None) -> None:
        self._graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        was_enabled = gc.isenabled()
        # Graphs that nothing refers to must not be released while another one is captured.
        gc.disable()
        try:
            with torch.cuda.stream(stream):
                # Other threads, such as those of other models, may use CUDA meanwhile.
                self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    self.result = step()
                finally:
                    self._graph.capture_end()
        finally:
            if was_enabled:
                gc.enable()
        torch.cuda.current_stream().wait_stream(stream)

    @property
    def pool(self) -> Any:
        """The memory that it was captured with."""
        return self._graph.pool()

    def replay(self) -> None:
        """Compute the step again, into the same tensors."""
        self._graph.replay()


def _pad(memory: Memory, limits: Tensor, max_length: int) -> tuple[Memory, Tensor]:
    """Return copies of a memory and maximum lengths with more sentences and longer sources.

    Args:
        memory: The memory.
        limits: (B,) the maximum lengths.
        max_length: Maximum length of a source.
    """
    batch, length = memory.mask.shape
    num_rows = _round_batch(batch)
    num_positions = _round_length(length, max_length) if memory.layout is None else length

    def pad_rows(tensor: Tensor) -> Tensor:
        padded = tensor.new_zeros(num_rows, *tensor.shape[1:])
        padded[:batch] = tensor
        return padded

    def pad(tensor: Tensor) -> Tensor:
        padded = tensor.new_zeros(num_rows, num_positions, *tensor.shape[2:])
        padded[:batch, :length] = tensor
        return padded

    padded = _change(memory, rows=pad_rows, positions=pad)
    padded.mask[batch:, 0] = True  # a softmax needs one position
    return padded, pad_rows(limits)


def _change(
    memory: Memory, *, rows: Callable[[Tensor], Tensor], positions: Callable[[Tensor], Tensor]
) -> Memory:
    """Return a memory with changed tensors, without losses.

    Args:
        memory: The memory.
        rows: Changes a tensor (B, ...).
        positions: Changes a tensor (B, S, ...).
    """
    return replace(
        memory,
        states=positions(memory.states),
        mask=positions(memory.mask),
        summary=rows(memory.summary),
        values=None if memory.values is None else positions(memory.values),
        final=None if memory.final is None else map_tensors(memory.final, rows),
        tokens=None if memory.tokens is None else positions(memory.tokens),
        losses={},
    )


def _max_source(model: nn.Module) -> int:
    """Return the maximum length of a source that all parts of a model allow."""
    limits = [part.max_source for part in model.modules() if isinstance(part, LocationScore)]
    limits += [part.max_length for part in model.modules() if isinstance(part, LearnedPositions)]
    return min(limits, default=sys.maxsize)


def _round_length(length: int, max_length: int) -> int:
    """Round up to a multiple of `LENGTH_MULTIPLE`, up to a maximum."""
    return max(length, min(max_length, -(-length // LENGTH_MULTIPLE) * LENGTH_MULTIPLE))


def _round_batch(batch: int) -> int:
    """Round up to a power of two, or to 1.5 times one."""
    size = 1 << (batch - 1).bit_length()
    return size * 3 // 4 if size >= 4 and batch <= size * 3 // 4 else size


def _first_line(error: RuntimeError) -> str:
    return str(error).partition("\n")[0]


def _tensors(memory: Memory) -> list[Tensor]:
    """Return all tensors of a memory."""
    found: list[Tensor] = []
    optional = (memory.values, memory.tokens, memory.final)
    parts = [memory.states, memory.mask, memory.summary]
    map_tensors([*parts, *(one for one in optional if one is not None)], found.append)
    return found
