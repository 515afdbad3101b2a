"""The most likely continuations of the beams of each sentence."""

import torch
from torch import Tensor

from regard.core.native.kernels import find_top

BLOCK = 64
"""Tokens of a block of the vocabulary."""
MIN_BLOCKS = 16
"""Blocks per selected token from which the selection in two steps is faster."""


def top_continuations(totals: Tensor, log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities (B, K) of the best continuations and their indices in W·V.

    The selection is exact, in two steps for a large vocabulary: the k best continuations are in the
    k blocks of tokens with the largest maxima, so only these blocks are searched. The sums of all
    W·V continuations are not computed.

    Args:
        totals: (B, W) log-probability of each beam; -inf = no hypothesis.
        log_probs: (B·W, V) log-probabilities of the next token.
        k: Number of continuations.
    """
    batch, beams = totals.shape
    vocab = log_probs.shape[1]
    k = min(k, beams * vocab)
    found = find_top(totals, log_probs, k)
    if found is not None:
        return found
    if vocab < MIN_BLOCKS * BLOCK or vocab * beams < MIN_BLOCKS * BLOCK * k:
        sums = (totals.flatten()[:, None] + log_probs).view(batch, -1)  # (B, W·V)
        return sums.topk(k, dim=1)
    maxima = _block_maxima(log_probs)  # (B·W, N)
    num_blocks = maxima.shape[1]
    sums = (totals.flatten()[:, None] + maxima).view(batch, -1)  # (B, W·N)
    blocks = sums.topk(k, dim=1).indices  # (B, K)
    rows = blocks // num_blocks
    within = torch.arange(BLOCK, device=blocks.device)
    by_beam = totals.gather(1, rows)[..., None]  # (B, K, 1)
    if vocab % BLOCK == 0:
        indices = (blocks[..., None] * BLOCK + within).flatten(1)  # (B, K·64)
        values = log_probs.view(batch, -1).gather(1, indices).view(batch, k, BLOCK) + by_beam
    else:
        tokens = (blocks % num_blocks)[..., None] * BLOCK + within
        indices = (rows[..., None] * vocab + tokens.clamp(max=vocab - 1)).flatten(1)
        values = log_probs.view(batch, -1).gather(1, indices).view(batch, k, BLOCK) + by_beam
        values = values.masked_fill(tokens >= vocab, -torch.inf)
    best, chosen = values.flatten(1).topk(k, dim=1)
    return best, indices.gather(1, chosen)


def most_likely(log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest log-probability of each row (N, V) and its first token, (N,) each.

    On a CPU, torch finds maxima with their indices at a tenth of the speed of maxima alone, so a
    large vocabulary is searched in two steps: the maxima of blocks, then one block per row.
    """
    found = find_top(log_probs.new_zeros(len(log_probs), 1), log_probs, 1)
    if found is not None:
        return found[0][:, 0], found[1][:, 0]
    vocab = log_probs.shape[1]
    if log_probs.device.type != "cpu" or vocab < MIN_BLOCKS * BLOCK:
        values, tokens = log_probs.max(-1)
        return values, tokens
    values, blocks = _block_maxima(log_probs).max(-1)  # (N,)
    candidates = blocks[:, None] * BLOCK + torch.arange(BLOCK)
    # The last block may be shorter; its last token is then repeated at the end.
    within = log_probs.gather(1, candidates.clamp_(max=vocab - 1)).max(-1).indices
    return values, candidates.gather(1, within[:, None])[:, 0]


def _block_maxima(log_probs: Tensor) -> Tensor:
    """Return the maximum of each block of tokens: (N, V) → (N, V / 64), rounded up."""
    vocab = log_probs.shape[1]
    whole = vocab // BLOCK * BLOCK
    maxima = log_probs[:, :whole].view(len(log_probs), -1, BLOCK).amax(-1)
    if whole == vocab:
        return maxima
    rest = log_probs[:, whole:].amax(-1, keepdim=True)
    return torch.cat([maxima, rest], dim=1)
