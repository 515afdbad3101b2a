"""Captions as papers on them measure: words without punctuation, and BLEU-1 to BLEU-4."""

import re
from dataclasses import dataclass, replace

from sacrebleu.metrics.bleu import BLEU

from regard.metrics.result import References, Result, Texts
from regard.metrics.text.bleu import measure_with

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


def caption_words(caption: str) -> list[str]:
    """Cut a caption into lower-case words, and leave its punctuation out.

    What the evaluation of COCO (Chen et al. 2015) does with the Penn Treebank's tokeniser, as far
    as captions go: `The man's T-shirt.` is `the man 's t-shirt`. That one keeps brackets as
    `-lrb-` and cuts a few rare words (`cannot`, `gonna`) in two; here brackets are punctuation and
    such words stay whole.
    """
    return _WORD.findall(caption.lower().replace("’", "'"))


@dataclass(frozen=True)
class CaptionBleu:
    """Measures corpus BLEU over runs of one to `order` words, 0 to 100, without smoothing.

    Papineni et al. 2002, as the evaluation of COCO computes it: precisions of all orders count
    alike, and the reference of the nearest length decides on brevity.
    """

    order: int
    """The longest run of words that counts."""

    def __call__(
        self, hypotheses: Texts, references: References, *, num_bootstrap: int = 0
    ) -> Result:
        """Measure captions against references.

        Args:
            hypotheses: One caption each.
            references: For each image its references; their number may differ.
            num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
        """
        metric = BLEU(
            lowercase=True,
            tokenize="none",
            smooth_method="none",
            max_ngram_order=self.order,
            force=True,
        )
        metric.tokenizer = lambda caption: " ".join(caption_words(caption))
        metric.tokenizer_signature = TOKENIZER
        result = measure_with(metric, hypotheses, references, num_bootstrap=num_bootstrap)
        return replace(result, name=f"BLEU-{self.order}")


bleu1 = CaptionBleu(1)
"""Words."""

bleu2 = CaptionBleu(2)
"""Words and pairs of them."""

bleu3 = CaptionBleu(3)
"""Runs of up to three words."""

bleu4 = CaptionBleu(4)
"""Runs of up to four words."""
