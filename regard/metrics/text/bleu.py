"""BLEU, chrF and TER of sacrebleu, and the BLEU of "Dive into Deep Learning"."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.core.config import at_least
from regard.core.tables import pick
from regard.metrics.bootstrap import SEED, bootstrap_interval, ratio
from regard.metrics.result import Metric, References, Result, Texts, check_references
from regard.metrics.text.ngrams import ngrams

if TYPE_CHECKING:
    from sacrebleu.metrics import base

TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""Tokenisers of sacrebleu that need no further package and no download."""


def bleu(
    hypotheses: Texts,
    references: References,
    *,
    is_lower_cased: bool = False,
    tokenize: str = "13a",
    num_bootstrap: int = 0,
    seed: int = SEED,
) -> Result:
    """Compute corpus BLEU, 0 to 100.

    Papineni et al. 2002; Post 2018.

    Args:
        hypotheses: One sentence each.
        references: One or more references per hypothesis.
        is_lower_cased: Whether case is ignored.
        tokenize: Tokeniser of sacrebleu: `13a` is the standard, `none` splits at whitespace.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
        seed: Seed of the resampling.
    """
    from sacrebleu.metrics.bleu import BLEU

    pick(dict.fromkeys(TOKENIZERS), tokenize, "tokenize")
    # `force` only silences a warning about tokenised text; the signature has the tokeniser.
    metric = BLEU(lowercase=is_lower_cased, tokenize=tokenize, force=True)
    return compute_with(metric, hypotheses, references, num_bootstrap=num_bootstrap, seed=seed)


bleu_char: Metric = partial(bleu, tokenize="char")
"""Corpus BLEU over characters, for languages without whitespace between words."""


def bleu_ja(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute corpus BLEU over Japanese words, or over characters if MeCab is not installed.

    `pip install "sacrebleu[ja]"` installs it. The signature states the tokeniser used.

    Args:
        hypotheses: One sentence each.
        references: One or more references per hypothesis.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    from sacrebleu.metrics.bleu import BLEU

    try:
        metric = BLEU(tokenize="ja-mecab", force=True)
    except (AssertionError, ImportError, RuntimeError):
        # sacrebleu raises these for a missing package, a failed import and a wrong dictionary.
        return bleu_char(hypotheses, references, num_bootstrap=num_bootstrap)
    return compute_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)


def chrf(
    hypotheses: Texts, references: References, *, word_order: int = 0, num_bootstrap: int = 0
) -> Result:
    """Compute corpus chrF, 0 to 100.

    Popović 2015; with `word_order` 2 it is chrF++ of Popović 2017.

    Args:
        hypotheses: One sentence each.
        references: One or more references per hypothesis.
        word_order: Maximum order of word n-grams, counted in addition to character n-grams.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    from sacrebleu.metrics.chrf import CHRF

    at_least("word_order", word_order, 0)
    metric = CHRF(word_order=word_order)
    return compute_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)


def ter(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute the translation edit rate in percent; smaller is better.

    Snover et al. 2006. Case is ignored, as is usual for this metric.

    Args:
        hypotheses: One sentence each.
        references: One or more references per hypothesis.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    from sacrebleu.metrics.ter import TER

    return compute_with(TER(), hypotheses, references, num_bootstrap=num_bootstrap)


def compute_with(
    metric: "base.Metric",
    hypotheses: Texts,
    references: References,
    *,
    num_bootstrap: int = 0,
    seed: int = SEED,
) -> Result:
    """Compute any metric of sacrebleu.

    Args:
        metric: Metric object. With resamples, its `n_bootstrap` and `seed` are set for the
            signature.
        hypotheses: One sentence each.
        references: One or more references per hypothesis.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
        seed: Seed of the resampling.
    """
    check_references(hypotheses, references)
    # sacrebleu expects one stream per reference, padded with None.
    streams = [list(stream) for stream in zip_longest(*references)]
    # All metrics implement these methods; the public API reads the seed from the environment.
    statistics = metric._extract_corpus_statistics(hypotheses, streams)
    score = metric._aggregate_and_compute(statistics)
    counts = np.array(statistics)

    def resampled(weights: NDArray[np.intp]) -> float:
        return float(metric._compute_score_from_stats(weights @ counts).score)

    interval = bootstrap_interval(resampled, len(counts), num_bootstrap, seed=seed)
    if num_bootstrap:
        metric.n_bootstrap, metric.seed = num_bootstrap, seed
    return Result(
        name=score.name,
        value=float(score.score),
        signature=metric.get_signature().format(),
        interval=interval,
        detail=_detail(score),
    )


def _detail(score: "base.Score") -> dict[str, float]:
    from sacrebleu.metrics.bleu import BLEUScore

    if not isinstance(score, BLEUScore):
        return {}
    detail = {f"precision_{n}": float(value) for n, value in enumerate(score.precisions, start=1)}
    return detail | {
        "brevity_penalty": float(score.bp),
        "hypothesis_length": float(score.sys_len),
        "reference_length": float(score.ref_len),
    }


def lecture_bleu(
    hypotheses: Texts, references: References, *, k: int = 2, num_bootstrap: int = 0
) -> Result:
    """Compute the BLEU of "Dive into Deep Learning": the mean of `sentence_bleu`, 0 to 1.

    With several references, the best one counts.

    Args:
        hypotheses: One sentence each, words separated by whitespace.
        references: For each hypothesis its references.
        k: Maximum n-gram order.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    check_references(hypotheses, references)
    at_least("k", k, 1)
    values = [
        max(sentence_bleu(hypothesis.split(), label.split(), k) for label in labels)
        for hypothesis, labels in zip(hypotheses, references, strict=True)
    ]
    signature = f"k:{k}|average:sentences|refs:best|case:mixed|tok:whitespace"
    return ratio("lecture BLEU", values, signature=signature, num_bootstrap=num_bootstrap, scale=1)


def sentence_bleu(predicted: Sequence[str], label: Sequence[str], k: int) -> float:
    """Return exp(min(0, 1 - len_label / len_pred)) · Π p_n^(1/2^n) over n = 1 … k.

    Zhang et al., Dive into Deep Learning, section 10.7. For a prediction of fewer than k words
    the product ends at its length. An empty prediction scores 0.

    Args:
        predicted: Words of the prediction.
        label: Words of the reference.
        k: Maximum n-gram order.
    """
    if not predicted:
        return 0.0
    brevity = math.exp(min(0.0, 1 - len(label) / len(predicted)))
    orders = range(1, min(k, len(predicted)) + 1)
    factors = (math.pow(ngram_precision(predicted, label, n), 1 / 2**n) for n in orders)
    return brevity * math.prod(factors)


def ngram_precision(predicted: Sequence[str], label: Sequence[str], n: int) -> float:
    """Return p_n: the clipped precision of predicted n-grams.

    Args:
        predicted: Words of the prediction, at least n.
        label: Words of the reference.
        n: Length of the n-grams.
    """
    num_matches = (ngrams(predicted, n) & ngrams(label, n)).total()
    return num_matches / (len(predicted) - n + 1)
