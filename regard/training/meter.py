"""What happened since the last line of the journal: losses, gradients, speed, waiting."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class Meter:
    """Adds up steps. The sums stay on the device, so that no step waits for it; `read` does."""

    def __init__(self, device: torch.device) -> None:
        self._sums = torch.zeros(4, dtype=torch.float64, device=device)
        self.reset()

    def reset(self) -> None:
        """Begin again at nothing."""
        self._sums.zero_()
        self.num_steps = 0
        self._num_tokens = 0
        self._waited = 0.0
        self._began = time.perf_counter()

    def add(self, sums: Tensor, norm: Tensor, *, num_tokens: int) -> None:
        """Take note of a step.

        Args:
            sums: Loss, negative log-likelihood and count of its batches.
            norm: Norm of its gradient.
            num_tokens: Target tokens of its batches.
        """
        self._sums += torch.cat([sums, norm.view(1)])
        self.num_steps += 1
        self._num_tokens += num_tokens

    def read(self) -> dict[str, float]:
        """Return means per token and per step, the speed, and the share of time spent waiting."""
        loss, nll, count, norm = self._sums.tolist()
        return {
            "loss": loss / max(count, 1),
            "nll": nll / max(count, 1),
            "gradient_norm": norm / max(self.num_steps, 1),
            "tokens_per_second": self._num_tokens / max(self._seconds(), 1e-9),
            "waiting": self._waited / max(self._seconds(), 1e-9),
        }

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as spent waiting for data."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._waited += time.perf_counter() - began

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the time of the block out of the speed."""
        seconds = self._seconds()
        try:
            yield
        finally:
            self._began = time.perf_counter() - seconds

    def state(self) -> dict[str, Any]:
        """Return what has to be remembered to go on later, as plain JSON."""
        return {
            "sums": self._sums.tolist(),
            "num_steps": self.num_steps,
            "num_tokens": self._num_tokens,
            "seconds": self._seconds(),
            "waited": self._waited,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` returned."""
        self._sums.copy_(torch.tensor(state["sums"], dtype=torch.float64))
        self.num_steps = state["num_steps"]
        self._num_tokens = state["num_tokens"]
        self._waited = state.get("waited", 0.0)  # a run begun before it was measured has none
        self._began = time.perf_counter() - state["seconds"]

    def _seconds(self) -> float:
        return time.perf_counter() - self._began
