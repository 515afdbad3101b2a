"""Exact match of whole answers, error rates by edit distance, and what was taken for what."""

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
"""The right unit and the written one; "" = nothing."""

_RULE = "refs:any|case:mixed|whitespace:squeezed"


def characters(sentence: str) -> list[str]:
    """Cut a sentence into characters; a run of whitespace is one, and none is at the ends."""
    return list(" ".join(sentence.split()))


UNITS: dict[str, Callable[[str], list[str]]] = {"word": str.split, "character": characters}
"""How a text is cut. Phones are written as words: with whitespace between them."""


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
    signature, sums = f"unit:answer|{_RULE}", ("wrong", "count")
    return ratio("WER", misses, signature=signature, num_bootstrap=num_bootstrap, sums=sums)


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
    signature, sums = f"match:exact|{_RULE}", ("right", "count")
    return ratio(name, hits, signature=signature, num_bootstrap=num_bootstrap, sums=sums)


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and substitutions between two sequences.

    Levenshtein 1966.

    Args:
        first: Any units.
        second: Units of the same kind.
    """
    return distance_table(first, second)[-1][-1]


def distance_table(first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
    """Return the edit distance of every beginning of one sequence to every one of the other.

    Wagner and Fischer 1974. Row r, column c: the first r units of one, the first c of the other.

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


def nearest(written: Sequence[str], rights: Sequence[Sequence[str]]) -> tuple[int, Sequence[str]]:
    """Return the fewest edits and the reference they lead to; of equally near ones the longest.

    Args:
        written: Units of the hypothesis.
        rights: Units of each reference.
    """
    found = [(edit_distance(written, right), right) for right in rights]
    return min(found, key=lambda pair: (pair[0], -len(pair[1])))


def error_rate(
    hypotheses: Texts, references: References, *, name: str, unit: str, num_bootstrap: int = 0
) -> Result:
    """Measure the edits to the nearest references by the lengths of these references, in percent.

    Args:
        hypotheses: One text each.
        references: For each hypothesis its references; the nearest counts.
        name: What papers call it.
        unit: What is edited: words and phones are separated by whitespace; of characters, a run of
            whitespace counts as one.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    check_references(hypotheses, references)
    cut = UNITS.get(unit, str.split)
    found = [
        nearest(cut(hypothesis), [cut(sentence) for sentence in sentences])
        for hypothesis, sentences in zip(hypotheses, references, strict=True)
    ]
    costs, lengths = [cost for cost, _ in found], [len(right) for _, right in found]
    if not any(lengths):
        raise DataError(f"`references` must hold at least one {unit}, but all are empty.")
    return ratio(
        name,
        costs,
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
    """One way to be wrong."""

    right: str
    """What the reference has; "" = nothing: the written unit is too much."""
    written: str
    """What the hypothesis has in its place; "" = nothing: the right unit is missing."""
    count: int
    """How often."""


def edits(hypotheses: Texts, references: References, *, unit: Unit) -> list[Edit]:
    """Count what was taken for what, most frequent first; equally frequent ones by alphabet.

    Their counts add up to the edits of the error rate in the same unit.

    Args:
        hypotheses: One text each.
        references: For each hypothesis its references; the nearest counts.
        unit: What is compared: words or phones between whitespace, or characters.
    """
    pairs = _pairs(hypotheses, references, unit=unit)
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Edit(right, written, count) for (right, written), count in ordered]


def by_unit(hypotheses: Texts, references: References, *, unit: Unit) -> list[Group]:
    """Measure for each unit of the references how many of its occurrences are wrong, in percent.

    Those that are wrong most often in total come first; of equally many the rarer unit, then by
    alphabet. What is written too much belongs to no unit and is left out.

    Args:
        hypotheses: One text each.
        references: For each hypothesis its references; the nearest counts.
        unit: What is counted: words or phones between whitespace, or characters.
    """
    totals: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for right, written in _pairs(hypotheses, references, unit=unit):
        if right:
            totals[right] += 1
            wrong[right] += right != written
    ordered = sorted(totals, key=lambda name: (-wrong[name], totals[name], name))
    return [
        Group(name, totals[name], {"errors": _share(wrong[name], totals[name], unit=unit)})
        for name in ordered
    ]


def align(right: Sequence[str], written: Sequence[str]) -> list[Pair]:
    """Pair the units of two sequences with the fewest edits; "" stands where one has nothing.

    Of several such alignments the one is taken that, from the end on, pairs units first, then
    leaves out right ones.

    Args:
        right: Units of the reference.
        written: Units of the hypothesis.
    """
    table = distance_table(right, written)
    row, column = len(right), len(written)
    pairs: list[Pair] = []
    while row or column:
        distance = table[row][column]
        if row and column:
            is_edit = right[row - 1] != written[column - 1]
            if distance == table[row - 1][column - 1] + is_edit:
                row, column = row - 1, column - 1
                pairs.append((right[row], written[column]))
                continue
        if row and distance == table[row - 1][column] + 1:
            row -= 1
            pairs.append((right[row], ""))
        else:
            column -= 1
            pairs.append(("", written[column]))
    return pairs[::-1]


def _pairs(hypotheses: Texts, references: References, *, unit: Unit) -> Iterator[Pair]:
    check_references(hypotheses, references)
    cut = pick(UNITS, unit, "unit")
    for hypothesis, sentences in zip(hypotheses, references, strict=True):
        written = cut(hypothesis)
        _, right = nearest(written, [cut(sentence) for sentence in sentences])
        yield from align(right, written)


def _share(num_wrong: int, count: int, *, unit: str) -> Result:
    return Result(
        name="errors",
        value=100 * num_wrong / count,
        signature=f"unit:{unit}|refs:nearest|case:mixed|insertions:left out",
        detail={"wrong": num_wrong, "count": count},
    )
