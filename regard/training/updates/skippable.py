"""Updates of the weights, skipped on the device if the loss or the gradients are not finite."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class Updates:
    """Updates by an optimiser. The host decides whether one is skipped, which is free on a CPU.

    A skipped update changes neither the weights nor the state of the optimiser, and buffers such
    as the running statistics of batch norms are those from before the forward pass.

    Args:
        optimizer: The optimiser.
        model: The model that it trains.
    """

    def __init__(self, optimizer: Optimizer, model: nn.Module) -> None:
        self._optimizer = optimizer
        saved = model.state_dict()
        self._buffers = _Kept(
            [
                buffer
                for name, buffer in model.named_buffers()
                if name in saved and buffer.is_floating_point()
            ]
        )

    def begin(self) -> None:
        """Keep what the forward pass changes. Called before each update."""
        self._buffers.keep()

    @torch.no_grad()
    def step(self, is_skipped: Tensor) -> None:
        """Update the weights unless `is_skipped`, (), is true."""
        if is_skipped:
            self._buffers.restore(is_skipped)
        else:
            self._optimizer.step()


class DeviceUpdates(Updates):
    """Updates that are skipped on the device: the host does not wait for the decision.

    Fused optimisers take the decision as their attribute `found_inf`. For others, the weights and
    the state are copied before each step and restored after a skipped one.
    """

    def __init__(self, optimizer: Optimizer, model: nn.Module) -> None:
        super().__init__(optimizer, model)
        self._takes_decision = bool(optimizer.defaults.get("fused"))
        self._is_first = True

    @torch.no_grad()
    def step(self, is_skipped: Tensor) -> None:
        """Update the weights unless `is_skipped`, (), is true."""
        if self._is_first:
            # The first step may create the state, so the host waits for this decision.
            super().step(is_skipped)
            self._is_first = bool(is_skipped)
            return
        self._buffers.restore(is_skipped)
        if self._takes_decision:
            self._optimizer.found_inf = is_skipped.float()  # type: ignore[attr-defined]
            self._optimizer.step()
            return
        kept = _Kept(self._tensors())
        kept.keep()
        self._optimizer.step()
        kept.restore(is_skipped)

    def _tensors(self) -> list[Tensor]:
        """Return the weights and the state; step counts on the host are not needed."""
        parameters = [one for group in self._optimizer.param_groups for one in group["params"]]
        values = [value for one in parameters for value in self._optimizer.state[one].values()]
        states = [value for value in values if isinstance(value, Tensor) and value.dim()]
        return [*parameters, *states]


class _Kept:
    """Copies of tensors, in one piece, as many small operations take long on a GPU."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = [tensor.detach() for tensor in tensors]
        self._copy = torch.empty(0)

    def keep(self) -> None:
        """Copy the tensors."""
        if self._tensors:
            self._copy = self._joined()

    def restore(self, is_restored: Tensor) -> None:
        """Set the tensors to the copies if `is_restored`, (), is true, on the device."""
        if self._tensors:
            chosen = torch.where(is_restored, self._copy, self._joined())
            parts = torch.split(chosen, [tensor.numel() for tensor in self._tensors])
            pairs = zip(parts, self._tensors, strict=True)
            torch._foreach_copy_(self._tensors, [part.view_as(one) for part, one in pairs])

    def _joined(self) -> Tensor:
        return torch.cat([tensor.flatten() for tensor in self._tensors])


def build_updates(optimizer: Optimizer, model: nn.Module, device: torch.device) -> Updates:
    """Build the updates of a model on a device."""
    kind = DeviceUpdates if device.type == "cuda" else Updates
    return kind(optimizer, model)
