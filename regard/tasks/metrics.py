"""Metrics by the names that recipes and people give them: of answers, candidates and targets."""

import re
from collections.abc import Sequence

from regard.core.config import within
from regard.core.tables import pick
from regard.metrics.result import Result
from regard.metrics.table import ERROR_RATES, METRICS
from regard.metrics.text.error_rates import nbest_accuracy

LOSS = "loss"
"""What is no metric of answers, but may decide which weights are best."""

PERPLEXITY = "perplexity"
"""How surprised a model is by right targets; what it answers does not matter."""

MAX_CANDIDATES = 100
"""Candidates for an answer that `accuracy@N` may ask for."""


def check_metric(name: str, setting: str) -> None:
    """Raise a `ConfigError` unless there is a metric of this name.

    Args:
        name: A name of the table of metrics, `perplexity`, or `accuracy@5`: one of five
            candidates is right.
        setting: Where the name was given.
    """
    if found := _find_candidates(name):
        within(setting, found, low=2, high=MAX_CANDIDATES)
    else:
        pick({PERPLEXITY: None, **METRICS}, name, setting)


def num_candidates(names: Sequence[str]) -> int:
    """Return how many candidates for each answer these metrics need."""
    return max(_find_candidates(name) or 1 for name in names)


def measure(
    names: Sequence[str],
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    num_bootstrap: int = 0,
) -> dict[str, Result]:
    """Measure answers in several ways.

    Args:
        names: The metrics, all of them of answers.
        candidates: For each question its answers, the best first; most metrics look at that alone.
        references: For each question its right answers.
        num_bootstrap: Samples behind each confidence interval; 0 = none.
    """
    best = [found[0] for found in candidates]
    results = {}
    for name in names:
        if most := _find_candidates(name):
            some = [found[:most] for found in candidates]
            results[name] = nbest_accuracy(some, references, num_bootstrap=num_bootstrap)
        else:
            results[name] = METRICS[name](best, references, num_bootstrap=num_bootstrap)
    return results


def to_objective(name: str, value: float) -> float:
    """Return a value of which more is better, whatever the metric."""
    return -value if name in ERROR_RATES or name in (LOSS, PERPLEXITY) else value


def _find_candidates(name: str) -> int:
    """Return N for `accuracy@N`, and 0 for any other name."""
    found = re.fullmatch(r"accuracy@(\d+)", name)
    return int(found[1]) if found else 0
