"""Every measure of hypotheses against references, by the name a recipe uses."""

from regard.metrics.accuracy import accuracy
from regard.metrics.errors import cer, per, wer
from regard.metrics.lecture_bleu import lecture_bleu
from regard.metrics.result import Measure
from regard.metrics.text import bleu, chrf, ter

METRICS: dict[str, Measure] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "lecture_bleu": lecture_bleu,
    "accuracy": accuracy,
    "wer": wer,
    "cer": cer,
    "per": per,
}
