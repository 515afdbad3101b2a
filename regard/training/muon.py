"""Muon: matrices take steps of equal length in all directions, everything else steps of AdamW."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""Of a polynomial that, applied a few times, brings singular values near 1 (Jordan et al. 2024)."""

NUM_ROUNDS = 5
TYPICAL_ROOT_MEAN_SQUARE = 0.2
"""Of a step of AdamW at a rate of 1: with it one rate and one decay suit both (Liu et al. 2025)."""


class Muon(Optimizer):
    """Momentum, made orthogonal, for groups that are `is_hidden`; AdamW for the others.

    The gradient of a matrix is mostly of low rank: few directions are learned, again and again. A
    step whose singular values are all alike learns the rare directions, too.

    Args:
        groups: Parameter groups, each with `is_hidden`; kernels of convolutions are matrices from
            what they see to what they say.
        lr: Length of a step, for both.
        momentum: Share of the moving average that is kept at each step, of hidden matrices.
        betas: How much of the two moving averages is kept at each step, of all others.
        eps: Added to denominators.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        momentum: float,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            moved = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not moved:
                continue
            torch._foreach_mul_(moved, 1 - group["lr"] * group["weight_decay"])
            direct = self._orthogonal if group["is_hidden"] else self._adam
            steps = direct(group, moved)
            torch._foreach_add_(moved, steps, alpha=-group["lr"])
        return loss

    def _orthogonal(self, group: dict[str, Any], moved: list[Tensor]) -> list[Tensor]:
        gradients, averages = _gradients(moved), self._averages(moved, "average")
        torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
        # Nesterov's look ahead.
        ahead = list(torch._foreach_lerp(gradients, averages, group["momentum"]))
        # Matrices of one shape are one batch: many small products are slow.
        by_shape: dict[tuple[int, int], list[int]] = {}
        matrices = [direction.flatten(1) for direction in ahead]
        for row, matrix in enumerate(matrices):
            by_shape.setdefault((matrix.shape[0], matrix.shape[1]), []).append(row)
        for shape, rows in by_shape.items():
            length = TYPICAL_ROOT_MEAN_SQUARE * max(shape) ** 0.5
            alike = orthogonalise(torch.stack([matrices[row] for row in rows]), eps=group["eps"])
            for row, matrix in zip(rows, alike * length, strict=True):
                ahead[row] = matrix.view_as(moved[row])
        return ahead

    def _adam(self, group: dict[str, Any], moved: list[Tensor]) -> list[Tensor]:
        gradients = _gradients(moved)
        averages, squares = self._averages(moved, "average"), self._averages(moved, "square")
        first, second = group["betas"]
        torch._foreach_lerp_(averages, gradients, 1 - first)
        torch._foreach_mul_(squares, second)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - second)
        # Each parameter counts its own steps, as some may have had no gradient. Under this name,
        # torch leaves a count as it is when a state is loaded, whatever the weights are.
        counts = []
        for parameter in moved:
            state = self.state[parameter]
            state["step"] = state.get("step", torch.zeros(())) + 1
            counts.append(float(state["step"]))
        roots = torch._foreach_sqrt(squares)
        torch._foreach_div_(roots, [(1 - second**count) ** 0.5 for count in counts])
        torch._foreach_add_(roots, group["eps"])
        steps = torch._foreach_div(averages, roots)
        torch._foreach_div_(steps, [1 - first**count for count in counts])
        return list(steps)

    def _averages(self, moved: list[Tensor], name: str) -> list[Tensor]:
        """Return moving averages, which begin with zero."""
        for parameter in moved:
            state = self.state[parameter]
            if name not in state:
                state[name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in moved]


def _gradients(moved: list[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in moved if parameter.grad is not None]


def orthogonalise(matrices: Tensor, *, eps: float = 1e-7) -> Tensor:
    """Return the nearest matrices of which all singular values are near 1, by Newton and Schulz.

    Args:
        matrices: A batch of them, (B, M, N).
        eps: Keeps a matrix of zeros from being divided by zero.
    """
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    # Sixteen bits are enough for it (Jordan et al. 2024), and what a GPU multiplies best.
    rounded = matrices.bfloat16() if matrices.is_cuda else matrices
    found: Tensor = rounded.mT if is_tall else rounded
    found = found / (found.norm(dim=(-2, -1), keepdim=True) + eps)
    once, thrice, five_times = COEFFICIENTS
    for _ in range(NUM_ROUNDS):
        square = found @ found.mT
        factor = torch.baddbmm(square, square, square, beta=thrice, alpha=five_times)
        found = torch.baddbmm(found, factor, found, beta=once)
    return (found.mT if is_tall else found).to(matrices.dtype)
