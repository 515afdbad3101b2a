"""Predictor whose search runs in CTranslate2."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self

import torch

from regard.core.errors import ConfigError
from regard.data.batch import Batch
from regard.interop.batch_search import BatchSearchPredictor, source_ids
from regard.interop.ctranslate2.convert import convert, import_ctranslate2, max_positions
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SAMPLING_ONLY, SearchConfig
from regard.tasks.base import Task

HONOURED = ("beams", "length_penalty", "max_ratio", "max_extra")
"""Search settings that CTranslate2 has with the same meaning. Its constraints, such as a minimum
length, differ: it renormalises the probabilities of the other tokens."""


class CTranslate2Predictor(BatchSearchPredictor):
    """Predictor whose search runs in CTranslate2."""

    _translator: Any
    _has_token_log_probs: bool
    _banned: list[list[str]]

    @classmethod
    def of(
        cls, task: Task[Any], *, compute_type: str = "float32", has_token_log_probs: bool = False
    ) -> Self:
        """Convert the model of a run, or find it in the cache, and load it.

        Args:
            task: The run.
            compute_type: Type of CTranslate2: float32, int8, bfloat16, float16, ...
            has_token_log_probs: Whether predictions have the log-probability of each token, which
                takes another pass over the targets. Otherwise log-probabilities are renormalised
                without padding and the start token, which are never generated.
        """
        library, predictor = import_ctranslate2(), cls.copy_of(task)
        device = "cuda" if task.device.type == "cuda" else "cpu"
        index = task.device.index or 0
        known = library.get_supported_compute_types(device, index)
        if compute_type not in known:
            raise ConfigError(
                f"CTranslate2 computes in {', '.join(sorted(known))} on this device, but not in "
                f"{compute_type}."
            )
        predictor._translator = library.Translator(
            str(convert(predictor)),
            device,
            device_index=index,
            compute_type=compute_type,
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )
        predictor._has_token_log_probs = has_token_log_probs
        tokenizer = predictor.target.tokenizer
        predictor._banned = [[str(token)] for token in sorted({tokenizer.pad, tokenizer.sos})]
        return predictor

    def check_search(self, config: SearchConfig, prefix: Sequence[int]) -> None:
        """Raise `ConfigError` if CTranslate2 lacks a setting of the search."""
        if prefix:
            raise ConfigError("`--engine ctranslate2` has no `--prefix`. Leave one of them out.")
        defaults = SearchConfig()
        for one in fields(config):
            value, default = getattr(config, one.name), getattr(defaults, one.name)
            if one.name not in HONOURED + SAMPLING_ONLY and value != default:
                raise ConfigError(
                    f"`--engine ctranslate2` needs `search.{one.name}` {default}, but it is "
                    f"{value}. Set search.{one.name}={default}, or leave out `--engine`."
                )

    def search_batch(
        self, batch: Batch, config: SearchConfig, *, max_lengths: list[int], num_best: int
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each source of a batch, best first.

        The batch is searched with the largest limit of its sentences. Sentences with a result
        beyond their own limit are searched again, each with its own.
        """
        if num_best > config.beams:
            raise ConfigError(
                f"`nbest` must be at most the number of beams ({config.beams}), but is {num_best}. "
                "Ask for more beams."
            )
        sources = [[str(token) for token in ids] for ids in source_ids(batch)]
        limits = [min(limit, max_positions(self)) for limit in max_lengths]
        results = self._translate(sources, config, max_length=max(limits), num_best=num_best)
        again = defaultdict(list)
        for row, (found, limit) in enumerate(zip(results, limits, strict=True)):
            if any(len(one.tokens) > limit for one in found):
                again[limit].append(row)
        for limit, rows in again.items():
            chosen = [sources[row] for row in rows]
            shorter = self._translate(chosen, config, max_length=limit, num_best=num_best)
            for row, hypotheses in zip(rows, shorter, strict=True):
                results[row] = hypotheses
        return (
            self._with_token_log_probs(sources, results) if self._has_token_log_probs else results
        )

    def _translate(
        self, sources: list[list[str]], config: SearchConfig, *, max_length: int, num_best: int
    ) -> list[list[Hypothesis]]:
        """Search for the targets of sources of token ids as text."""
        if max_length < 1:
            return [[Hypothesis((), 0.0, (), 0.0)] for _ in sources]
        translated = self._translator.translate_batch(
            sources,
            beam_size=config.beams,
            num_hypotheses=num_best,
            length_penalty=config.length_penalty,
            max_input_length=0,
            max_decoding_length=max_length,
            min_decoding_length=0,
            suppress_sequences=self._banned,
            return_end_token=True,
            return_scores=True,
        )
        return [
            [
                to_hypothesis(tokens, score, config)
                for tokens, score in zip(one.hypotheses, one.scores, strict=True)
            ]
            for one in translated
        ]

    def _with_token_log_probs(
        self, sources: list[list[str]], results: list[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Add the log-probability of each token, from a pass over whole targets."""
        pairs: list[tuple[list[str], Hypothesis]] = [
            (source, one) for source, found in zip(sources, results, strict=True) for one in found
        ]
        end = self.target.tokenizer.eos
        # The library adds the end token to the targets.
        targets = [
            [str(token) for token in one.tokens[: -1 if one.tokens[-1:] == (end,) else None]]
            for _, one in pairs
        ]
        scored = self._translator.score_batch(
            [source for source, _ in pairs], targets, max_input_length=0
        )
        completed = iter(
            _with_steps(one, result.log_probs)
            for (_, one), result in zip(pairs, scored, strict=True)
        )
        return [[next(completed) for _ in found] for found in results]


def to_hypothesis(tokens: Sequence[str], score: float, config: SearchConfig) -> Hypothesis:
    """Return a result of CTranslate2, whose score is divided by length ** penalty."""
    ids = tuple(map(int, tokens))
    # Greedy search also normalises by length.
    return Hypothesis(ids, score * len(ids) ** config.length_penalty, (), score)


def _with_steps(hypothesis: Hypothesis, log_probs: Sequence[Any]) -> Hypothesis:
    steps = tuple(map(float, log_probs[: len(hypothesis.tokens)]))
    return replace(hypothesis, log_prob=sum(steps), step_log_probs=steps)
