"""Check and update the table of docs/lectures.md against the results of its experiments.

python tests/architecture/lecture_table.py --write    # rewrites the last column
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "lectures.md"
RESULTS = ROOT / "docs" / "results" / "lectures.json"
TOPICS = (
    "1.1 1.2 1.3 1.4 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11 3.1 3.2 3.3 "
    "4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 4.9 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 "
    "6.1 6.2 6.3 6.4 6.5 6.6 6.7 6.8 6.9 7.1 7.2 7.3 7.4 7.5 7.6 7.7 7.8 8"
).split()
"""Numbers of all topics of the lectures."""

CELL = re.compile(r"(?<!\\)\|")
EXPERIMENT = re.compile(r"regard reproduce ([a-z][\w-]*)")
COLUMNS = 6


@dataclass(frozen=True)
class Row:
    """Row of the table: topic, formula, code, command, result, and whether it holds."""

    cells: tuple[str, ...]

    @property
    def topics(self) -> list[str]:
        """Numbers of the topics of the row."""
        return re.findall(r"(?:^|\[|, )(\d+(?:\.\d+)?)(?= |,)", self.cells[0])

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments in the command."""
        return EXPERIMENT.findall(self.cells[3])

    def count_claims(self, results: Mapping[str, Any]) -> str | None:
        """Return how many claims of the experiments hold; None without an experiment."""
        claims = [claim for name in self.experiments for claim in results[name]["claims"]]
        return f"{sum(one['holds'] for one in claims)} of {len(claims)}" if claims else None

    def __str__(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def read_rows(text: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows of the table with the numbers of their lines."""
    for number, line in enumerate(text.splitlines()):
        if re.match(r"\| \[?\d", line):
            cells = tuple(cell.strip() for cell in CELL.split(line)[1:-1])
            yield number, Row(cells)


def read_results() -> Mapping[str, Any]:
    """Return the claims and the time of each experiment, by its name."""
    experiments: Mapping[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))["experiments"]
    return experiments


def write() -> None:
    """Rewrite the last column of the table."""
    lines, results = PAGE.read_text(encoding="utf-8").splitlines(), read_results()
    for number, row in read_rows("\n".join(lines)):
        if held := row.count_claims(results):
            lines[number] = str(Row((*row.cells[: COLUMNS - 1], held)))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__" and "--write" in sys.argv:
    write()
