"""BLEU, chrF and TER of sacrebleu."""

from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric, Score
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.core.config import at_least
from regard.core.errors import ConfigError
from regard.core.tables import near, one_of
from regard.metrics.bootstrap import SEED, bootstrap_interval
from regard.metrics.result import References, Result, Texts, check_references

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
    if tokenize not in TOKENIZERS:
        raise ConfigError(
            f"`tokenize` must be {one_of(TOKENIZERS)}, but is '{tokenize}'."
            f"{near(tokenize, TOKENIZERS)}"
        )
    # `force` only silences a warning about tokenised text; the signature already tells.
    metric = BLEU(lowercase=is_lower_cased, tokenize=tokenize, force=True)
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap, seed=seed)


def bleu_char(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure corpus BLEU over characters, for languages that put no blanks between words.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    return bleu(hypotheses, references, tokenize="char", num_bootstrap=num_bootstrap)


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
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap, seed=SEED)


def chrf(
    hypotheses: Texts,
    references: References,
    *,
    is_lower_cased: bool = False,
    word_order: int = 0,
    num_bootstrap: int = 0,
    seed: int = SEED,
) -> Result:
    """Measure corpus chrF, 0 to 100.

    Popović 2015; with `word_order` 2 it is chrF++ of Popović 2017.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        is_lower_cased: Whether case is ignored.
        word_order: The longest word n-gram counted beside the characters.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        seed: Seed of the resampling.
    """
    at_least("word_order", word_order, 0)
    metric = CHRF(lowercase=is_lower_cased, word_order=word_order)
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap, seed=seed)


def ter(
    hypotheses: Texts,
    references: References,
    *,
    is_lower_cased: bool = True,
    num_bootstrap: int = 0,
    seed: int = SEED,
) -> Result:
    """Measure the translation edit rate in percent; smaller is better.

    Snover et al. 2006.

    Args:
        hypotheses: One sentence each.
        references: For each hypothesis its references; their number may differ.
        is_lower_cased: Whether case is ignored, as is the custom for this measure.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        seed: Seed of the resampling.
    """
    metric = TER(case_sensitive=not is_lower_cased)
    return measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap, seed=seed)


def measure_with(
    metric: Metric,
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


def _detail(score: Score) -> dict[str, float]:
    if not isinstance(score, BLEUScore):
        return {}
    detail = {f"precision_{n}": float(value) for n, value in enumerate(score.precisions, start=1)}
    return detail | {
        "brevity_penalty": float(score.bp),
        "hypothesis_length": float(score.sys_len),
        "reference_length": float(score.ref_len),
    }
