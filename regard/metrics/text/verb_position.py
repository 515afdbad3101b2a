"""Verb position in German dependent clauses, whose verb comes last."""

import re
from collections import Counter
from collections.abc import Sequence

from regard.core.errors import DataError
from regard.metrics.result import Result, check_references

OPENERS = frozenset(
    "als bevor bis da damit dass nachdem ob obwohl seit sobald solange während weil wenn "
    "wann warum was wem wen wer weshalb wie wieso wo woher wohin womit "
    "das dem den denen der deren dessen die welche welchem welchen welcher welches".split()
)
"""First words of dependent clauses: conjunctions, question words, relative pronouns."""

_JOINERS = frozenset(("aber", "denn", "oder", "sondern", "und"))


def misplaced_verbs(hypotheses: Sequence[str], references: Sequence[str]) -> Result:
    """Compute the percentage of verbs of dependent clauses that are at a wrong position.

    Only reordering counts, as in Bentivogli et al. 2016; a verb that does not occur in the
    hypothesis is `missing`. A dependent clause is a segment of the reference between two
    punctuation marks that starts with one of `OPENERS` and ends in a word in lower case, which is
    taken as the verb. The verb is in place if a segment of the hypothesis ends in it, and
    misplaced if the hypothesis has it elsewhere, more often than the reference does. Clauses
    that another clause interrupts are not counted.

    Args:
        hypotheses: German sentences.
        references: One reference per hypothesis.
    """
    check_references(hypotheses, [[reference] for reference in references])
    totals: Counter[str] = Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        totals += _count(_segments(hypothesis), _segments(reference))
    if not totals["verbs"]:
        raise DataError("`references` must hold a dependent clause that ends in its verb.")
    return Result(
        name="misplaced verbs",
        value=100 * totals["misplaced"] / totals["verbs"],
        signature="language:de|clauses:dependent,uninterrupted|verb:last word|average:corpus",
        detail={name: totals[name] for name in ("verbs", "in_place", "misplaced", "missing")},
    )


def clause_verbs(sentence: str) -> list[str]:
    """Return the verbs of the dependent clauses that `misplaced_verbs` counts."""
    return [words[-1] for words in _segments(sentence) if _is_dependent(words)]


def _count(hypothesis: list[list[str]], reference: list[list[str]]) -> Counter[str]:
    verbs = Counter(words[-1] for words in reference if _is_dependent(words))
    ends, elsewhere = _split_counts(hypothesis)
    _, elsewhere_in_reference = _split_counts(reference)
    counts: Counter[str] = Counter()
    for verb, num in verbs.items():
        num_absent = max(0, num - ends[verb])
        num_moved = min(num_absent, max(0, elsewhere[verb] - elsewhere_in_reference[verb]))
        counts["verbs"] += num
        counts["in_place"] += num - num_absent
        counts["misplaced"] += num_moved
        counts["missing"] += num_absent - num_moved
    return counts


def _split_counts(segments: list[list[str]]) -> tuple[Counter[str], Counter[str]]:
    """Count the last words of all segments, and all other words."""
    ends = Counter(words[-1] for words in segments)
    return ends, Counter(word for words in segments for word in words[:-1])


def _segments(sentence: str) -> list[list[str]]:
    parts = re.split(r"[.,;:!?()\"„“”–—]", sentence)
    return [words for words in map(str.split, parts) if words]


def _is_dependent(words: list[str]) -> bool:
    inner = words[1:] if words[0].lower() in _JOINERS else words
    return len(inner) > 1 and inner[0].lower() in OPENERS and inner[-1][0].islower()
