"""CTC beside a decoder: their joint loss and their joint search."""

from collections.abc import Sequence
from dataclasses import replace

from regard.data.batch import Batch
from regard.data.text.tokenizers import Tokenizer
from regard.models.heads.ctc import labelling_loss
from regard.models.interfaces import Memory, Output
from regard.models.seq2seq import EncoderDecoder
from regard.search.ctc import CtcScorer, JointScorer, best_path
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import ModelScorer, Scorer
from regard.search.search import rescore
from regard.search.settings import SearchConfig
from regard.training.losses import Loss


def add_ctc_loss(loss: Loss, output: Output, batch: Batch, *, weight: float) -> Loss:
    """Return (1 − w) · loss + w · CTC (Watanabe et al. 2017, eq. 12).

    Args:
        loss: The decoder's.
        output: What the model says of the batch.
        batch: On the model's device; its targets run from the start token to the end token.
        weight: The share of CTC.
    """
    if output.emissions is None:
        return loss
    lengths = batch.target_mask.sum(1) - 2
    found = labelling_loss(output.emissions, batch.target[:, 1:-1], lengths).sum()
    return replace(
        loss,
        total=(1 - weight) * loss.total + weight * found,
        nll=(1 - weight) * loss.nll + weight * found.detach(),
    )


def build_scorer(
    model: EncoderDecoder, memory: Memory, roles: Tokenizer, *, weight: float
) -> Scorer:
    """Return what a search asks: the decoder, CTC, or both.

    Args:
        model: In evaluation mode.
        memory: What its encoder made of the sources.
        roles: The target's, whose special tokens are never chosen.
        weight: The share of CTC.
    """
    banned = (roles.pad, roles.sos)
    decoder = ModelScorer(model, memory, banned=banned)
    if not weight or model.ctc is None:
        return decoder
    ctc = CtcScorer(model.ctc(memory), start=roles.sos, end=roles.eos, banned=banned)
    return ctc if weight == 1 else JointScorer(decoder, ctc, weight=weight)


def is_best_path_search(config: SearchConfig, prefix: Sequence[int]) -> bool:
    """Tell whether CTC alone is asked for one answer, greedily and without rules."""
    plain = SearchConfig(beams=1, ctc_weight=1.0)
    lengths = ("length_penalty", "max_ratio", "max_extra", "seed")
    return not prefix and plain == replace(
        config, **{name: getattr(plain, name) for name in lengths}
    )


def decode_best_path(
    scorer: CtcScorer, model: EncoderDecoder, memory: Memory
) -> list[list[Hypothesis]]:
    """Collapse the likeliest class of each state; log-probabilities are the labelling's."""
    assert model.ctc is not None
    found = best_path(model.ctc(memory), end=scorer.eos, banned=tuple(scorer.banned))
    return rescore(scorer, found, start=scorer.sos)


def with_decoder_log_probs(
    scorer: Scorer, found: list[list[Hypothesis]], *, start: int
) -> list[list[Hypothesis]]:
    """Give what two found together the log-probabilities of the decoder, as everywhere else."""
    return rescore(scorer.decoder, found, start=start) if isinstance(scorer, JointScorer) else found
