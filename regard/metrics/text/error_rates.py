"""Error rates by edit distance: words, characters, phones."""

from collections.abc import Sequence

from regard.core.errors import DataError
from regard.metrics.bootstrap import ratio
from regard.metrics.result import References, Result, Texts, check_references
from regard.metrics.text.units import UNITS


def wer(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure the word error rate in percent: edits per word of the reference.

    Args:
        hypotheses: One sentence each, words separated by blanks.
        references: For each hypothesis its references; the nearest counts.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    return _error_rate("WER", hypotheses, references, unit="word", num_bootstrap=num_bootstrap)


def cer(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure the character error rate in percent: edits per character of the reference.

    Args:
        hypotheses: One sentence each; a run of blanks counts as one character.
        references: For each hypothesis its references; the nearest counts.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    return _error_rate("CER", hypotheses, references, unit="character", num_bootstrap=num_bootstrap)


def per(hypotheses: Texts, references: References, *, num_bootstrap: int = 0) -> Result:
    """Measure the phone error rate in percent: edits per phone of the reference.

    Args:
        hypotheses: One pronunciation each, phones separated by blanks.
        references: For each hypothesis its references; the nearest counts.
        num_bootstrap: Number of resamples behind the confidence interval; 0 means no interval.
    """
    return _error_rate("PER", hypotheses, references, unit="phone", num_bootstrap=num_bootstrap)


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


def _error_rate(
    name: str, hypotheses: Texts, references: References, *, unit: str, num_bootstrap: int
) -> Result:
    """Divide the edits to the nearest references by the lengths of these references."""
    check_references(hypotheses, references)
    cut = UNITS.get(unit, str.split)
    found = [
        nearest(cut(hypothesis), [cut(sentence) for sentence in sentences])
        for hypothesis, sentences in zip(hypotheses, references, strict=True)
    ]
    edits, lengths = [edits for edits, _ in found], [len(right) for _, right in found]
    if not any(lengths):
        raise DataError(f"`references` must hold at least one {unit}, but all are empty.")
    return ratio(
        name,
        edits,
        lengths,
        signature=f"unit:{unit}|average:corpus|refs:nearest|case:mixed",
        num_bootstrap=num_bootstrap,
        detail={"edits": sum(edits), "length": sum(lengths)},
    )
