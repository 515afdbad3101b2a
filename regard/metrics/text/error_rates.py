"""Exact-match accuracy, error rates by edit distance (WER, CER, PER) and counts of edits."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from regard.core.errors import DataError
from regard.core.tables import pick
from regard.metrics.bootstrap import ratio
from regard.metrics.result import Group, Metric, References, Result, Texts, check_references

Unit = Literal["word", "character"]

Pair = tuple[str, str]
"""Aligned units of the reference and of the hypothesis; "" = none."""

_RULE = "refs:any|case:mixed|whitespace:squeezed"


def characters(sentence: str) -> list[str]:
    """Split a sentence into characters; whitespace is collapsed, and stripped at the ends."""
    return list(" ".join(sentence.split()))


UNITS: dict[str, Callable[[str], list[str]]] = {"word": str.split, "character": characters}
"""Tokenisers by unit. Phones are separated by whitespace, like words."""


def accuracy(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute the percentage of hypotheses that equal one of their references.

    Leading, trailing and repeated whitespace is ignored.

    Args:
        hypotheses: One text each.
        references: One or more references per hypothesis.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    return _accuracy("accuracy", _hits(hypotheses, references), num_bootstrap=num_bootstrap)


def nbest_accuracy(
    hypotheses: Sequence[Texts], references: References, *, num_bootstrap: int = 0
) -> Result:
    """Compute the percentage of examples with a candidate that equals one of their references.

    Args:
        hypotheses: Candidates of each example; their number may differ.
        references: One or more references per example.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    check_references(hypotheses, references)
    for position, candidates in enumerate(hypotheses):
        if isinstance(candidates, str):
            raise DataError(
                f"`hypotheses[{position}]` must be a list of candidates, but is the text "
                f"{candidates!r}. Put it into a list, even if it is the only one."
            )
    num_best = max(map(len, hypotheses))
    if not num_best:
        raise DataError("`hypotheses` must hold at least one candidate, but all are empty.")
    hits = _any_hits(hypotheses, references)
    return _accuracy(f"accuracy@{num_best}", hits, num_bootstrap=num_bootstrap)


def word_errors(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Compute the percentage of hypotheses that equal none of their references.

    Papers on pronunciation call this the word error rate, as every example is one word.

    Args:
        hypotheses: One text each.
        references: One or more references per hypothesis.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    misses = [not hit for hit in _hits(hypotheses, references)]
    signature, sums = f"unit:answer|{_RULE}", ("wrong", "count")
    return ratio("WER", misses, signature=signature, num_bootstrap=num_bootstrap, sums=sums)


def _hits(hypotheses: Texts, references: References) -> list[bool]:
    check_references(hypotheses, references)
    return _any_hits([[hypothesis] for hypothesis in hypotheses], references)


def _any_hits(candidates: Sequence[Texts], references: References) -> list[bool]:
    """Return for each example whether one of its candidates equals one of its references."""
    return [
        any(text.split() in (sentence.split() for sentence in sentences) for text in texts)
        for texts, sentences in zip(candidates, references, strict=True)
    ]


def _accuracy(name: str, hits: Sequence[bool], *, num_bootstrap: int) -> Result:
    signature, sums = f"match:exact|{_RULE}", ("right", "count")
    return ratio(name, hits, signature=signature, num_bootstrap=num_bootstrap, sums=sums)


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the minimum number of insertions, deletions and substitutions between sequences.

    Levenshtein 1966.

    Args:
        first: Any units.
        second: Units of the same kind.
    """
    return distance_table(first, second)[-1][-1]


def distance_table(first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
    """Return the edit distances between all prefixes of two sequences.

    Wagner and Fischer 1974. Row r, column c: the first r units of `first`, the first c of `second`.

    Args:
        first: Any units.
        second: Units of the same kind.
    """
    table = [list(range(len(second) + 1))]
    for number, unit in enumerate(first, start=1):
        above, row = table[-1], [number]
        for column, other in enumerate(second):
            row.append(min(above[column] + (unit != other), above[column + 1] + 1, row[column] + 1))
        table.append(row)
    return table


def nearest_reference(
    hypothesis: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[int, Sequence[str]]:
    """Return the smallest edit distance and its reference; of equal distances the longest one.

    Args:
        hypothesis: Units of the hypothesis.
        references: Units of each reference.
    """
    distances = [(edit_distance(hypothesis, reference), reference) for reference in references]
    return min(distances, key=lambda pair: (pair[0], -len(pair[1])))


def error_rate(
    hypotheses: Texts, references: References, *, name: str, unit: str, num_bootstrap: int = 0
) -> Result:
    """Compute the edits to the nearest references, divided by their lengths, in percent.

    Args:
        hypotheses: One text each.
        references: One or more references per hypothesis; the nearest counts.
        name: Name of the metric.
        unit: Unit of edits: words and phones are separated by whitespace; among characters, a run
            of whitespace counts as one.
        num_bootstrap: Number of bootstrap resamples; 0 means no confidence interval.
    """
    check_references(hypotheses, references)
    tokenize = UNITS.get(unit, str.split)
    pairs = [
        nearest_reference(tokenize(hypothesis), [tokenize(sentence) for sentence in sentences])
        for hypothesis, sentences in zip(hypotheses, references, strict=True)
    ]
    distances, lengths = [cost for cost, _ in pairs], [len(nearest) for _, nearest in pairs]
    if not any(lengths):
        raise DataError(f"`references` must hold at least one {unit}, but all are empty.")
    return ratio(
        name,
        distances,
        lengths,
        signature=f"unit:{unit}|average:corpus|refs:nearest|case:mixed",
        num_bootstrap=num_bootstrap,
        sums=("edits", "length"),
    )


wer: Metric = partial(error_rate, name="WER", unit="word")
cer: Metric = partial(error_rate, name="CER", unit="character")
per: Metric = partial(error_rate, name="PER", unit="phone")


@dataclass(frozen=True)
class Edit:
    """Substitution, insertion or deletion, with its count."""

    right: str
    """Word, phone or character of the reference; "" for an insertion."""
    written: str
    """Word, phone or character of the hypothesis; "" for a deletion."""
    count: int
    """Number of occurrences."""


def edits(hypotheses: Texts, references: References, *, unit: Unit) -> list[Edit]:
    """Count substitutions, insertions and deletions, most frequent first, then alphabetically.

    The counts sum to the edits of the error rate in the same unit.

    Args:
        hypotheses: One text each.
        references: One or more references per hypothesis; the nearest counts.
        unit: Unit of edits: words or phones separated by whitespace, or characters.
    """
    pairs = _aligned_pairs(hypotheses, references, unit=unit)
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Edit(right, written, count) for (right, written), count in ordered]


def by_unit(hypotheses: Texts, references: References, *, unit: Unit) -> list[Group]:
    """Compute the error rate of each unit of the references, in percent.

    Units are sorted by number of errors (most first), by frequency (rarest first), then
    alphabetically. Insertions are not counted.

    Args:
        hypotheses: One text each.
        references: One or more references per hypothesis; the nearest counts.
        unit: Unit of errors: words or phones separated by whitespace, or characters.
    """
    totals: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for expected, predicted in _aligned_pairs(hypotheses, references, unit=unit):
        if expected:
            totals[expected] += 1
            wrong[expected] += expected != predicted
    ordered = sorted(totals, key=lambda name: (-wrong[name], totals[name], name))
    return [
        Group(name, totals[name], {"errors": _error_rate(wrong[name], totals[name], unit=unit)})
        for name in ordered
    ]


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Pair]:
    """Align two sequences with the fewest edits; "" marks insertions and deletions.

    Of several such alignments, prefer, from the end, substitutions and then deletions.

    Args:
        reference: Units of the reference.
        hypothesis: Units of the hypothesis.
    """
    table = distance_table(reference, hypothesis)
    row, column = len(reference), len(hypothesis)
    pairs: list[Pair] = []
    while row or column:
        distance = table[row][column]
        if row and column:
            is_edit = reference[row - 1] != hypothesis[column - 1]
            if distance == table[row - 1][column - 1] + is_edit:
                row, column = row - 1, column - 1
                pairs.append((reference[row], hypothesis[column]))
                continue
        if row and distance == table[row - 1][column] + 1:
            row -= 1
            pairs.append((reference[row], ""))
        else:
            column -= 1
            pairs.append(("", hypothesis[column]))
    return pairs[::-1]


def _aligned_pairs(hypotheses: Texts, references: References, *, unit: Unit) -> Iterator[Pair]:
    check_references(hypotheses, references)
    tokenize = pick(UNITS, unit, "unit")
    for hypothesis, sentences in zip(hypotheses, references, strict=True):
        units = tokenize(hypothesis)
        _, nearest = nearest_reference(units, [tokenize(sentence) for sentence in sentences])
        yield from align(nearest, units)


def _error_rate(num_wrong: int, count: int, *, unit: str) -> Result:
    return Result(
        name="errors",
        value=100 * num_wrong / count,
        signature=f"unit:{unit}|refs:nearest|case:mixed|insertions:left out",
        detail={"wrong": num_wrong, "count": count},
    )
