"""Muon optimiser: orthogonalised updates for hidden matrices, AdamW for other parameters."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adam import adam

COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""Coefficients of the Newton-Schulz polynomial (Jordan et al. 2024)."""

NUM_ITERATIONS = 5
UPDATE_RMS = 0.2
"""Root mean square of updates at a learning rate of 1, typical of AdamW (Liu et al. 2025).

With it, one learning rate and one weight decay suit both kinds of updates.
"""


class Muon(Optimizer):
    """Orthogonalised momentum for groups with `is_hidden`, AdamW for the others.

    Gradients of matrices are close to low rank, so few directions dominate. An update with equal
    singular values also learns the rare directions.

    Args:
        groups: Parameter groups, each with `is_hidden`. Convolution kernels are flattened to
            matrices of output channels by inputs.
        lr: Learning rate of both kinds of updates.
        momentum: Decay rate of the moving average of hidden matrices.
        betas: Decay rates of the two moving averages of AdamW.
        eps: Added to denominators.
    """

    found_inf: Tensor | None = None
    """1 if the step must be skipped, (); the attribute that fused optimisers of torch have."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        momentum: float,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        devices = {parameter.device.type for group in groups for parameter in group["params"]}
        # As in optimisers of torch, `fused` has effects elsewhere: on the device of step counts
        # that are loaded, and on `found_inf`.
        fused = devices <= {"cpu", "cuda"}
        defaults = {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps, "fused": fused}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step; skip it, on the device, if the tensor `found_inf` is 1."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                update = self._update_hidden if group["is_hidden"] else self._update_by_adam
                update(group, parameters)
        return loss

    def _update_hidden(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        is_taken = 1 if self.found_inf is None else 1 - self.found_inf
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"] * is_taken)
        updates = self._orthogonal_updates(group, parameters)
        if self.found_inf is not None:
            torch._foreach_mul_(updates, is_taken)
        torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _orthogonal_updates(self, group: dict[str, Any], parameters: list[Tensor]) -> list[Tensor]:
        gradients, averages = _gradients(parameters), self._averages(parameters, "average")
        if self.found_inf is not None:
            # With the average itself as the gradient, the average does not change.
            for gradient, average in zip(gradients, averages, strict=True):
                torch.where(self.found_inf > 0, average, gradient, out=gradient)
        torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
        # Nesterov momentum.
        updates = list(torch._foreach_lerp(gradients, averages, group["momentum"]))
        # Matrices of one shape are stacked to a batch: many small products are slow.
        by_shape: dict[tuple[int, int], list[int]] = {}
        matrices = [update.flatten(1) for update in updates]
        for index, matrix in enumerate(matrices):
            by_shape.setdefault((matrix.shape[0], matrix.shape[1]), []).append(index)
        for shape, indices in by_shape.items():
            scale = UPDATE_RMS * max(shape) ** 0.5
            batch = torch.stack([matrices[index] for index in indices])
            scaled = orthogonalize(batch, eps=group["eps"]) * scale
            for index, matrix in zip(indices, scaled, strict=True):
                updates[index] = matrix.view_as(parameters[index])
        return updates

    def _update_by_adam(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        # Each parameter has its own step count, as some may have had no gradient.
        for parameter in parameters:
            if "step" not in self.state[parameter]:
                device = parameter.device if group["fused"] else "cpu"
                self.state[parameter]["step"] = torch.zeros((), device=device)
        adam(
            parameters,
            _gradients(parameters),
            self._averages(parameters, "average"),
            self._averages(parameters, "square"),
            [],
            [self.state[parameter]["step"] for parameter in parameters],
            fused=group["fused"],
            found_inf=self.found_inf,
            decoupled_weight_decay=True,
            amsgrad=False,
            maximize=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )

    def _averages(self, parameters: list[Tensor], name: str) -> list[Tensor]:
        """Return moving averages, initialised to zero."""
        for parameter in parameters:
            state = self.state[parameter]
            if name not in state:
                state[name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in parameters]


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def orthogonalize(matrices: Tensor, *, eps: float = 1e-7) -> Tensor:
    """Approximate the nearest semi-orthogonal matrices by Newton-Schulz iterations.

    Args:
        matrices: (B, M, N).
        eps: Added to the norm, to avoid division by zero.
    """
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    # bfloat16 is precise enough (Jordan et al. 2024) and fast on GPUs.
    rounded = matrices.bfloat16() if matrices.is_cuda else matrices
    result: Tensor = rounded.mT if is_tall else rounded
    result = result / (result.norm(dim=(-2, -1), keepdim=True) + eps)
    a, b, c = COEFFICIENTS
    for _ in range(NUM_ITERATIONS):
        gram = result @ result.mT
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        result = torch.baddbmm(result, factor, result, beta=a)
    return (result.mT if is_tall else result).to(matrices.dtype)
