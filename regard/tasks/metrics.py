"""Metrics by name: of predictions, of n-best lists, and the perplexity of targets."""

import math
import re
from collections.abc import Callable, Sequence

from regard.core.config import within
from regard.core.progress import track
from regard.core.tables import pick
from regard.metrics.result import Result
from regard.metrics.table import ERROR_RATES, METRICS
from regard.metrics.text.error_rates import nbest_accuracy
from regard.training.validation import Validation

LOSS = "loss"
"""The validation loss, as a criterion for the best weights."""

PERPLEXITY = "perplexity"
"""The perplexity of the targets under forced decoding; it needs no predictions."""

MAX_CANDIDATES = 100
"""Maximum N of `accuracy@N`."""


def check_metric(name: str, setting: str) -> None:
    """Raise a `ConfigError` unless there is a metric of this name.

    Args:
        name: A name of the table of metrics, `perplexity`, or `accuracy@5`: one of the five best
            predictions is correct.
        setting: The setting that holds the name.
    """
    if num_best := _parse_num_best(name):
        within(setting, num_best, low=2, high=MAX_CANDIDATES)
    else:
        pick({PERPLEXITY: None, **METRICS}, name, setting)


def num_candidates(names: Sequence[str]) -> int:
    """Return the number of predictions per source that metrics need."""
    return max(_parse_num_best(name) or 1 for name in names)


def measure(
    names: Sequence[str],
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    num_bootstrap: int = 0,
) -> dict[str, Result]:
    """Compute metrics of predictions.

    Args:
        names: Names of the metrics; not `loss` or `perplexity`.
        candidates: The predictions of each source, the best first; most metrics use only that.
        references: The references of each source.
        num_bootstrap: Bootstrap samples of each confidence interval; 0 = no intervals.
    """
    best = [texts[0] for texts in candidates]
    results = {}
    for name in track(names, "Computing metrics", total=len(names)):
        if num_best := _parse_num_best(name):
            n_best = [texts[:num_best] for texts in candidates]
            results[name] = nbest_accuracy(n_best, references, num_bootstrap=num_bootstrap)
        else:
            results[name] = METRICS[name](best, references, num_bootstrap=num_bootstrap)
    return results


def to_objective(name: str, value: float) -> float:
    """Return the value of a metric, negated if lower is better."""
    return -value if name in ERROR_RATES or name in (LOSS, PERPLEXITY) else value


def _parse_num_best(name: str) -> int:
    """Return N for `accuracy@N`, and 0 for any other name."""
    match = re.fullmatch(r"accuracy@(\d+)", name)
    return int(match[1]) if match else 0


def nll_validation(mean_nll: Callable[[], float]) -> Callable[[], Validation]:
    """Return a function that measures the mean loss and the perplexity.

    Args:
        mean_nll: Returns the mean negative log-likelihood of the validation data, in nats.
    """

    def validate() -> Validation:
        nll = mean_nll()
        metrics = {LOSS: nll, PERPLEXITY: math.exp(nll)}
        return Validation(value=-nll, metrics=metrics, metric=LOSS)

    return validate
