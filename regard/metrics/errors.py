"""Error rates by edit distance: words, characters, phones."""

from collections.abc import Callable, Sequence

from regard.core.errors import DataError
from regard.metrics.result import Result, check_references


def wer(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Result:
    """Measure the word error rate in percent: edits per word of the reference.

    Args:
        hypotheses: One sentence each, words separated by blanks.
        references: For each hypothesis its references; the nearest counts.
    """
    return _error_rate("WER", hypotheses, references, cut=str.split, unit="word")


def cer(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Result:
    """Measure the character error rate in percent: edits per character of the reference.

    Args:
        hypotheses: One sentence each; a run of blanks counts as one character.
        references: For each hypothesis its references; the nearest counts.
    """
    return _error_rate("CER", hypotheses, references, cut=_characters, unit="character")


def per(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Result:
    """Measure the phone error rate in percent: edits per phone of the reference.

    Args:
        hypotheses: One pronunciation each, phones separated by blanks.
        references: For each hypothesis its references; the nearest counts.
    """
    return _error_rate("PER", hypotheses, references, cut=str.split, unit="phone")


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and substitutions between two sequences.

    Levenshtein 1966.

    Args:
        first: Any units.
        second: Units of the same kind.
    """
    distances = list(range(len(second) + 1))
    for row, unit in enumerate(first, start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(second, start=1):
            substituted = diagonal + (unit != other)
            diagonal = distances[column]
            distances[column] = min(substituted, diagonal + 1, distances[column - 1] + 1)
    return distances[-1]


def _error_rate(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    cut: Callable[[str], list[str]],
    unit: str,
) -> Result:
    check_references(hypotheses, references)
    num_edits = num_units = 0
    for hypothesis, sentences in zip(hypotheses, references, strict=True):
        edits, negative_length = min(
            (edit_distance(cut(hypothesis), cut(sentence)), -len(cut(sentence)))
            for sentence in sentences
        )
        num_edits += edits
        num_units -= negative_length
    if not num_units:
        raise DataError(f"`references` must hold at least one {unit}, but all are empty.")
    return Result(
        name=name,
        value=100 * num_edits / num_units,
        signature=f"unit:{unit}|average:corpus|refs:nearest|case:mixed",
        detail={"edits": num_edits, "length": num_units},
    )


def _characters(sentence: str) -> list[str]:
    return list(" ".join(sentence.split()))
