"""Candidates of the steps of beam search, and the paths from results back to the start token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.core.native.kernels import advance
from regard.search.candidates import Candidates, TopCandidates, distinct
from regard.search.hypothesis import Hypothesis
from regard.search.length_penalty import length_scale
from regard.search.settings import SearchConfig

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Step:
    """The 2W candidates of each sentence at one step."""

    totals: Tensor
    """(B, 2W) log-probability of the hypothesis."""
    log_probs: Tensor
    """(B, 2W) log-probability of its last token."""
    tokens: Tensor
    """(B, 2W) its last token."""
    parents: Tensor
    """(B, 2W) the beam it continues."""
    is_end: Tensor
    """(B, 2W) whether it has ended."""
    is_finished: Tensor
    """(B, W) whether it has ended among the W most likely: a result."""
    finished: Tensor
    """(B, W) log-probability of each result; -inf = none."""
    kept: Tensor
    """(B, W) indices of the continuations that become the next beams."""
    next_totals: Tensor
    """(B, W) log-probability of each next beam; -inf = it has ended."""
    next_tokens: Tensor
    """(B, W) its last token."""
    next_rows: Tensor
    """(B, W) the row of the state that it continues."""
    sentences: Tensor | None = None
    """(B,) the sentence of each row."""

    @classmethod
    def choose(
        cls,
        totals: Tensor,
        log_probs: Tensor,
        *,
        candidates: Candidates,
        limits: Tensor,
        length: int,
        end: int,
    ) -> "Step":
        """Select continuations of the beams.

        Args:
            totals: (B, W) log-probability of each beam; -inf = no hypothesis.
            log_probs: (B·W, V) log-probabilities of the next token.
            candidates: Choice of the continuations.
            limits: (B,) maximum number of tokens of each sentence.
            length: Number of tokens after this step.
            end: The end token.
        """
        if isinstance(candidates, TopCandidates):
            found = advance(totals, log_probs, limits, length=length, end=end)
            if found is not None:
                return cls(*found)
        batch, beams = totals.shape
        vocab = log_probs.shape[-1]
        best, indices = candidates.choose(totals, log_probs)  # (B, 2W)
        tokens, parents = indices % vocab, indices // vocab
        is_end = (tokens == end) | (limits <= length)[:, None]
        finished = best[:, :beams].masked_fill(~is_end[:, :beams], -torch.inf)
        kept = candidates.keep(is_end)
        first = torch.arange(batch, device=kept.device)[:, None] * beams
        return cls(
            totals=best,
            log_probs=log_probs.view(batch, -1).gather(1, indices),
            tokens=tokens,
            parents=parents,
            is_end=is_end,
            is_finished=finished > -torch.inf,
            finished=finished,
            kept=kept,
            next_totals=best.masked_fill(is_end, -torch.inf).gather(1, kept),
            next_tokens=tokens.gather(1, kept),
            next_rows=parents.gather(1, kept) + first,
        )


def find_best(
    steps: Sequence[Step], batch: int, *, config: SearchConfig, num_best: int
) -> list[list[Hypothesis]]:
    """Return the best results of each sentence, best first.

    Args:
        steps: The steps of a search, which know the sentences of their rows.
        batch: Number of sentences.
        config: The settings.
        num_best: Number of hypotheses to return per sentence.
    """
    if not steps:
        return [[] for _ in range(batch)]
    # On the host: a path is thousands of operations on a few numbers each.
    results = _by_sentence(steps, "finished", batch, default=-np.inf)  # (T, B, W)
    by_sentence = results.swapaxes(0, 1)  # (B, T, W)
    scales = np.array([length_scale(float(index + 1), config) for index in range(len(steps))])
    values = (by_sentence / scales[:, None]).reshape(batch, -1)  # (B, T·W)
    # Of equal values the first wins, so one beam equals greedy search.
    if num_best == 1 and config.groups == 1:
        order = values.argmax(axis=1, keepdims=True)
    else:
        # Equal results of several groups are dropped, so all of them are needed.
        num_found = int(np.isfinite(values).sum(1).max())
        num_kept = min(num_best, num_found) if config.groups == 1 else num_found
        order = (-values).argsort(axis=1, kind="stable")[:, :num_kept]
    last, chosen = order // config.beams, order % config.beams
    columns = (
        np.take_along_axis(by_sentence.reshape(batch, -1), order, 1),
        np.take_along_axis(values, order, 1),
        last + 1,
        *_trace(steps, batch, last=last, chosen=chosen),
    )
    best = []
    for row in zip(*(column.tolist() for column in columns), strict=True):
        hypotheses = [
            Hypothesis(tuple(ids[:length]), total, tuple(each[:length]), value)
            for total, value, length, ids, each in zip(*row, strict=True)
            if total > -np.inf
        ]
        best.append((hypotheses if config.groups == 1 else distinct(hypotheses))[:num_best])
    return best


def read_best(steps: Sequence[Step]) -> tuple[int, ...]:
    """Return the tokens of the first sentence's most likely active hypothesis; none at its end.

    Args:
        steps: The steps of a search so far, with the sentences of their rows.
    """
    first, last = steps[0].sentences, steps[-1].sentences
    assert first is not None and last is not None
    if last[0] != 0 or steps[-1].totals.gather(1, steps[-1].kept)[0, 0] == -torch.inf:
        return ()
    chosen = _by_sentence(steps[-1:], "kept", len(first))[0][:, :1]  # (B, 1)
    whole = np.full_like(chosen, len(steps) - 1)
    tokens, _ = _trace(steps, len(first), last=whole, chosen=chosen)
    return tuple(tokens[0, 0].tolist())


def _by_sentence(steps: Sequence[Step], name: str, batch: int, *, default: float = 0) -> Array:
    """Return a part of all steps, (T, B, ...), for all sentences.

    Args:
        steps: The steps.
        name: The attribute of a step, (N, ...), for the sentences that are still in the batch.
        batch: Number of sentences.
        default: Value for those that have left.
    """
    tensors: list[Tensor] = [getattr(step, name) for step in steps]
    if all(len(tensor) == batch for tensor in tensors):
        whole: Array = torch.stack(tensors).cpu().numpy()
        return whole
    first = tensors[0].cpu().numpy()
    found = np.full((len(steps), batch, *first.shape[1:]), default, first.dtype)
    for rows, step, tensor in zip(found, steps, tensors, strict=True):
        assert step.sentences is not None
        rows[step.sentences.cpu().numpy()] = tensor.cpu().numpy()
    return found


def _trace(steps: Sequence[Step], batch: int, *, last: Array, chosen: Array) -> tuple[Array, Array]:
    """Return the tokens and their log-probabilities (B, N, T) of hypotheses.

    Args:
        steps: The steps of a search.
        batch: Number of sentences.
        last: (B, N) the last step of each hypothesis.
        chosen: (B, N) its index among the candidates of its last step.
    """
    names = ("tokens", "log_probs", "parents", "kept")
    tokens, log_probs, parents, kept = (_by_sentence(steps, name, batch) for name in names)
    paths = np.empty((len(steps), *chosen.shape), chosen.dtype)  # index among the candidates
    current = chosen
    for index in range(len(steps) - 1, -1, -1):
        if index + 1 < len(steps):
            # Here, `current` is the beam that the candidate of the next step continues.
            before = np.take_along_axis(kept[index], current, 1)
            current = np.where(last > index, before, chosen)
        paths[index] = current
        current = np.take_along_axis(parents[index], current, 1)
    found = (np.take_along_axis(part, paths, 2) for part in (tokens, log_probs))
    words, values = (np.moveaxis(part, 0, 2) for part in found)  # (B, N, T)
    return words, values
