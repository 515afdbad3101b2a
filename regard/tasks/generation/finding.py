"""Search for the targets of encoded sources: CTC, search, consensus and coverage."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from regard.models.interfaces import Memory
from regard.search.ctc import CtcScorer
from regard.search.hypothesis import Hypothesis
from regard.search.lexical import LexicalConstraints
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.tasks.decoding.consensus import find_candidates, rank_texts
from regard.tasks.generation import ctc
from regard.tasks.generation.coverage import rank_by_coverage
from regard.tasks.generation.lexical import with_constraints

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def find_targets(
    task: "Predictor",
    memory: Memory,
    config: SearchConfig,
    *,
    max_lengths: Tensor,
    num_best: int,
    prefix: Sequence[int],
    numbers: Sequence[int] | None,
    constraints: Sequence[LexicalConstraints],
) -> list[list[Hypothesis]]:
    """Return the best targets of encoded sources; the arguments are those of `generate`."""
    tokenizer = task.target.tokenizer
    scorer = ctc.build_scorer(task.model, memory, tokenizer, weight=config.ctc_weight)
    searched = with_constraints(scorer, constraints, task.lexical)
    if isinstance(searched, CtcScorer) and ctc.is_best_path_search(config, prefix):
        return ctc.decode_best_path(searched, task.model, memory)
    settings, num_candidates = find_candidates(config, num_best)
    if config.coverage_penalty and not config.is_sampling:
        num_candidates = max(num_best, config.beams)
    hypotheses = search(
        searched,
        start=tokenizer.sos,
        end=tokenizer.eos,
        max_lengths=max_lengths,
        config=settings,
        num_best=num_candidates,
        prefixes=[prefix] * len(max_lengths),
        sample_keys=numbers,
    )
    hypotheses = rank_texts(hypotheses, config, num_best=num_best, write=task.target.write)
    if config.coverage_penalty:
        weight, start = config.coverage_penalty, tokenizer.sos
        ranked = rank_by_coverage(task.model, memory, hypotheses, weight=weight, start=start)
        hypotheses = [group[:num_best] for group in ranked]
    return ctc.with_decoder_log_probs(scorer, hypotheses, start=tokenizer.sos)
