"""Caption metrics: BLEU-1 to BLEU-4 and CIDEr-D on words without punctuation."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from regard.core.logging import logger
from regard.metrics.bootstrap import ratio
from regard.metrics.result import References, Result, Texts, check_references
from regard.metrics.text.bleu import compute_with
from regard.metrics.text.ngrams import ngrams

TOKENIZER = "ptb-nopunct"
"""Name of `caption_words` in signatures."""

_WORD = re.compile(
    r"""
    \w+?(?=n't\b) | n't\b | '(?:s|m|d|re|ve|ll)\b  # does n't, dog 's
    | o'clock\b | \w+(?:&\w+)+                     # at&t
    | \d+(?:[.,:/]\d+)+                            # 3.5, 1,000, 10:30
    | (?:[^\W\d_]\.){2,}                           # u.s.
    | \w+(?:-\w+)*                                 # black-and-white
    | [^\w\s'"`.?!,:;()\[\]{}<>…‘’“”«»–—。、！？-]      # $, %, &
    """,
    re.VERBOSE,
)

ORDERS = (1, 2, 3, 4)
SIGMA = 6.0
"""Standard deviation of the Gaussian length penalty, in words."""
SCALE = 10

Vector = dict[tuple[str, ...], float]
"""TF-IDF weight of each n-gram."""


def caption_words(caption: str) -> list[str]:
    """Split a caption into lower-case words without punctuation.

    Follows the Penn Treebank tokeniser of the COCO evaluation (Chen et al. 2015):
    `The man's T-shirt.` becomes `the man 's t-shirt`. Differences: brackets are removed, not
    replaced by `-lrb-`, and a few rare words (`cannot`, `gonna`) are not split in two.
    """
    return _WORD.findall(caption.lower().replace("’", "'"))


def caption_bleu(
    hypotheses: Texts, references: References, *, order: int, num_bootstrap: int = 0
) -> Result:
    """Compute corpus BLEU over n-grams up to `order`, 0 to 100, without smoothing.

    Papineni et al. 2002, as computed by the COCO evaluation: all orders have equal weight, and
    the brevity penalty uses the reference of the nearest length.

    Args:
        hypotheses: One caption each.
        references: One or more references per image.
        order: Maximum order of n-grams.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(
        lowercase=True, tokenize="none", smooth_method="none", max_ngram_order=order, force=True
    )
    metric.tokenizer = lambda caption: " ".join(caption_words(caption))
    metric.tokenizer_signature = TOKENIZER
    result = compute_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)
    return replace(result, name=f"BLEU-{order}")


bleu1, bleu2, bleu3, bleu4 = (partial(caption_bleu, order=order) for order in ORDERS)
"""BLEU with a maximum n-gram order of 1, 2, 3 and 4."""


def cider(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute CIDEr-D, 0 to 10, averaged over captions.

    Vedantam et al. 2015, section 5 and eq. 6, as computed by the COCO evaluation; papers often
    report it times 100. Document frequencies are counted over the references of the whole test
    set. Resamples keep these frequencies.

    Args:
        hypotheses: One caption each.
        references: One or more references per image; scores are averaged over them.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    check_references(hypotheses, references)
    words = [[caption_words(caption) for caption in captions] for captions in references]
    if len(words) == 1:
        logger.warning("CIDEr is 0: with a single image, all document frequencies are equal.")
    scorer = CiderScorer(words)
    scores = [
        scorer.score(caption_words(caption), captions)
        for caption, captions in zip(hypotheses, words, strict=True)
    ]
    signature = (
        f"variant:d|order:{max(ORDERS)}|sigma:{SIGMA:g}|scale:{SCALE}|idf:references"
        f"|images:{len(scores)}|case:lc|tok:{TOKENIZER}"
    )
    return ratio("CIDEr", scores, signature=signature, num_bootstrap=num_bootstrap, scale=SCALE)


class CiderScorer:
    """CIDEr-D of single captions, with document frequencies counted over references."""

    def __init__(self, references: Sequence[Sequence[Sequence[str]]]) -> None:
        self._log_images = math.log(len(references))
        self._counts: Counter[tuple[str, ...]] = Counter()
        for captions in references:
            counts = (ngrams(words, n) for words in captions for n in ORDERS)
            self._counts.update({ngram for count in counts for ngram in count})

    def score(self, words: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        """Return the CIDEr-D of a caption, 0 to 1."""
        vectors = [self._vector(words, n) for n in ORDERS]
        total = 0.0
        for reference in references:
            similarity = sum(
                _clipped_cosine(vector, self._vector(reference, n))
                for n, vector in zip(ORDERS, vectors, strict=True)
            )
            total += _length_penalty(words, reference) * similarity
        return total / len(ORDERS) / len(references)

    def _vector(self, words: Sequence[str], n: int) -> Vector:
        return {
            ngram: count * (self._log_images - math.log(max(1, self._counts[ngram])))
            for ngram, count in ngrams(words, n).items()
        }


def _clipped_cosine(vector: Vector, reference: Vector) -> float:
    """Return the cosine of two vectors, with weights clipped to those of the reference."""
    norms = math.hypot(*vector.values()) * math.hypot(*reference.values())
    if not norms:
        return 0.0
    shared = vector.keys() & reference.keys()
    return sum(min(vector[key], reference[key]) * reference[key] for key in shared) / norms


def _length_penalty(words: Sequence[str], reference: Sequence[str]) -> float:
    # The COCO evaluation uses the number of bigrams as the length: 0 and 1 words are equal.
    difference = max(0, len(words) - 1) - max(0, len(reference) - 1)
    return math.exp(-(difference**2) / (2 * SIGMA**2))
