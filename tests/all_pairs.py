"""Test matrices: tables of choices, and few rows that contain every pair of choices.

A full matrix has one row per valid combination of choices. `make test-all` runs all of them.
`make test` runs selected rows in which every pair of choices that occurs in the full matrix occurs
at least once (all-pairs testing): most faults depend on one choice or on two together.

A test names its arguments and its matrices:

    @pytest.mark.matrix("config", MODELS, ATTENTION)
    def test_padding_changes_nothing(config): ...

The mark may also be the `pytestmark` of a module; the mark that is nearest to the test counts.
`python tests/architecture/matrix_report.py` prints all matrices and the pairs covered.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from heapq import heapify, heappop, heappush
from typing import Any

Labels = Mapping[str, str]
"""Labels of choices by name of their dimension."""


@dataclass(frozen=True)
class Choice:
    """A value that is described by several dimensions of its own, such as a model's settings."""

    value: Any
    labels: Labels


def find_pairs(labels: Labels) -> set[tuple]:
    """Return every choice and every pair of choices that a row contains."""
    choices = sorted(labels.items())
    return {(choice,) for choice in choices} | set(itertools.combinations(choices, 2))


def select_rows(rows: Sequence[Labels]) -> list[int]:
    """Return the indices of few rows that contain every pair of choices of all rows.

    Greedy: the next row is the one with the most pairs that no selected row contains; of several
    such rows, the first. At the end, rows whose pairs all occur in later rows too are dropped.
    """
    pairs = [find_pairs(row) for row in rows]
    missing = set().union(*pairs)
    queue = [(-len(found), index) for index, found in enumerate(pairs)]
    heapify(queue)
    selected = []
    while missing:
        upper_bound, index = heappop(queue)
        new = pairs[index] & missing
        if len(new) == -upper_bound:
            selected.append(index)
            missing -= new
        elif new:
            heappush(queue, (-len(new), index))
    counts = Counter(pair for index in selected for pair in pairs[index])
    for index in tuple(selected):
        if all(counts[pair] > 1 for pair in pairs[index]):
            selected.remove(index)
            counts.subtract(pairs[index])
    return sorted(selected)


class Matrix:
    """Named dimensions with their choices, and the valid combinations of choices.

    Args:
        name: Name in reports.
        build: Maps one choice per dimension, by keyword, to the case of a test; by default the case
            is the choices themselves.
        is_valid: Whether choices, by keyword, may be combined; by default all may.
        dimensions: Choices of each dimension: a mapping from labels to values, or a sequence of
            values that are their own labels. A value that is a `Choice` has several dimensions.
    """

    def __init__(
        self,
        name: str,
        *,
        build: Callable[..., Any] | None = None,
        is_valid: Callable[..., bool] | None = None,
        **dimensions: Mapping[str, Any] | Sequence[Any],
    ) -> None:
        self.name = name
        self.build = build
        self.is_valid = is_valid
        self.dimensions = {
            dimension: choices if isinstance(choices, Mapping) else {str(c): c for c in choices}
            for dimension, choices in dimensions.items()
        }

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """Full matrix: the label of one choice per dimension, for every valid combination."""
        labels = itertools.product(*self.dimensions.values())
        rows = [dict(zip(self.dimensions, row, strict=True)) for row in labels]
        return [row for row in rows if self.is_valid is None or self.is_valid(**self.values(row))]

    @cached_property
    def selected(self) -> list[dict[str, str]]:
        """Rows that contain every pair of choices of the full matrix."""
        if not self.dimensions:
            return self.rows
        indices = select_rows([self.describe(row) for row in self.rows])
        return [self.rows[index] for index in indices]

    def values(self, row: Labels) -> dict[str, Any]:
        """Return the values of a row's choices by dimension."""
        choices = {name: self.dimensions[name][label] for name, label in row.items()}
        return {
            name: choice.value if isinstance(choice, Choice) else choice
            for name, choice in choices.items()
        }

    def describe(self, row: Labels) -> dict[str, str]:
        """Return the labels of a row, a `Choice` replaced by its own labels."""
        labels = {}
        for name, label in row.items():
            choice = self.dimensions[name][label]
            if isinstance(choice, Choice):
                labels |= {f"{name}.{inner}": value for inner, value in choice.labels.items()}
            else:
                labels[name] = label
        return labels

    @cache  # noqa: B019 (matrices live as long as the process)
    def cases(self, names: tuple[str, ...], *, is_full: bool) -> dict[str, tuple]:
        """Return the values of a test's arguments, one tuple per case, by readable name.

        Args:
            names: Arguments of the test: one for what `build` returns; else dimensions of the
                matrix. A dimension that the test does not take is left out, and equal cases are
                run once.
            is_full: Whether to return the full matrix.
        """
        cases = {}
        for row in self.rows if is_full else self.selected:
            used = row if self.build else {name: row[name] for name in names}
            values = self.values(used)
            case = (self.build(**values),) if self.build else tuple(values.values())
            cases.setdefault("-".join(label for label in used.values() if label), case)
        return cases


def variants(
    settings: Callable[..., Any],
    *,
    kind: str | None = None,
    is_valid: Callable[..., bool] | None = None,
    sizes: Mapping[str, Any] | None = None,
    **choices: Mapping[str, Any] | Sequence[Any],
) -> dict[str, Choice]:
    """Return settings of one kind, by label, in which every pair of choices occurs.

    Args:
        settings: Class of the settings.
        kind: Label of the kind; by default `settings.kind`.
        is_valid: Whether choices, by keyword, may be combined.
        sizes: Further settings, equal in all variants.
        choices: Choices of each setting.
    """
    matrix = Matrix(kind or settings.kind, is_valid=is_valid, **choices)
    found = {}
    for row in matrix.selected:
        words = [
            name.removeprefix("is_").removeprefix("has_") if label == "True" else label
            for name, label in row.items()
            if label != "False"
        ]
        value = settings(**matrix.values(row), **(sizes or {}))
        found["-".join([matrix.name, *words])] = Choice(value, {"kind": matrix.name, **row})
    return found


@dataclass(frozen=True)
class Use:
    """The arguments of a test and the matrices that provide them."""

    names: tuple[str, ...]
    matrices: tuple[Matrix, ...]

    def cases(self, *, is_full: bool) -> dict[str, tuple]:
        """Return the cases of all matrices by name."""
        cases = {}
        for matrix in self.matrices:
            cases |= matrix.cases(self.names, is_full=is_full)
        return cases


def find_uses(metafunc: Any) -> list[Use]:
    """Return the matrices of a test function as pytest collects it, from its marks."""
    uses = []
    free = set(metafunc.fixturenames)
    for mark in metafunc.definition.iter_markers("matrix"):
        names = tuple(mark.args[0].split(", "))
        taken = tuple(name for name in names if name in free)
        if taken:
            uses.append(Use(taken, mark.args[1:]))
            free -= set(names)
    return uses
