"""Where the verb stands: German dependent clauses, whose verb comes last."""

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
"""Words that open a dependent clause after a comma: conjunctions, question words, relatives."""

_JOINERS = frozenset(("aber", "denn", "oder", "sondern", "und"))


def misplaced_verbs(hypotheses: Sequence[str], references: Sequence[str]) -> Result:
    """Measure in percent how many verbs of dependent clauses are written, but in another place.

    Only reordering counts, as in Bentivogli et al. 2016; a verb that is not there at all is
    `missing`. What is counted, by the text alone: a stretch of the reference between two
    punctuation marks that one of `OPENERS` opens and a word in lower case ends. That word is
    taken for the verb. It is in place where a stretch of the hypothesis ends in it, and
    misplaced where the hypothesis has it elsewhere, more often than the reference does.
    A clause that another one interrupts is left out.

    Args:
        hypotheses: German sentences.
        references: For each the right sentence.
    """
    check_references(hypotheses, [[reference] for reference in references])
    totals: Counter[str] = Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        totals += _count(_stretches(hypothesis), _stretches(reference))
    if not totals["verbs"]:
        raise DataError("`references` must hold a dependent clause that ends in its verb.")
    return Result(
        name="misplaced verbs",
        value=100 * totals["misplaced"] / totals["verbs"],
        signature="language:de|clauses:dependent,uninterrupted|verb:last word|average:corpus",
        detail={name: totals[name] for name in ("verbs", "in_place", "misplaced", "missing")},
    )


def clause_verbs(sentence: str) -> list[str]:
    """Return the verbs that end the dependent clauses of a German sentence, as they are counted."""
    return [words[-1] for words in _stretches(sentence) if _is_dependent(words)]


def _count(written: list[list[str]], right: list[list[str]]) -> Counter[str]:
    wanted = Counter(words[-1] for words in right if _is_dependent(words))
    ends, elsewhere = _places(written)
    _, elsewhere_in_reference = _places(right)
    counts: Counter[str] = Counter()
    for verb, num in wanted.items():
        num_absent = max(0, num - ends[verb])
        num_moved = min(num_absent, max(0, elsewhere[verb] - elsewhere_in_reference[verb]))
        counts["verbs"] += num
        counts["in_place"] += num - num_absent
        counts["misplaced"] += num_moved
        counts["missing"] += num_absent - num_moved
    return counts


def _places(stretches: list[list[str]]) -> tuple[Counter[str], Counter[str]]:
    """Count the last words of all stretches, and all other words."""
    ends = Counter(words[-1] for words in stretches)
    return ends, Counter(word for words in stretches for word in words[:-1])


def _stretches(sentence: str) -> list[list[str]]:
    parts = re.split(r"[.,;:!?()\"„“”–—]", sentence)
    return [words for words in map(str.split, parts) if words]


def _is_dependent(words: list[str]) -> bool:
    inner = words[1:] if words[0].lower() in _JOINERS else words
    return len(inner) > 1 and inner[0].lower() in OPENERS and inner[-1][0].islower()
