"""Attribution: how much each input token contributes to each token of an output, by four methods.

All methods explain the log-probability of a token of the output under forced decoding. Their inputs
are the tokens of the source and the earlier tokens of the output.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.core.errors import ConfigError
from regard.core.tables import pick
from regard.interpret.faithfulness import (
    Faithfulness,
    measure_faithfulness,
    random_faithfulness,
)
from regard.interpret.forced import ForcedPass
from regard.interpret.passes import force
from regard.search.settings import SearchConfig
from regard.search.watching import check_watch
from regard.tasks.base import Task

NUM_STEPS, MAX_STEPS = 16, 128
"""Number of points at which integrated gradients evaluate the gradient: at first, and at most."""

MAX_ERROR = 0.05
"""Error of integrated gradients, in nats, above which the number of points is doubled."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """Contribution of each input to each token of an output, by one method."""

    method: str
    """The method, a key of `METHODS`."""
    source: NDArray[np.float32]
    """(T, S), contributions of the parts of the source to each token of the output."""
    prefix: NDArray[np.float32]
    """(T, T), contributions of the earlier tokens of the output; zero from the diagonal on."""
    max_error: float | None = None
    """Largest difference between the sum of integrated gradients and the difference that they sum
    up to; None for other methods."""
    faithfulness: Faithfulness | None = None
    """Faithfulness of the scores of the source, if it was measured."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values: dict[str, Any] = {
            "method": self.method,
            "source": self.source.tolist(),
            "prefix": self.prefix.tolist(),
        }
        if self.max_error is not None:
            values["max_error"] = self.max_error
        if self.faithfulness is not None:
            values["faithfulness"] = self.faithfulness.to_dict()
        return values


@dataclass(frozen=True)
class Explanation:
    """Attributions of one output by one or several methods."""

    source: str
    """The source."""
    prediction: str
    """The output: the prediction, or the target that was given."""
    source_tokens: tuple[str, ...]
    """Labels of the columns of `Attribution.source`."""
    target_tokens: tuple[str, ...]
    """Labels of all rows, and of the columns of `Attribution.prefix`."""
    token_log_probs: tuple[float, ...]
    """Log-probability of each token of the output."""
    attributions: tuple[Attribution, ...]
    """One per method."""
    random: Faithfulness | None = None
    """Faithfulness of random scores, for comparison, if it was measured."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        measured = {} if self.random is None else {"random": self.random.to_dict()}
        return {
            "source": self.source,
            "prediction": self.prediction,
            "source_tokens": list(self.source_tokens),
            "target_tokens": list(self.target_tokens),
            "token_log_probs": list(self.token_log_probs),
            "attributions": [one.to_dict() for one in self.attributions],
            **measured,
        }


def attribute(
    task: Task[Any],
    source: str,
    *,
    methods: Sequence[str] = ("gradients",),
    target: str | None = None,
    search: SearchConfig | None = None,
    is_measured: bool = False,
) -> Explanation:
    """Explain the prediction for one source by one or several methods.

    Args:
        task: A run of a model that generates text or predicts labels.
        source: The raw source: a text, or the file of an image, a video or a recording.
        methods: Keys of `METHODS`.
        target: A target, a continuation or a label to explain in place of the prediction.
        search: Settings of the search for the prediction; those of the recipe if not given.
        is_measured: Whether to measure the faithfulness of each method.
    """
    check_methods(methods)
    forced = force(task, source, target, search=search)
    attributions = [METHODS[method](forced) for method in methods]
    if is_measured:
        attributions = [
            replace(one, faithfulness=measure_faithfulness(forced, one.source))
            for one in attributions
        ]
    return Explanation(
        source=source,
        prediction=forced.text,
        source_tokens=forced.source.names,
        target_tokens=forced.target_names,
        token_log_probs=tuple(forced.log_probs().tolist()),
        attributions=tuple(attributions),
        random=random_faithfulness(forced) if is_measured else None,
    )


def check_methods(methods: Sequence[str]) -> None:
    """Raise `ConfigError` unless there is a method, and each is known and named once."""
    for method in methods:
        pick(METHODS, method, "by")
    if not methods or len(set(methods)) < len(methods):
        raise ConfigError(
            f"`by` must name at least one method, and each only once, but is '{','.join(methods)}'."
        )


def by_attention(forced: ForcedPass) -> Attribution:
    """Attention weights, the mean of layers and heads: to the source, and to earlier tokens."""
    source, prefix = forced.attention()
    return _attribution("attention", source, prefix)


def by_gradients(forced: ForcedPass) -> Attribution:
    """Gradient × input: the gradient of the log-probability times the embedding of an input.

    Denil et al. 2014; Shrikumar et al. 2016. Linear models: the contribution of each input.
    """
    source, prefix = forced.source.values, forced.prefix_values
    totals = _Totals(forced)
    for output, gradients in _gradients(forced, source[None], prefix[None], factors=torch.ones(1)):
        totals.add(output, gradients)
    return _attribution("gradients", *totals.times(source, prefix))


def by_integrated_gradients(forced: ForcedPass) -> Attribution:
    """Integrated gradients (Sundararajan et al. 2017).

    The gradient is averaged along the line from a baseline to the input, and multiplied by their
    difference. The contributions to an output sum to the difference of its log-probabilities with
    the input and with the baseline, in which every word is an average word, and images are grey.
    """
    num_steps = NUM_STEPS
    while True:
        found = integrate_gradients(forced, num_steps)
        num_steps *= 2
        if found.max_error is None or found.max_error <= MAX_ERROR or num_steps > MAX_STEPS:
            return found


def integrate_gradients(forced: ForcedPass, num_steps: int) -> Attribution:
    """Compute integrated gradients by Gauss–Legendre quadrature with a number of points."""
    source, prefix = forced.source.values, forced.prefix_values
    starts = forced.source.baseline, forced.prefix_baseline
    differences = source - starts[0], prefix - starts[1]
    nodes, weights = np.polynomial.legendre.leggauss(num_steps)
    shares, factors = (
        torch.tensor(values, dtype=source.dtype, device=source.device)
        for values in ((nodes + 1) / 2, weights / 2)
    )
    totals = _Totals(forced)
    for rows in forced.chunks(num_steps):
        points = [
            start + shares[rows].view(-1, *[1] * start.dim()) * difference
            for start, difference in zip(starts, differences, strict=True)
        ]
        for output, gradients in _gradients(forced, *points, factors=factors[rows]):
            totals.add(output, gradients)
    found = totals.times(*differences)
    with torch.no_grad():
        end, start = (
            forced.log_probs_of(*(part[None] for part in at))[0]
            for at in ((source, prefix), starts)
        )
    error = (found[0].sum(1) + found[1].sum(1) - (end - start)).abs().max()
    return _attribution("integrated_gradients", *found, max_error=float(error))


def by_erasure(forced: ForcedPass) -> Attribution:
    """Erasure: the loss of log-probability of an output if an input is left out (Li et al. 2016).

    Tokens are deleted, and cells of an image or frames of a recording become the mean of the
    training data. Start and end tokens are never left out: their contribution is zero.
    """
    num_source, size = len(forced.source.names), forced.num_outputs
    is_free = torch.cat([forced.source.is_free, forced.prefix_is_free])
    erased = is_free.nonzero()[:, 0]
    kept = torch.ones(len(erased), len(is_free), dtype=torch.bool, device=is_free.device)
    kept[torch.arange(len(erased)), erased] = False
    losses = forced.log_probs() - forced.log_probs_without_each(kept)  # (L, T)
    by_input = torch.zeros(size, len(is_free), device=losses.device)
    by_input[:, erased] = losses.T
    source, prefix = by_input[:, :num_source], by_input[:, num_source:]
    # An output does not depend on itself and on later ones.
    return _attribution("erasure", source, prefix.tril(-1))


METHODS: dict[str, Callable[[ForcedPass], Attribution]] = {
    "attention": by_attention,
    "gradients": by_gradients,
    "integrated_gradients": by_integrated_gradients,
    "erasure": by_erasure,
}
"""Functions that compute attributions, by the name of the method."""


class _Totals:
    """Sums of the gradients of each output with respect to the source and to the prefix."""

    def __init__(self, forced: ForcedPass) -> None:
        self._sum_parts = forced.source.sum_parts
        self._source: list[Tensor] = [torch.zeros_like(forced.source.values)] * forced.num_outputs
        self._prefix: list[Tensor] = [torch.zeros_like(forced.prefix_values)] * forced.num_outputs

    def add(self, output: int, gradients: tuple[Tensor, Tensor]) -> None:
        """Add the gradients of an output."""
        self._source[output] = self._source[output] + gradients[0]
        self._prefix[output] = self._prefix[output] + gradients[1]

    def times(self, source: Tensor, prefix: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply by inputs, and sum over each part of the source, (T, S), and token, (T, T)."""
        by_part = [self._sum_parts(gradient * source) for gradient in self._source]
        by_token = [(gradient * prefix).sum(-1) for gradient in self._prefix]
        return torch.stack(by_part), torch.stack(by_token)


def _gradients(
    forced: ForcedPass, source: Tensor, prefix: Tensor, *, factors: Tensor
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Yield each output with the gradients of its log-probability, summed over rows with factors.

    Args:
        forced: The source with its output.
        source: (B, ...), values in place of those of the source.
        prefix: (B, T, D), values in place of those of the prefix.
        factors: (B,).
    """
    # cuDNN computes gradients of recurrent layers only in training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        leaves = [part.detach().clone().requires_grad_() for part in (source, prefix)]
        log_probs = factors.to(source.device) @ forced.log_probs_of(leaves[0], leaves[1])  # (T,)
        for output in range(forced.num_outputs):
            check_watch()
            found = torch.autograd.grad(
                log_probs[output],
                leaves,
                retain_graph=output < forced.num_outputs - 1,
                materialize_grads=True,
            )
            yield output, (found[0].sum(0), found[1].sum(0))


def _attribution(
    method: str, source: Tensor, prefix: Tensor, *, max_error: float | None = None
) -> Attribution:
    by_source, by_prefix = (part.detach().cpu().float().numpy() for part in (source, prefix))
    return Attribution(method, by_source, by_prefix, max_error=max_error)
