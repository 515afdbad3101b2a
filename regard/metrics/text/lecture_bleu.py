"""BLEU as the course teaches it: short enough to compute on a blackboard."""

import math
from collections.abc import Sequence

from regard.core.config import at_least
from regard.metrics.bootstrap import ratio
from regard.metrics.result import References, Result, Texts, check_references
from regard.metrics.text.units import ngrams


def lecture_bleu(
    hypotheses: Texts, references: References, *, k: int = 2, num_bootstrap: int = 0
) -> Result:
    """Average the course's sentence BLEU, 0 to 1, over sentences; the best reference counts.

    Args:
        hypotheses: One sentence each, words separated by blanks.
        references: For each hypothesis its references.
        k: The longest n-gram that counts.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    at_least("k", k, 1)
    values = [
        max(sentence_bleu(hypothesis.split(), label.split(), k) for label in labels)
        for hypothesis, labels in zip(hypotheses, references, strict=True)
    ]
    return ratio(
        "lecture BLEU",
        values,
        signature=f"k:{k}|average:sentences|refs:best|case:mixed|tok:whitespace",
        num_bootstrap=num_bootstrap,
        scale=1,
    )


def sentence_bleu(predicted: Sequence[str], label: Sequence[str], k: int) -> float:
    """Return exp(min(0, 1 - len_label / len_pred)) · Π p_n^(1/2^n) over n = 1 … k.

    Zhang et al., Dive into Deep Learning, section 10.7. A prediction of fewer than k words has
    no longer n-grams; the product then ends at its length. An empty prediction scores 0.

    Args:
        predicted: Words of the prediction.
        label: Words of the right answer.
        k: The longest n-gram that counts.
    """
    if not predicted:
        return 0.0
    brevity = math.exp(min(0.0, 1 - len(label) / len(predicted)))
    orders = range(1, min(k, len(predicted)) + 1)
    factors = (math.pow(ngram_precision(predicted, label, n), 1 / 2**n) for n in orders)
    return brevity * math.prod(factors)


def ngram_precision(predicted: Sequence[str], label: Sequence[str], n: int) -> float:
    """Return p_n: the share of predicted n-grams found in the label, each of which is used once.

    Args:
        predicted: Words of the prediction, at least n.
        label: Words of the right answer.
        n: Length of the n-grams.
    """
    num_matches = (ngrams(predicted, n) & ngrams(label, n)).total()
    return num_matches / (len(predicted) - n + 1)
