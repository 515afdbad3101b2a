"""Ranking of finished hypotheses by the coverage of the source (Wu et al. 2016, section 7)."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.heads.copying import CopyAttention
from regard.models.interfaces import Memory
from regard.models.seq2seq import EncoderDecoder
from regard.search.hypothesis import Hypothesis
from regard.search.settings import SearchConfig

MIN_COVERAGE = 1e-9
"""Minimum attention that a position receives: that of attention with a local span can be 0."""


def check_coverage(model: EncoderDecoder, config: SearchConfig) -> None:
    """Raise a `ConfigError` if the settings have a coverage penalty that the model cannot have."""
    if not config.coverage_penalty:
        return
    if not _cross_attentions(model):
        raise ConfigError(
            "`search.coverage_penalty` above 0 needs a decoder with cross-attention, but is "
            f"{config.coverage_penalty:g}. Set it to 0."
        )
    if config.ctc_weight == 1:
        raise ConfigError(
            "`search.coverage_penalty` must be 0 where `search.ctc_weight` is 1, since the "
            f"decoder is not used, but is {config.coverage_penalty:g}."
        )


def _cross_attentions(model: EncoderDecoder) -> nn.ModuleList:
    """Return the cross-attention of the decoder, without attention for copying."""
    return nn.ModuleList(
        part
        for part in model.decoder.modules()
        if isinstance(part, Attention) and not part.is_self and not isinstance(part, CopyAttention)
    )


def rank_by_coverage(
    model: EncoderDecoder,
    memory: Memory,
    hypotheses: Sequence[Sequence[Hypothesis]],
    *,
    weight: float,
    start: int,
) -> list[list[Hypothesis]]:
    """Add the weighted coverage penalty to the value of hypotheses and rank them anew.

    The attention weights are those of forced decoding of the hypotheses, averaged over layers and
    heads.

    Args:
        model: The model, in eval mode.
        memory: The encoded sources.
        hypotheses: Finished hypotheses of each source.
        weight: Weight of the penalty, β in the paper.
        start: The start token.
    """
    attentions = _cross_attentions(model)
    ranked: list[list[Hypothesis]] = [[] for _ in hypotheses]
    # One pass per rank, so that the memory is not copied.
    for rank in range(max(map(len, hypotheses), default=0)):
        group = [several[rank].tokens if rank < len(several) else () for several in hypotheses]
        longest = max(map(len, group))
        if not longest:
            continue
        # Padding after the end is arbitrary: its attention is dropped.
        padded = [[start, *tokens, *[0] * (longest - len(tokens))][:longest] for tokens in group]
        targets = torch.tensor(padded, device=memory.mask.device)  # (B, T)
        with record(attentions) as recorded:
            model.decoder(targets, memory)
        weights = recorded.stack().float().mean((1, 2))  # (B, T, S)
        lengths = torch.tensor([len(tokens) for tokens in group], device=weights.device)
        penalties = coverage_penalty(weights, lengths, memory.mask.to(weights.device)).tolist()
        for row, several in enumerate(hypotheses):
            if rank < len(several):
                value = several[rank].value + weight * penalties[row]
                ranked[row].append(replace(several[rank], value=value))
    return [sorted(several, key=lambda one: -one.value) for several in ranked]


def coverage_penalty(weights: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
    """Return the coverage penalty of targets: Σ_i log min(1, Σ_j a_ij), eq. 14, (B,).

    Args:
        weights: (B, T, S) attention weights of the targets.
        lengths: (B,) number of tokens of each target.
        mask: (B, S), True = a real source position.
    """
    is_real = torch.arange(weights.shape[1], device=weights.device) < lengths[:, None]  # (B, T)
    received = weights.masked_fill(~is_real[..., None], 0.0).sum(1)  # (B, S)
    return received.clamp(MIN_COVERAGE, 1.0).log().masked_fill(~mask, 0.0).sum(1)
