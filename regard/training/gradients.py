"""Gradients of a batch: computed eagerly, or by a CUDA graph that is captured once per shape."""

import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.device import sum_dtype
from regard.core.logging import logger
from regard.training.losses import Loss

MAX_GRAPHS = 128
"""Maximum number of captured graphs; batches of further shapes are computed eagerly."""
TOLERANCE = 0.02
"""Maximum relative difference between the losses of the first captured step and an eager one."""
HOST_FIELDS = ("rows",)
"""Fields that a captured loss must not use; they are not part of the key of a graph."""


class Gradients:
    """Adds the gradients of a batch to the parameters, eagerly.

    Args:
        loss: Computes the loss of a batch.
        device: The device of the model.
    """

    def __init__(self, loss: Callable[[Any], Loss], device: torch.device) -> None:
        self._loss = loss
        self._device = device

    def add(self, batch: Any) -> Tensor:
        """Add the gradients of a batch; return the sums of loss, NLL and token count, (3,)."""
        loss = self._loss(batch)
        loss.total.backward()  # type: ignore[no-untyped-call]
        sums = (loss.total.detach(), loss.nll, loss.count)
        return torch.stack([one.to(sum_dtype(self._device)) for one in sums])

    def reset(self) -> None:
        """Drop everything that was prepared for shapes of batches."""

    def free(self) -> bool:
        """Free memory that is not needed for eager steps; return whether there was any."""
        return False


class CapturedGradients(Gradients):
    """Gradients by CUDA graphs: one launch per batch instead of thousands.

    The first batch of each shape is computed eagerly. With the second one, the forward and the
    backward pass are captured, and replayed for all later batches of that shape, whose tensors are
    copied into those of the captured step. Losses that synchronise with the host cannot be
    captured and stay eager.

    Args:
        loss: Computes the loss of a batch.
        device: The device of the model, a GPU.
        model: The model. Its gradients must keep their memory between steps, so they are set to
            zero, not to None.
    """

    def __init__(
        self, loss: Callable[[Any], Loss], device: torch.device, *, model: nn.Module
    ) -> None:
        super().__init__(loss, device)
        self._model = model
        self._is_enabled = True
        self.reset()

    def reset(self) -> None:
        """Drop all graphs; the next step that is captured is compared with an eager one again."""
        self._graphs: dict[Hashable, _Graph] = {}
        self._seen: set[Hashable] = set()
        self._is_capturable: bool | None = None  # None = not checked yet
        self._pool = torch.cuda.graph_pool_handle()

    def free(self) -> bool:
        """Drop all graphs, whose memory eager steps cannot use, and capture no more."""
        had_graphs = bool(self._graphs)
        self._is_enabled = False
        self.reset()
        return had_graphs

    def add(self, batch: Any) -> Tensor:
        """Add the gradients of a batch; return the sums of loss, NLL and token count, (3,)."""
        batch = map_batch(batch, lambda part: part.to(self._device, non_blocking=True))
        key = _shape_key(batch)
        if key in self._graphs:
            return self._graphs[key].replay(batch)
        is_first = key not in self._seen
        self._seen.add(key)
        if is_first or not self._is_enabled or len(self._graphs) >= MAX_GRAPHS:
            return super().add(batch)
        if self._is_capturable is None:
            self._is_capturable = self._can_capture(batch)
        if not self._is_capturable:
            return super().add(batch)
        self._graphs[key] = _Graph(super().add, batch, pool=self._pool)
        return self._graphs[key].replay(batch)

    def _can_capture(self, batch: Any) -> bool:
        """Return whether a captured step is possible and equals an eager step.

        A graph would repeat what is computed on the host, such as samples of its generator.
        """
        saved = _Saved(self._model)
        mode = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch does not detect all synchronisations
            torch.cuda.set_sync_debug_mode("error")
        try:
            eager = [super().add(batch), self._gradient_norm()]
            uses_host = not torch.equal(torch.get_rng_state(), saved.host_rng)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            logger.info("Training steps are not captured as CUDA graphs: %s", error)
            return False
        finally:
            torch.cuda.set_sync_debug_mode(mode)
            saved.restore()
        if uses_host:
            logger.info("Training steps are not captured as CUDA graphs: they sample on the host.")
            return False
        try:
            captured = [
                _Graph(super().add, batch, pool=self._pool).replay(batch),
                self._gradient_norm(),
            ]
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            logger.info("Training steps are not captured as CUDA graphs: %s", error)
            return False
        finally:
            saved.restore()
        pairs = zip(eager, captured, strict=True)
        if all(torch.allclose(one, other, rtol=TOLERANCE) for one, other in pairs):
            return True
        logger.warning(
            "A captured training step differs from an eager one (loss %s and %s); training stays "
            "eager.",
            *(sums[0].item() for sums in (captured[0], eager[0])),
        )
        return False

    def _gradient_norm(self) -> Tensor:
        gradients = [p.grad for p in self._model.parameters() if p.grad is not None]
        return torch.nn.utils.get_total_norm(gradients)


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Use a stream of its own on a GPU, as CUDA graphs need one."""
    if device.type != "cuda":
        yield
        return
    current = torch.cuda.current_stream(device)
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(current)
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        current.wait_stream(stream)


class _Graph:
    """Captured gradients of batches of one shape."""

    def __init__(self, add: Callable[[Any], Tensor], batch: Any, *, pool: Any) -> None:
        self._inputs = map_batch(batch, torch.clone)
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, such as the one that prefetches batches, may use CUDA meanwhile.
        with torch.cuda.graph(
            self._graph,
            pool=pool,
            stream=torch.cuda.current_stream(),
            capture_error_mode="thread_local",
        ):
            self._sums = add(self._inputs)

    def replay(self, batch: Any) -> Tensor:
        """Add the gradients of a batch of the same shape; return a copy of the sums."""
        for static, new in zip(_tensors(self._inputs), _tensors(batch), strict=True):
            static.copy_(new)
        self._graph.replay()
        return self._sums.clone()


class _Saved:
    """Copies of gradients, buffers and the states of the random generators."""

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        self._without_gradient = [p for p in parameters if p.grad is None]
        self._tensors = [p.grad for p in parameters if p.grad is not None]
        self._tensors += model.buffers()
        self._copies = [tensor.clone() for tensor in self._tensors]
        self._rng = torch.cuda.get_rng_state()
        self.host_rng = torch.get_rng_state()

    def restore(self) -> None:
        """Undo all changes since the copies were made, in place."""
        for tensor, copy in zip(self._tensors, self._copies, strict=True):
            tensor.copy_(copy)
        for parameter in self._without_gradient:
            parameter.grad = None
        torch.cuda.set_rng_state(self._rng)
        torch.set_rng_state(self.host_rng)


def map_batch(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a batch with a function applied to all its tensors.

    Args:
        batch: A dataclass; tensors are its fields, or in tuples in its fields.
        change: The function.
    """

    def convert(value: Any) -> Any:
        if isinstance(value, Tensor):
            return change(value)
        return tuple(map(convert, value)) if _is_tensors(value) else value

    return replace(batch, **{one.name: convert(getattr(batch, one.name)) for one in fields(batch)})


def _tensors(batch: Any) -> Iterator[Tensor]:
    for one in fields(batch):
        value = getattr(batch, one.name)
        if isinstance(value, Tensor):
            yield value
        elif _is_tensors(value):
            yield from (part for part in value if isinstance(part, Tensor))


def _is_tensors(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(part, Tensor) for part in value)


def _shape_key(batch: Any) -> Hashable:
    """Return all that a captured step depends on: the shapes of tensors, and other values."""
    shapes = tuple((part.shape, part.dtype) for part in _tensors(batch))
    others = tuple(
        value
        for one in fields(batch)
        if one.name not in HOST_FIELDS
        and not isinstance(value := getattr(batch, one.name), Tensor)
        and not _is_tensors(value)
    )
    return type(batch), shapes, others
