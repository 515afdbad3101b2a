"""Several models that differ in their seed, for results that depend on it."""

from collections.abc import Mapping, Sequence

NUM_MODELS = 3


def model_seeds(seed: int) -> range:
    """Return the seeds of the models of an experiment; two experiments have none in common."""
    return range(NUM_MODELS * seed, NUM_MODELS * (seed + 1))


def average(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over models."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
