"""Significance of the difference of two systems: paired bootstrap over sacrebleu's counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.core.config import at_least, to_dict
from regard.core.tables import pick
from regard.metrics.bootstrap import SEED, percentile_interval, resamples
from regard.metrics.result import References, Texts, check_references

PAIRED: dict[str, Callable[[], Metric]] = {"bleu": lambda: BLEU(force=True), "chrf": CHRF}
"""The metrics whose differences can be tested, as `regard.metrics.text.bleu` measures them."""


@dataclass(frozen=True)
class Difference:
    """How far one system is from another on the same sentences."""

    name: str
    """What papers call the measure: BLEU, chrF2."""
    value: float
    """The system's value less the baseline's."""
    interval: tuple[float, float]
    """95 % confidence interval of the difference."""
    p_value: float
    """How likely a difference at least this large is if there is none in truth."""
    signature: str
    """How it was tested."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return to_dict(self)


def paired_bootstrap(
    baseline: Texts,
    hypotheses: Texts,
    references: References,
    *,
    metric: str = "bleu",
    num_samples: int = 1000,
    seed: int = SEED,
) -> Difference:
    """Test whether a system differs from a baseline: both are measured on the same resamples.

    Koehn 2004, with sacrebleu's samples and p-value, but for ties: a difference that chance
    reaches exactly counts for chance, so that a system never differs from itself.

    Args:
        baseline: What the other system answered, one sentence each.
        hypotheses: What this system answered.
        references: For each sentence its references; their number may differ.
        metric: `bleu` or `chrf`.
        num_samples: How often the test set is drawn anew.
        seed: Seed of the drawing.
    """
    return paired_bootstrap_of_runs(
        [baseline], [hypotheses], references, metric=metric, num_samples=num_samples, seed=seed
    )


def paired_bootstrap_of_runs(
    baselines: Sequence[Texts],
    systems: Sequence[Texts],
    references: References,
    *,
    metric: str = "bleu",
    num_samples: int = 1000,
    seed: int = SEED,
) -> Difference:
    """Test the mean difference of several runs to their baselines, such as those of other seeds.

    Every resample is the same for all: runs tell the same sentences, not more of them.

    Args:
        baselines: What each baseline answered.
        systems: What each system answered, in the order of the baselines.
        references: As for `paired_bootstrap`, like all that follows.
        metric: `bleu` or `chrf`.
        num_samples: How often the test set is drawn anew.
        seed: Seed of the drawing.
    """
    at_least("num_samples", num_samples, 40)
    measure = pick(PAIRED, metric, "metric")()
    streams = [list(stream) for stream in zip_longest(*references)]
    values, resampled = [], []
    for baseline, hypotheses in zip(baselines, systems, strict=True):
        check_references(hypotheses, references, {"baseline": baseline})
        before, after = (
            np.array(measure._extract_corpus_statistics(texts, streams))
            for texts in (baseline, hypotheses)
        )
        every = np.ones(len(after), dtype=np.intp)
        differences = [
            _score(measure, times @ after) - _score(measure, times @ before)
            for times in chain([every], resamples(len(after), num_samples, seed=seed))
        ]
        values.append(differences[0])
        resampled.append(differences[1:])
    value, spread = float(np.mean(values)), np.mean(resampled, axis=0)
    num_by_chance = int((np.abs(spread) - np.abs(spread).mean() >= abs(value)).sum())
    return Difference(
        name=measure._compute_score_from_stats(after.sum(axis=0)).name,
        value=value,
        interval=percentile_interval(spread),
        # One more on both sides: the test set itself is a sample, and no p-value is zero.
        p_value=(num_by_chance + 1) / (num_samples + 1),
        signature=f"test:paired bootstrap|samples:{num_samples}|seed:{seed}|ties:chance",
    )


def _score(measure: Metric, counts: Any) -> float:
    return float(measure._compute_score_from_stats(counts).score)
