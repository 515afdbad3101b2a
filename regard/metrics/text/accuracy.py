"""Exact match of whole answers."""

from collections.abc import Sequence

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import References, Result, Texts, check_references

_RULE = "refs:any|case:mixed|whitespace:squeezed"


def accuracy(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure how many hypotheses equal one of their references, in percent.

    Whitespace at the ends and repeated whitespace do not count.

    Args:
        hypotheses: One answer each.
        references: For each hypothesis its right answers.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    return _accuracy("accuracy", _hits(hypotheses, references), num_bootstrap=num_bootstrap)


def nbest_accuracy(
    hypotheses: Sequence[Texts], references: References, *, num_bootstrap: int = 0
) -> Result:
    """Measure how many answers have a candidate that equals one of their references, in percent.

    Args:
        hypotheses: For each answer its candidates; their number may differ.
        references: For each answer what is right.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    for position, candidates in enumerate(hypotheses):
        if isinstance(candidates, str):
            raise DataError(
                f"`hypotheses[{position}]` must be a list of candidates, but is the answer "
                f"{candidates!r}. Put it into a list, even if it is the only one."
            )
    most = max(map(len, hypotheses))
    if not most:
        raise DataError("`hypotheses` must hold at least one candidate, but all are empty.")
    hits = _any_hits(hypotheses, references)
    return _accuracy(f"accuracy@{most}", hits, num_bootstrap=num_bootstrap)


def word_errors(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure how many hypotheses equal none of their references, in percent.

    What papers on pronunciation call the word error rate: every answer is one word.

    Args:
        hypotheses: One answer each.
        references: For each hypothesis its right answers.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    misses = [not is_right for is_right in _hits(hypotheses, references)]
    return ratio(
        "WER",
        misses,
        signature=f"unit:answer|{_RULE}",
        num_bootstrap=num_bootstrap,
        detail={"wrong": sum(misses), "count": len(misses)},
    )


def _hits(hypotheses: Texts, references: References) -> list[bool]:
    check_references(hypotheses, references)
    return _any_hits([[hypothesis] for hypothesis in hypotheses], references)


def _any_hits(candidates: Sequence[Texts], references: References) -> list[bool]:
    """Return for each answer whether one of its candidates equals one of its references."""
    return [
        any(text.split() in (answer.split() for answer in answers) for text in texts)
        for texts, answers in zip(candidates, references, strict=True)
    ]


def _accuracy(name: str, hits: Sequence[bool], *, num_bootstrap: int) -> Result:
    return ratio(
        name,
        hits,
        signature=f"match:exact|{_RULE}",
        num_bootstrap=num_bootstrap,
        detail={"right": sum(hits), "count": len(hits)},
    )
