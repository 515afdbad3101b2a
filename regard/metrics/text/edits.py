"""What was taken for what: the edits behind an error rate, and the units that are often wrong."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.core.tables import pick
from regard.metrics.grouping import Group
from regard.metrics.result import References, Result, Texts, check_references
from regard.metrics.text.error_rates import UNITS, Unit, distance_table, nearest

Pair = tuple[str, str]
"""The right unit and the written one; "" = nothing."""


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
        unit: What is compared: words or phones between blanks, or characters.
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
        unit: What is counted: words or phones between blanks, or characters.
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
