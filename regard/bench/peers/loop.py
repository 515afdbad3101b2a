"""Plain training loop for models of other implementations."""

import time
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.bench.contender import Contender, synchronize
from regard.core.device import find_dtype
from regard.core.logging import logger
from regard.data.batch import Batch
from regard.training.settings import TrainConfig

COMPILED = "compiled"
"""Note of a peer whose model is compiled."""


class PeerLoss(nn.Module):
    """Mean cross entropy of a model with label smoothing, under autocast.

    Args:
        model: Maps source (B, S), decoder inputs (B, T) and mask (B, S) or None to logits.
        train: Training settings: label smoothing and precision.
        device: Device of the model.
        pad: Id of the padding token, which the loss ignores.
    """

    def __init__(
        self, model: nn.Module, train: TrainConfig, *, device: torch.device, pad: int
    ) -> None:
        super().__init__()
        self.model = model
        self.smoothing = train.label_smoothing
        self.device_type = device.type
        self.dtype = find_dtype(train.precision, device)
        self.pad = pad

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None) -> Tensor:
        """Return the loss of source (B, S) and target (B, T), from the start token on."""
        is_mixed = self.dtype != torch.float32
        with torch.autocast(self.device_type, self.dtype, enabled=is_mixed):
            logits = self.model(source, target[:, :-1], mask)
        return cross_entropy(
            logits.flatten(0, 1).float(),
            target[:, 1:].flatten(),
            ignore_index=self.pad,
            label_smoothing=self.smoothing,
        )


class PeerContender(Contender):
    """Training loop of a peer: loss, backward pass, clipping, fused AdamW.

    Masks are passed to the model only if there is padding, since it is faster without.

    Args:
        loss: Loss of the model, on its device.
        train: Training settings: learning rate and clipping.
        batches: Batches, on the host.
        device: Device of the model.
        is_compiled: Whether to compile the loss; if that fails, `note` has the reason.
    """

    def __init__(
        self,
        loss: PeerLoss,
        train: TrainConfig,
        *,
        batches: Iterable[Batch],
        device: torch.device,
        is_compiled: bool = False,
    ) -> None:
        self._loss = loss.to(device).train()
        self._compute: nn.Module = self._loss
        self._device = device
        self._batches = iter(batches)
        self._clip_norm = train.clip_norm
        self._parameters = [p for p in loss.parameters() if p.requires_grad]
        self.num_parameters = sum(parameter.numel() for parameter in self._parameters)
        rate = train.optimizer.learning_rate
        self._optimizer = torch.optim.AdamW(self._parameters, lr=rate, fused=True)
        self._is_to_compile = is_compiled

    def run(self, num_steps: int) -> float:
        """Train for `num_steps` steps; return their seconds."""
        synchronize(self._device)
        started = time.perf_counter()
        if self._is_to_compile:
            self._compile()
            num_steps -= 1
        for _ in range(num_steps):
            self._step()
        synchronize(self._device)
        return time.perf_counter() - started

    def close(self) -> None:
        """Free the model and the state of the optimiser."""
        self._optimizer.state.clear()
        del self._loss, self._compute, self._parameters

    def _compile(self) -> None:
        """Make a step with the compiled loss, or without compilation if that fails."""
        self._is_to_compile = False
        self._compute = torch.compile(self._loss)  # type: ignore[assignment]
        try:
            self._step()
            self.note = COMPILED
        except Exception as error:
            torch._dynamo.reset()
            reason = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
            logger.debug("Compilation failed.", exc_info=True)
            self.note = f"not compiled ({reason:.100})"
            self._compute = self._loss
            self._step()

    def _step(self) -> None:
        batch = next(self._batches)
        mask = None if batch.source_mask.all() else batch.source_mask
        batch = batch.to(self._device)
        if mask is not None:
            mask = mask.to(self._device, non_blocking=True)
        self._optimizer.zero_grad()
        loss = self._compute(batch.source, batch.target, mask)
        loss.backward()
        if self._clip_norm:
            nn.utils.clip_grad_norm_(self._parameters, self._clip_norm)
        self._optimizer.step()
