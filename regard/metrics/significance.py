"""Significance tests of the difference of two systems: paired bootstrap with sacrebleu."""

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
"""Metrics whose differences can be tested, with the settings of `regard.metrics.text.bleu`."""


@dataclass(frozen=True)
class Difference:
    """Difference of two systems on the same sentences."""

    name: str
    """Name of the metric in papers: BLEU, chrF2."""
    value: float
    """Value of the system minus that of the baseline."""
    interval: tuple[float, float]
    """95 % confidence interval of the difference."""
    p_value: float
    """Probability of a difference at least this large if the systems do not differ."""
    signature: str
    """Settings of the test."""

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
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
    """Test whether a system differs from a baseline, by scoring both on the same resamples.

    Koehn 2004, with the resamples and p-value of sacrebleu except for ties: a resampled
    difference equal to the observed one counts as chance, so a system never differs from itself.

    Args:
        baseline: Outputs of the baseline, one sentence each.
        hypotheses: Outputs of the system.
        references: One or more references per sentence.
        metric: `bleu` or `chrf`.
        num_samples: Number of resamples.
        seed: Seed of the resampling.
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
    """Test the mean difference between several runs and their baselines, such as several seeds.

    All runs share each resample, since further runs are not further test sentences.

    Args:
        baselines: Outputs of each baseline.
        systems: Outputs of each system, in the order of the baselines.
        references: One or more references per sentence.
        metric: `bleu` or `chrf`.
        num_samples: Number of resamples.
        seed: Seed of the resampling.
    """
    at_least("num_samples", num_samples, 40)
    scorer = pick(PAIRED, metric, "metric")()
    streams = [list(stream) for stream in zip_longest(*references)]
    values, resampled = [], []
    for baseline, hypotheses in zip(baselines, systems, strict=True):
        check_references(hypotheses, references, {"baseline": baseline})
        before, after = (
            np.array(scorer._extract_corpus_statistics(texts, streams))
            for texts in (baseline, hypotheses)
        )
        all_once = np.ones(len(after), dtype=np.intp)
        differences = [
            _score(scorer, counts @ after) - _score(scorer, counts @ before)
            for counts in chain([all_once], resamples(len(after), num_samples, seed=seed))
        ]
        values.append(differences[0])
        resampled.append(differences[1:])
    value, means = float(np.mean(values)), np.mean(resampled, axis=0)
    num_by_chance = int((np.abs(means) - np.abs(means).mean() >= abs(value)).sum())
    return Difference(
        name=scorer._compute_score_from_stats(after.sum(axis=0)).name,
        value=value,
        interval=percentile_interval(means),
        # Add one to both: the test set itself is a sample, so no p-value is zero.
        p_value=(num_by_chance + 1) / (num_samples + 1),
        signature=f"test:paired bootstrap|samples:{num_samples}|seed:{seed}|ties:chance",
    )


def _score(scorer: Metric, statistics: Any) -> float:
    return float(scorer._compute_score_from_stats(statistics).score)
