"""Minimum Bayes risk decoding by a metric of texts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from regard.search.hypothesis import Hypothesis
from regard.search.mbr import rank_by_consensus
from regard.search.settings import SearchConfig
from regard.tasks.decoding.similarity import PAIRWISE


def compares_texts(config: SearchConfig) -> bool:
    """Return whether hypotheses are ranked by a metric of their texts, after the search."""
    return config.consensus > 0 and config.consensus_metric in PAIRWISE


def find_candidates(config: SearchConfig, num_best: int) -> tuple[SearchConfig, int]:
    """Return the settings of the search for the hypotheses to rank, and their number."""
    if not compares_texts(config):
        return config, num_best
    search = replace(config.with_beams(config.consensus), consensus=0)
    return search, max(num_best, config.consensus)


def rank_texts(
    hypotheses: Sequence[list[Hypothesis]],
    config: SearchConfig,
    *,
    num_best: int,
    write: Callable[[Sequence[int]], str],
) -> list[list[Hypothesis]]:
    """Rank the hypotheses of each sentence by the metric of the settings, if it compares texts.

    Args:
        hypotheses: Results of a search with `find_candidates`.
        config: The settings.
        num_best: Number of hypotheses to return per sentence.
        write: Function from token ids to a text.
    """
    if not compares_texts(config):
        return list(hypotheses)

    def similarities(targets: Sequence[tuple[int, ...]]) -> Tensor:
        return PAIRWISE[config.consensus_metric]([write(tokens) for tokens in targets])

    ranked = (
        rank_by_consensus(group, is_sampled=config.is_sampling, similarities=similarities)
        for group in hypotheses
    )
    return [group[:num_best] for group in ranked]
