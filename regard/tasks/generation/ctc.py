"""CTC beside a decoder: joint loss and joint search."""

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
        loss: The loss of the decoder.
        output: The output of the model for the batch.
        batch: The batch, on the model's device; targets include the start and the end token.
        weight: Weight of the CTC loss, from 0 to 1.
    """
    if output.emissions is None:
        return loss
    lengths = batch.target_mask.sum(1) - 2
    ctc_loss = labelling_loss(output.emissions, batch.target[:, 1:-1], lengths).sum()
    return replace(
        loss,
        total=(1 - weight) * loss.total + weight * ctc_loss,
        nll=(1 - weight) * loss.nll + weight * ctc_loss.detach(),
    )


def build_scorer(
    model: EncoderDecoder, memory: Memory, tokenizer: Tokenizer, *, weight: float
) -> Scorer:
    """Return the scorer of a search: the decoder, CTC, or both.

    Args:
        model: The model, in evaluation mode.
        memory: The encoded sources.
        tokenizer: The tokeniser of the target; padding and the start token are never generated.
        weight: Weight of CTC, from 0 to 1.
    """
    banned = (tokenizer.pad, tokenizer.sos)
    decoder = ModelScorer(model, memory, banned=banned)
    if not weight or model.ctc is None:
        return decoder
    ctc = CtcScorer(model.ctc(memory), start=tokenizer.sos, end=tokenizer.eos, banned=banned)
    return ctc if weight == 1 else JointScorer(decoder, ctc, weight=weight)


def is_best_path_search(config: SearchConfig, prefix: Sequence[int]) -> bool:
    """Return whether a search is greedy, with CTC alone and without constraints."""
    greedy = SearchConfig(beams=1, ctc_weight=1.0)
    irrelevant = (
        "length_penalty",
        "length_penalty_kind",
        "stopping",
        "diversity",
        "consensus_metric",
        "max_ratio",
        "max_extra",
        "seed",
    )
    return not prefix and greedy == replace(
        config, **{name: getattr(greedy, name) for name in irrelevant}
    )


def decode_best_path(
    scorer: CtcScorer, model: EncoderDecoder, memory: Memory
) -> list[list[Hypothesis]]:
    """Collapse the most probable class of each state, and score the collapsed labels with CTC."""
    assert model.ctc is not None
    hypotheses = best_path(model.ctc(memory), end=scorer.eos, banned=tuple(scorer.banned))
    return rescore(scorer, hypotheses, start=scorer.sos)


def with_decoder_log_probs(
    scorer: Scorer, hypotheses: list[list[Hypothesis]], *, start: int
) -> list[list[Hypothesis]]:
    """Replace joint scores by the log-probabilities of the decoder; keep other hypotheses."""
    if not isinstance(scorer, JointScorer):
        return hypotheses
    return rescore(scorer.decoder, hypotheses, start=start)
