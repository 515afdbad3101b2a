"""Report the test matrices: their dimensions, the rows that `make test` runs, the pairs covered.

python tests/architecture/matrix_report.py            # prints the tables
python tests/architecture/matrix_report.py --write    # writes them into docs/testing.md
"""

import sys
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.all_pairs import Matrix, Use, find_pairs, find_uses  # noqa: E402

PAGE = ROOT / "docs" / "testing.md"
START, END = "<!-- matrices: generated -->", "<!-- end of the matrices -->"


def collect_uses() -> dict[str, Use]:
    """Return the matrices of every test that runs over one, by the name of the test."""
    uses = {}

    class Collector:
        def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
            for use in find_uses(metafunc):
                uses[metafunc.definition.nodeid.removeprefix("tests/")] = use

    files = (ROOT / "tests").rglob("test_*.py")
    paths = [str(path) for path in files if "mark.matrix" in path.read_text(encoding="utf-8")]
    options = ["--collect-only", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    with redirect_stdout(StringIO()):
        pytest.main([*options, *paths], plugins=[Collector()])
    return uses


def count_pairs(rows: list[dict[str, str]]) -> int:
    """Return the number of distinct pairs of choices in rows."""
    return sum(len(pair) == 2 for pair in set().union(*map(find_pairs, rows)))


def describe_matrix(matrix: Matrix) -> str:
    """Return a row of the table of matrices."""
    full = [matrix.describe(row) for row in matrix.rows]
    selected = [matrix.describe(row) for row in matrix.selected]
    counts = Counter(name for name, _ in {choice for row in full for choice in row.items()})
    names = dict.fromkeys(name for row in full for name in row)
    choices = ", ".join(f"{name} {counts[name]}" for name in names)
    valid, covered = count_pairs(full), count_pairs(selected)
    share = f"{covered:,} of {valid:,} ({100 * covered / valid:.0f} %)"
    return f"| {matrix.name} | {choices} | {len(full):,} | {len(selected):,} | {share} |"


def describe_use(test: str, use: Use) -> str:
    """Return a row of the table of tests."""
    full, selected = (len(use.cases(is_full=is_full)) for is_full in (True, False))
    names = ", ".join(matrix.name for matrix in use.matrices)
    return f"| `{test}` | {names} | {full:,} | {selected:,} |"


def report() -> str:
    """Return both tables in Markdown."""
    uses = collect_uses()
    matrices = {matrix.name: matrix for use in uses.values() for matrix in use.matrices}
    return "\n".join(
        [
            "| matrix | choices per dimension | full matrix | rows run | pairs covered |",
            "| --- | --- | ---: | ---: | ---: |",
            *(describe_matrix(matrices[name]) for name in sorted(matrices)),
            "",
            "| test | matrices | full matrix | cases run |",
            "| --- | --- | ---: | ---: |",
            *(describe_use(test, uses[test]) for test in sorted(uses)),
        ]
    )


def written_report() -> str:
    """Return the tables that docs/testing.md contains."""
    return PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0].strip()


if __name__ == "__main__":
    if "--write" in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.partition(START)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{START}\n{report()}\n{END}{after}", encoding="utf-8")
    else:
        print(report())
