"""Search as configured: greedy, beam search or sampling, with constraints and reranking."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.search.beam import beam_search
from regard.search.constraints import ConstrainedScorer, build_constraints
from regard.search.forced import stepwise_log_probs
from regard.search.greedy import greedy
from regard.search.hypothesis import Hypothesis
from regard.search.lexical.constraints import LexicalScorer
from regard.search.lexical.dynamic_beam import dynamic_beam_search
from regard.search.mbr import rank_by_consensus
from regard.search.sampling import sample
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.search.tree import current_recorder


def search(
    scorer: Scorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    sample_keys: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Generate targets by greedy search, beam search or sampling.

    The log-probabilities of the hypotheses are those of the scorer, without constraints and
    temperature. Hypotheses are ranked by their `value`.

    Args:
        scorer: Scorer of next tokens; a `LexicalScorer` has phrases that targets must contain or
            must not contain.
        start: The start token.
        end: The end token.
        max_lengths: (B,) maximum number of tokens of each sentence, including its prefix.
        config: The settings.
        num_best: Number of hypotheses to return per sentence.
        prefixes: Token ids that each target must start with.
        sample_keys: Key of each sentence for the random numbers of sampling; its index in the batch
            if None.

    Returns:
        The best hypotheses of each sentence, best first.
    """
    constraints = build_constraints(
        config, end=end, max_lengths=max_lengths, prefixes=prefixes, device=scorer.device
    )
    constrained = ConstrainedScorer(scorer, constraints) if constraints else scorer
    num_hypotheses = max(num_best, config.consensus)
    config = config.with_beams(config.consensus)
    found: list[list[Hypothesis]] = [[]]
    if isinstance(scorer, LexicalScorer) and scorer.has_required:
        found = dynamic_beam_search(
            constrained,
            scorer,
            start=start,
            end=end,
            max_lengths=max_lengths,
            config=config,
            num_best=num_best,
        )
    if all(found):
        hypotheses = found
    elif config.is_sampling:
        hypotheses = sample(
            constrained,
            start=start,
            end=end,
            max_lengths=max_lengths,
            config=config,
            num_samples=num_hypotheses,
            sample_keys=sample_keys,
        )
    elif config.beams == 1 and num_hypotheses == 1 and not current_recorder():
        best = greedy(constrained, start=start, end=end, max_lengths=max_lengths)
        hypotheses = [[hypothesis] for hypothesis in best]
    else:
        hypotheses = beam_search(
            constrained,
            start=start,
            end=end,
            max_lengths=max_lengths,
            config=config,
            num_best=num_hypotheses,
        )
    if any(found):
        # Sentences without required phrases have the results of the search without any.
        hypotheses = [one or other for one, other in zip(found, hypotheses, strict=True)]
    _check_prefixes(hypotheses, prefixes or ())
    if config.repetition_penalty != 1.0:
        hypotheses = rescore(scorer, hypotheses, start=start)
    if config.consensus:
        ranked = (rank_by_consensus(group, is_sampled=config.is_sampling) for group in hypotheses)
        return [group[:num_best] for group in ranked]
    return [_rank(group) for group in hypotheses] if config.is_sampling else hypotheses


def _check_prefixes(
    hypotheses: Sequence[Sequence[Hypothesis]], prefixes: Sequence[Sequence[int]]
) -> None:
    """Raise `ConfigError` if the scorer did not allow a token of a prefix."""
    for group, prefix in zip(hypotheses, prefixes, strict=bool(prefixes)):
        tokens = group[0].tokens
        for index, token in enumerate(prefix):
            if tokens[index] != token:
                raise ConfigError(
                    f"`prefix` must consist of tokens that can be generated, but token {token} at "
                    f"position {index + 1} cannot."
                )


def _rank(samples: list[Hypothesis]) -> list[Hypothesis]:
    ranked = [replace(hypothesis, value=hypothesis.log_prob) for hypothesis in samples]
    return sorted(ranked, key=lambda hypothesis: -hypothesis.value)


def rescore(
    scorer: Scorer, hypotheses: Sequence[Sequence[Hypothesis]], *, start: int
) -> list[list[Hypothesis]]:
    """Replace the log-probabilities of hypotheses by those of the given scorer.

    Needed if a constraint changed log-probabilities. Order and `value` stay unchanged.
    """
    beams = max(len(group) for group in hypotheses)
    empty = Hypothesis((), 0.0, (), 0.0)
    rows = [one for group in hypotheses for one in [*group, *[empty] * (beams - len(group))]]
    longest = max(len(row.tokens) for row in rows)
    # Padding after the end is arbitrary: its log-probabilities are dropped.
    tokens = torch.tensor(
        [[start, *row.tokens, *[0] * (longest - len(row.tokens))] for row in rows],
        device=scorer.device,
    )  # (B·W, T + 1)
    values = (
        stepwise_log_probs(scorer, tokens, beams=beams).tolist() if longest else [[] for _ in rows]
    )
    scored = iter(zip(rows, values, strict=True))
    groups = [[next(scored) for _ in range(beams)][: len(group)] for group in hypotheses]
    return [[_with_log_probs(*pair) for pair in group] for group in groups]


def _with_log_probs(hypothesis: Hypothesis, log_probs: list[float]) -> Hypothesis:
    steps = tuple(log_probs[: len(hypothesis.tokens)])
    return replace(hypothesis, log_prob=sum(steps), step_log_probs=steps)
