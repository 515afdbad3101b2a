"""Captions as papers on them measure: words without punctuation, BLEU-1 to BLEU-4, and CIDEr."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sacrebleu.metrics.bleu import BLEU

from regard.core.logging import logger
from regard.metrics.bootstrap import ratio
from regard.metrics.result import References, Result, Texts, check_references
from regard.metrics.text.bleu import measure_with
from regard.metrics.text.ngrams import ngrams

TOKENIZER = "ptb-nopunct"
"""What signatures call the way in which `caption_words` cuts."""

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
"""How far lengths may differ: the deviation of the penalty, in words."""
SCALE = 10

Vector = dict[tuple[str, ...], float]
"""The weight of each run of words."""


def caption_words(caption: str) -> list[str]:
    """Cut a caption into lower-case words, and leave its punctuation out.

    What the evaluation of COCO (Chen et al. 2015) does with the Penn Treebank's tokeniser, as far
    as captions go: `The man's T-shirt.` is `the man 's t-shirt`. That one keeps brackets as
    `-lrb-` and cuts a few rare words (`cannot`, `gonna`) in two; here brackets are punctuation and
    such words stay whole.
    """
    return _WORD.findall(caption.lower().replace("’", "'"))


def caption_bleu(
    hypotheses: Texts, references: References, *, order: int, num_bootstrap: int = 0
) -> Result:
    """Measure corpus BLEU over runs of one to `order` words, 0 to 100, without smoothing.

    Papineni et al. 2002, as the evaluation of COCO computes it: precisions of all orders count
    alike, and the reference of the nearest length decides on brevity.

    Args:
        hypotheses: One caption each.
        references: For each image its references; their number may differ.
        order: The longest run of words that counts.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    metric = BLEU(
        lowercase=True, tokenize="none", smooth_method="none", max_ngram_order=order, force=True
    )
    metric.tokenizer = lambda caption: " ".join(caption_words(caption))
    metric.tokenizer_signature = TOKENIZER
    result = measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)
    return replace(result, name=f"BLEU-{order}")


bleu1, bleu2, bleu3, bleu4 = (partial(caption_bleu, order=order) for order in ORDERS)
"""BLEU over words, and over runs of up to two, three and four words."""


def cider(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure CIDEr-D, 0 to 10, as the mean over captions.

    Vedantam et al. 2015, section 5 and eq. 6, as the evaluation of COCO computes it; papers often
    print it times 100. A run of words counts the more the fewer images have it in a reference, so
    the value depends on the test set as a whole. Resamples keep these counts.

    Args:
        hypotheses: One caption each.
        references: For each image its references; the mean over them counts.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    right = [[caption_words(caption) for caption in captions] for captions in references]
    if len(right) == 1:
        logger.warning("CIDEr is 0: of a single image, no words are rarer than others.")
    rarity = Rarity(right)
    scores = [
        rarity.compare(caption_words(caption), captions)
        for caption, captions in zip(hypotheses, right, strict=True)
    ]
    signature = (
        f"variant:d|order:{max(ORDERS)}|sigma:{SIGMA:g}|scale:{SCALE}|idf:references"
        f"|images:{len(scores)}|case:lc|tok:{TOKENIZER}"
    )
    return ratio("CIDEr", scores, signature=signature, num_bootstrap=num_bootstrap, scale=SCALE)


class Rarity:
    """Weighs runs of words by how few images have them in a reference."""

    def __init__(self, references: Sequence[Sequence[Sequence[str]]]) -> None:
        self._log_images = math.log(len(references))
        self._counts: Counter[tuple[str, ...]] = Counter()
        for captions in references:
            runs = (ngrams(words, n) for words in captions for n in ORDERS)
            self._counts.update({run for found in runs for run in found})

    def compare(self, words: Sequence[str], captions: Sequence[Sequence[str]]) -> float:
        """Return how alike a caption and its references are, 0 to 1."""
        ours = [self._vector(words, n) for n in ORDERS]
        total = 0.0
        for right in captions:
            alike = sum(
                _clipped_cosine(vector, self._vector(right, n))
                for n, vector in zip(ORDERS, ours, strict=True)
            )
            total += _nearness(words, right) * alike
        return total / len(ORDERS) / len(captions)

    def _vector(self, words: Sequence[str], n: int) -> Vector:
        return {
            run: count * (self._log_images - math.log(max(1, self._counts[run])))
            for run, count in ngrams(words, n).items()
        }


def _clipped_cosine(ours: Vector, right: Vector) -> float:
    """Return the cosine of two vectors; what is said oftener than in the reference counts less."""
    lengths = math.hypot(*ours.values()) * math.hypot(*right.values())
    if not lengths:
        return 0.0
    shared = ours.keys() & right.keys()
    return sum(min(ours[run], right[run]) * right[run] for run in shared) / lengths


def _nearness(words: Sequence[str], right: Sequence[str]) -> float:
    # COCO's evaluation takes the number of pairs of words for the length: none and one are alike.
    difference = max(0, len(words) - 1) - max(0, len(right) - 1)
    return math.exp(-(difference**2) / (2 * SIGMA**2))
