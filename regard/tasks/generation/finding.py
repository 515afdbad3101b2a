"""Search for the targets of sources: batches, then CTC, search, consensus and coverage."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.example import Example
from regard.data.text.field import Text, as_text
from regard.models.interfaces import Memory
from regard.search.ctc import CtcScorer
from regard.search.hypothesis import Hypothesis
from regard.search.lexical.constraints import LexicalConstraints
from regard.search.search import search
from regard.search.settings import SearchConfig
from regard.search.tree import current_recorder
from regard.tasks.batches import map_batches, predict_nonempty
from regard.tasks.decoding.consensus import find_candidates, rank_texts
from regard.tasks.decoding.preparation import count_workers, limit_threads, search_batches
from regard.tasks.generation import ctc
from regard.tasks.generation.coverage import rank_by_coverage
from regard.tasks.generation.lexical import with_constraints
from regard.tasks.prediction import Prediction

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor


def predict_packed(
    task: "Predictor",
    sources: Sequence[Text],
    config: SearchConfig,
    *,
    num_best: int = 1,
    prefix: Sequence[int] = (),
) -> list[list[Prediction]]:
    """Pack the weights of the model, and return the best predictions of each source.

    Args:
        task: The run.
        sources: The parsed sources.
        config: The search settings, which are checked.
        num_best: Number of predictions per source.
        prefix: Tokens that each target begins with.
    """
    packed = task.with_packed_model(config.precision)
    # Hooks of the model itself are called by one thread.
    packed.num_workers = 1 if packed.model is task.model else count_workers(task.device)
    return packed._predict(sources, config, num_best=num_best, prefix=prefix)


def predict(
    task: "Predictor",
    sources: Sequence[Text],
    config: SearchConfig,
    *,
    num_best: int,
    prefix: Sequence[int],
) -> list[list[Prediction]]:
    """Return the best predictions of each source, in the order given.

    Args:
        task: The run, with packed weights and the number of threads.
        sources: The parsed sources.
        config: The search settings.
        num_best: Number of predictions per source.
        prefix: Tokens that each target begins with.
    """
    write, tokenizer = task.target.write, task.target.tokenizer

    def predict_constrained(
        nonempty: list[Text], constraints: Sequence[LexicalConstraints] = ()
    ) -> list[list[Prediction]]:
        @torch.inference_mode()
        def predict_batch(batch: Batch) -> list[list[Prediction]]:
            hypotheses = task.generate(
                task.encode_batch(batch),
                config,
                max_lengths=task.max_lengths(batch.source_mask, config),
                num_best=num_best,
                prefix=prefix,
                numbers=[crc32(as_text(nonempty[row]).encode()) for row in batch.rows],
                constraints=[constraints[row] for row in batch.rows] if constraints else (),
            )
            return [
                [Prediction.from_hypothesis(write(one.tokens), one, tokenizer) for one in best]
                for best in hypotheses
            ]

        settings = search_batches(
            task.recipe.data.batch,
            num_sources=len(nonempty),
            beams=config.beams,
            device=task.device,
        )
        batches = task.batches([Example(one) for one in nonempty], settings)
        # Attention weights and beam trees are recorded by one thread.
        is_recorded = bool(config.coverage_penalty) or current_recorder() is not None
        num_workers = 1 if is_recorded else task.num_workers
        with limit_threads(batches, num_workers):
            return map_batches(predict_batch, batches, num_workers=num_workers)

    control = task.lexical
    return predict_nonempty(
        predict_constrained if control is None else partial(control.predict, predict_constrained),
        sources,
        is_nonempty=lambda source: as_text(source).strip(),
    )


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
