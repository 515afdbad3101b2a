"""Table of text metrics by the name used in recipes."""

from regard.metrics.result import Metric
from regard.metrics.text.bleu import bleu, bleu_char, bleu_ja, chrf, lecture_bleu, ter
from regard.metrics.text.error_rates import accuracy, cer, per, wer, word_errors
from regard.metrics.text.ngrams import distinct1, distinct2, rouge1, rouge2, rouge_char, rouge_l
from regard.metrics.vision.captions import bleu1, bleu2, bleu3, bleu4, cider

METRICS: dict[str, Metric] = {
    "bleu": bleu,
    "bleu_char": bleu_char,
    "bleu_ja": bleu_ja,
    "bleu1": bleu1,
    "bleu2": bleu2,
    "bleu3": bleu3,
    "bleu4": bleu4,
    "cider": cider,
    "chrf": chrf,
    "ter": ter,
    "lecture_bleu": lecture_bleu,
    "accuracy": accuracy,
    "word_errors": word_errors,
    "wer": wer,
    "cer": cer,
    "per": per,
    "rouge": rouge_l,
    "rouge1": rouge1,
    "rouge2": rouge2,
    "rougeL": rouge_l,
    "rouge_char": rouge_char,
    "distinct1": distinct1,
    "distinct2": distinct2,
}

ERROR_RATES: frozenset[str] = frozenset({"ter", "wer", "cer", "per", "word_errors"})
"""Metrics for which smaller is better."""
