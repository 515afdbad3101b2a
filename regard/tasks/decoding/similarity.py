"""Sentence-level chrF and BLEU of each pair of texts, as sacrebleu computes them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.search.mbr import ngram_matches

CHRF_ORDER, CHRF_BETA, BLEU_ORDER = 6, 2, 4
"""Maximum n-gram orders, and the weight of recall in chrF."""


def pairwise_chrf(texts: Sequence[str]) -> Tensor:
    """Return chrF of each text (row) with each other one as its reference (column), (W, W).

    Popović 2015: the F-score, with recall weighted twice, of the mean precision and recall of
    character n-grams without whitespace, from 0 to 1.
    """
    characters = ["".join(text.split()) for text in texts]
    precision, recall, num_orders = torch.zeros(3, len(texts), len(texts), dtype=torch.float64)
    for order in range(1, CHRF_ORDER + 1):
        matches, sizes = ngram_matches(characters, order)
        # Orders that one of the texts is too short for do not count.
        counts = (sizes[:, None] > 0) & (sizes > 0)
        precision += matches / sizes.clamp(min=1)[:, None]
        recall += matches / sizes.clamp(min=1)
        num_orders += counts
    precision, recall = (total / num_orders.clamp(min=1) for total in (precision, recall))
    weight = CHRF_BETA**2
    scale = (weight * precision + recall).clamp(min=torch.finfo(torch.float64).tiny)
    scores: Tensor = (1 + weight) * precision * recall / scale
    return scores


def pairwise_bleu(texts: Sequence[str]) -> Tensor:
    """Return sentence BLEU of each text (row) with each other one as its reference (column).

    Papineni et al. 2002, over words, with smoothing 3 of Chen and Cherry 2014 and only the orders
    that the text is long enough for, as sacrebleu computes it; (W, W), from 0 to 1.
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenize: Callable[[str], str] = Tokenizer13a()  # type: ignore[no-untyped-call]
    words = [tokenize(text.rstrip()).split() for text in texts]
    lengths = torch.tensor([float(len(line)) for line in words], dtype=torch.float64)
    log_precision, num_zero, num_matches = torch.zeros(
        3, len(texts), len(texts), dtype=torch.float64
    )
    num_orders = torch.zeros(len(texts), dtype=torch.float64)
    for order in range(1, BLEU_ORDER + 1):
        matches, sizes = ngram_matches(words, order)
        is_counted = sizes[:, None] > 0
        is_zero = (matches == 0) & is_counted
        num_zero += is_zero
        # The k-th order without a match counts as 1 / 2^k matches.
        smoothed = matches.where(~is_zero, 0.5**num_zero)
        log_precision += (smoothed / sizes.clamp(min=1)[:, None]).log().where(is_counted, 0.0)
        num_orders += sizes > 0
        num_matches += matches
    brevity = (1 - lengths / lengths.clamp(min=1)[:, None]).clamp(max=0).exp()
    scores: Tensor = brevity * (log_precision / num_orders.clamp(min=1)[:, None]).exp()
    return scores.where(num_matches > 0, 0.0)


PAIRWISE: dict[str, Callable[[Sequence[str]], Tensor]] = {
    "chrf": pairwise_chrf,
    "bleu": pairwise_bleu,
}
"""Similarities of texts by name."""
