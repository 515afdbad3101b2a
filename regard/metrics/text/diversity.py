"""How varied the answers are, whatever is right."""

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.metrics.result import Metric, References, Result, Texts, check_references, ratio
from regard.metrics.text.units import ngrams


def distinct(
    hypotheses: Texts, references: References, *, n: int, num_bootstrap: int = 0
) -> Result:
    """Measure the share of different n-grams among all n-grams of the hypotheses, in percent.

    Li et al. 2016, who divide by the number of words instead.

    Args:
        hypotheses: One sentence each, words separated by blanks.
        references: Not looked at.
        n: The number of words of an n-gram.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    counts = [ngrams(hypothesis.split(), n) for hypothesis in hypotheses]
    num_holders = Counter(ngram for count in counts for ngram in count)
    num_own = np.array([sum(num_holders[ngram] == 1 for ngram in count) for count in counts])
    lengths = np.array([count.total() for count in counts])
    drawn = "|interval:pseudo-values" if num_bootstrap else ""
    return ratio(
        f"distinct-{n}",
        _pulls(len(num_holders), num_own, lengths).tolist(),
        signature=f"average:corpus|case:mixed|tok:whitespace{drawn}",
        num_bootstrap=num_bootstrap,
        scale=1,
        detail={"different": len(num_holders), "count": int(lengths.sum())},
    )


def _pulls(num_different: int, num_own: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return each sentence's pull on the share, which is their mean: Tukey's pseudo-values.

    A sample in which a sentence stands twice has fewer different n-grams than any fresh text, so
    its own share says nothing. How far the share falls without a sentence can be drawn instead.

    Args:
        num_different: Different n-grams of all sentences.
        num_own: For each sentence how many of them no other sentence has.
        lengths: For each sentence the number of its n-grams.
    """
    total = lengths.sum()
    share = 100 * num_different / max(total, 1)
    rest = 100 * (num_different - num_own) / np.maximum(total - lengths, 1)
    # Without the only sentence that has n-grams there is no share to compare with.
    rest = np.where(lengths < total, rest, share)
    return np.asarray(share + (len(lengths) - 1) * (rest.mean() - rest))


distinct1: Metric = partial(distinct, n=1)
distinct2: Metric = partial(distinct, n=2)
