"""Predictor with plain greedy and beam search over a plain decoder, for recurrent models."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from regard.bench.decode.peers.plain import PlainDecoder, PlainState, build_plain
from regard.data.batch import Batch
from regard.interop.batch_search import BatchSearchPredictor
from regard.models.interfaces import Memory
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig
from regard.tasks.base import Task


class LoopPredictor(BatchSearchPredictor):
    """Predictor with a loop over steps: all sentences of a batch are decoded until all have ended.

    The encoder is that of the run.
    """

    _decoder: PlainDecoder

    @classmethod
    def of(cls, task: Task[Any]) -> Self:
        """Build the plain decoder of a run."""
        predictor = cls.copy_of(task)
        decoder = build_plain(predictor.model, predictor.recipe.model)
        predictor._decoder = decoder.to(task.device).eval()
        return predictor

    def search_batch(
        self, batch: Batch, config: SearchConfig, *, max_lengths: list[int], num_best: int
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each source of a batch, best first."""
        memory, tokenizer = self.encode_batch(batch), self.target.tokenizer
        loop = _Loop(self._decoder, start=tokenizer.sos, end=tokenizer.eos, banned=tokenizer.pad)
        if config.beams == 1:
            return [[one] for one in loop.greedy(memory, max_lengths)]
        return [
            found[:num_best]
            for found in loop.beam_search(
                memory, max_lengths, beams=config.beams, penalty=config.length_penalty
            )
        ]


class _Loop:
    """Greedy and beam search.

    Args:
        decoder: The decoder.
        start: The start token.
        end: The end token.
        banned: A token that is never generated, as the start token is.
    """

    def __init__(self, decoder: PlainDecoder, *, start: int, end: int, banned: int) -> None:
        self._decoder, self._start, self._end = decoder, start, end
        self._banned = [start, banned]

    def _step(self, tokens: Tensor, state: PlainState) -> tuple[Tensor, PlainState]:
        logits, state = self._decoder.step(tokens, state)
        log_probs = logits.log_softmax(-1)
        log_probs[:, self._banned] = float("-inf")
        return log_probs, state

    def greedy(self, memory: Memory, max_lengths: Sequence[int]) -> list[Hypothesis]:
        """Return the greedy hypothesis of each sentence."""
        device = memory.states.device
        limits = torch.tensor(max_lengths, device=device)
        tokens = torch.full((len(max_lengths),), self._start, device=device)
        is_done = torch.zeros_like(tokens, dtype=torch.bool)
        state = self._decoder.start(memory, 1)
        chosen, values = [], []
        for step in range(max(max_lengths)):
            log_probs, state = self._step(tokens, state)
            value, tokens = log_probs.max(-1)  # (B,)
            chosen.append(tokens)
            values.append(value)
            is_done |= (tokens == self._end) | (limits <= step + 1)
            if bool(is_done.all()):
                break
        rows, steps = torch.stack(chosen, 1).tolist(), torch.stack(values, 1).tolist()
        hypotheses = []
        for row, log_prob, limit in zip(rows, steps, max_lengths, strict=True):
            length = min(row.index(self._end) + 1 if self._end in row else len(row), limit)
            total = sum(log_prob[:length])
            hypotheses.append(Hypothesis(tuple(row[:length]), total, (), total))
        return hypotheses

    def beam_search(
        self, memory: Memory, max_lengths: Sequence[int], *, beams: int, penalty: float
    ) -> list[list[Hypothesis]]:
        """Return all hypotheses of each sentence that ended, best first.

        A sentence ends as in `regard.search.beam`, but stays in the batch until all have ended.
        """
        batch, device = len(max_lengths), memory.states.device
        limits = torch.tensor(max_lengths, device=device)
        totals = torch.full((batch, beams), float("-inf"), device=device)
        totals[:, 0] = 0.0
        tokens = torch.full((batch * beams,), self._start, device=device)
        sequences = tokens.new_empty(batch, beams, 0)
        first = torch.arange(batch, device=device)[:, None] * beams
        finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        state = self._decoder.start(memory, beams)
        for step in range(max(max_lengths)):
            log_probs, state = self._step(tokens, state)
            sums = (totals.flatten()[:, None] + log_probs).view(batch, -1)  # (B, W·V)
            best, indices = sums.topk(2 * beams, dim=1)  # (B, 2W)
            parents, words = indices // log_probs.shape[1], indices % log_probs.shape[1]
            rows = parents[..., None].expand(-1, -1, step)
            sequences = torch.cat([sequences.gather(1, rows), words[..., None]], dim=-1)
            is_end = (words == self._end) | (limits <= step + 1)[:, None]  # (B, 2W)
            ended = is_end[:, :beams] & best[:, :beams].isfinite()
            scale = float(step + 1) ** penalty
            for row, beam in ended.nonzero().tolist():
                total = float(best[row, beam])
                ids = tuple(sequences[row, beam].tolist())
                finished[row].append(Hypothesis(ids, total, (), total / scale))
            kept = is_end.int().argsort(dim=1, stable=True)[:, :beams]  # (B, W)
            totals = best.masked_fill(is_end, float("-inf")).gather(1, kept)
            active = (totals.amax(1) / scale).tolist()
            is_done = [
                len(found) >= beams and max(one.value for one in found) >= value
                for found, value in zip(finished, active, strict=True)
            ]
            if all(is_done):
                break
            totals = totals.masked_fill(torch.tensor(is_done, device=device)[:, None], -torch.inf)
            tokens = words.gather(1, kept).flatten()
            sequences = sequences.gather(1, kept[..., None].expand(-1, -1, step + 1))
            selected = (parents.gather(1, kept) + first).flatten()  # (B·W,)
            # The rows of a sentence have the same memory.
            moving = {key: state[key] for key in state if key not in ("memory", "mask")}
            state = {**state, **_reorder(moving, selected)}
        return [sorted(found, key=lambda one: -one.value) for found in finished]


def _reorder(value: Any, rows: Tensor) -> Any:
    """Select rows (B·W,) of all tensors of a state."""
    if isinstance(value, Tensor):
        return value[rows]
    if isinstance(value, dict):
        return {key: _reorder(one, rows) for key, one in value.items()}
    return type(value)(_reorder(one, rows) for one in value)
