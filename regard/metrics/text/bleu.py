"""BLEU, chrF and TER of sacrebleu, and BLEU as the course teaches it."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import base
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.core.config import at_least
from regard.core.tables import pick
from regard.metrics.bootstrap import SEED, bootstrap_interval, ratio
from regard.metrics.result import Metric, References, Result, Texts, check_references
from regard.metrics.text.ngrams import ngrams

TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""Those of sacrebleu that need no further package and no download."""


def bleu(
    hypotheses: Texts,
    references: References,
    *,
    is_lower_cased: bool = False,
    tokenize: str = "13a",
    num_bootstrap: int = 0,
    seed: int = SEED,
) -> Result:
    """Measure corpus BLEU, 0 to 100.

    Papineni et al. 2002; Post 2018.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        is_lower_cased: Whether case is ignored.
        tokenize: How sacrebleu cuts words: `13a` is the standard, `none` takes text as it stands.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        seed: Seed of the resampling.
    """
    pick(dict.fromkeys(TOKENIZERS), tokenize, "tokenize")
    # `force` only silences a warning about tokenised text; the signature already tells.
    metric = BLEU(lowercase=is_lower_cased, tokenize=tokenize, force=True)
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap, seed=seed)


bleu_char: Metric = partial(bleu, tokenize="char")
"""Corpus BLEU over characters, for languages that put no whitespace between words."""


def bleu_ja(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure corpus BLEU over Japanese words, or over characters where MeCab is not installed.

    `pip install "sacrebleu[ja]"` installs it; the signature tells which of the two was measured.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    try:
        metric = BLEU(tokenize="ja-mecab", force=True)
    except (AssertionError, ImportError, RuntimeError):
        # sacrebleu raises all three: no package, a package that does not load, another dictionary.
        return bleu_char(hypotheses, references, num_bootstrap=num_bootstrap)
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)


def chrf(
    hypotheses: Texts, references: References, *, word_order: int = 0, num_bootstrap: int = 0
) -> Result:
    """Measure corpus chrF, 0 to 100.

    Popović 2015; with `word_order` 2 it is chrF++ of Popović 2017.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        word_order: The longest word n-gram counted beside the characters.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    at_least("word_order", word_order, 0)
    metric = CHRF(word_order=word_order)
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)


def ter(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure the translation edit rate in percent; smaller is better.

    Snover et al. 2006; case is ignored, as is the custom for this measure.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    return measure_with(TER(), hypotheses, references, num_bootstrap=num_bootstrap)


def measure_with(
    metric: base.Metric,
    hypotheses: Texts,
    references: References,
    *,
    num_bootstrap: int = 0,
    seed: int = SEED,
) -> Result:
    """Measure with any metric of sacrebleu.

    Args:
        metric: Set up; asked for an interval, it is told of the resampling for its signature.
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        seed: Seed of the resampling.
    """
    check_references(hypotheses, references)
    # sacrebleu wants one stream per reference, with None where a sentence has fewer.
    streams = [list(stream) for stream in zip_longest(*references)]
    # What every sacrebleu metric implements; its public road takes the seed from the environment.
    statistics = metric._extract_corpus_statistics(hypotheses, streams)
    score = metric._aggregate_and_compute(statistics)
    counts = np.array(statistics)

    def resampled(times: NDArray[np.intp]) -> float:
        return float(metric._compute_score_from_stats(times @ counts).score)

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


def _detail(score: base.Score) -> dict[str, float]:
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
    """Average the course's sentence BLEU, 0 to 1, over sentences; the best reference counts.

    Args:
        hypotheses: One sentence each, words separated by whitespace.
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
    signature = f"k:{k}|average:sentences|refs:best|case:mixed|tok:whitespace"
    return ratio("lecture BLEU", values, signature=signature, num_bootstrap=num_bootstrap, scale=1)


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
