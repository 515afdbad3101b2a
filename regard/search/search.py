"""One door to every way of finding targets: greedy, with beams or drawn, with rules or without."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.core.errors import ConfigError
from regard.search.beam import beam_search
from regard.search.constraints import RuledScorer, build_rules
from regard.search.forced import walk_along
from regard.search.greedy import greedy
from regard.search.hypothesis import Hypothesis
from regard.search.mbr import rank_by_consensus
from regard.search.sampling import sample
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig


def search(
    scorer: Scorer,
    *,
    start: int,
    end: int,
    max_lengths: Tensor,
    config: SearchConfig,
    num_best: int = 1,
    prefixes: Sequence[Sequence[int]] | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find targets as the settings ask.

    The log-probabilities of what is found are those of the scorer, whatever rule or temperature
    led there; what was ranked by is a hypothesis's `value`.

    Args:
        scorer: What gives log-probabilities.
        start: The start token.
        end: The end token.
        max_lengths: (B,) most tokens of each sentence, those of its prefix included.
        config: How to search, or draw.
        num_best: How many hypotheses to return a sentence.
        prefixes: The tokens each sentence must begin with.
        numbers: What tells the sentences apart when targets are drawn, so that each has draws of
            its own; their places in the batch if not given.

    Returns:
        For each sentence its best hypotheses, best first.
    """
    rules = build_rules(
        config, end=end, max_lengths=max_lengths, prefixes=prefixes, device=scorer.device
    )
    ruled = RuledScorer(scorer, rules) if rules else scorer
    num_found = max(num_best, config.consensus)
    wide = replace(config, beams=max(config.beams, config.consensus))
    if config.is_drawn:
        found = sample(
            ruled,
            start=start,
            end=end,
            max_lengths=max_lengths,
            config=wide,
            num_samples=num_found,
            numbers=numbers,
        )
    elif wide.beams == 1 and num_found == 1:
        best = greedy(ruled, start=start, end=end, max_lengths=max_lengths)
        found = [[hypothesis] for hypothesis in best]
    else:
        found = beam_search(
            ruled, start=start, end=end, max_lengths=max_lengths, config=wide, num_best=num_found
        )
    _check_beginnings(found, prefixes or ())
    if config.repetition_penalty != 1.0:
        found = rescore(scorer, found, start=start)
    if config.consensus:
        ranked = (rank_by_consensus(group, is_drawn=config.is_drawn) for group in found)
        return [group[:num_best] for group in ranked]
    return [_rank(group) for group in found] if config.is_drawn else found


def _check_beginnings(
    found: Sequence[Sequence[Hypothesis]], prefixes: Sequence[Sequence[int]]
) -> None:
    """Raise if a prefix was not kept: a scorer may hold some of its tokens for impossible."""
    for group, prefix in zip(found, prefixes, strict=bool(prefixes)):
        written = group[0].tokens
        for place, token in enumerate(prefix):
            if written[place] != token:
                raise ConfigError(
                    f"`prefix` must be of tokens that may be written, but token {token} at "
                    f"place {place + 1} may not."
                )


def _rank(drawn: list[Hypothesis]) -> list[Hypothesis]:
    ranked = [replace(hypothesis, value=hypothesis.log_prob) for hypothesis in drawn]
    return sorted(ranked, key=lambda hypothesis: -hypothesis.value)


def rescore(
    scorer: Scorer, found: Sequence[Sequence[Hypothesis]], *, start: int
) -> list[list[Hypothesis]]:
    """Give hypotheses the log-probabilities that a scorer itself has for their tokens.

    One more pass, needed only where a rule changed numbers. Their order and value stay.
    """
    beams = max(len(group) for group in found)
    nothing = Hypothesis((), 0.0, (), 0.0)
    rows = [one for group in found for one in [*group, *[nothing] * (beams - len(group))]]
    longest = max(len(row.tokens) for row in rows)
    # What comes after a hypothesis has ended is read by nobody: any token will do.
    tokens = torch.tensor(
        [[start, *row.tokens, *[0] * (longest - len(row.tokens))] for row in rows],
        device=scorer.device,
    )  # (B·W, T + 1)
    values = walk_along(scorer, tokens, beams=beams).tolist() if longest else [[] for _ in rows]
    scored = iter(zip(rows, values, strict=True))
    groups = [[next(scored) for _ in range(beams)][: len(group)] for group in found]
    return [[_with_log_probs(*pair) for pair in group] for group in groups]


def _with_log_probs(hypothesis: Hypothesis, said: list[float]) -> Hypothesis:
    steps = tuple(said[: len(hypothesis.tokens)])
    return replace(hypothesis, log_prob=sum(steps), step_log_probs=steps)
