"""Output shared by commands: JSON, scores, tables, files, and how to resume."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from regard.core.errors import ConfigError
from regard.core.files import replacing
from regard.core.logging import logger
from regard.core.terminal import clean, unfiltered

if TYPE_CHECKING:
    from rich.console import Console

    from regard.metrics.result import Result
    from regard.tasks.evaluation import Evaluation

EMPTY = "∅"
"""Missing side of an insertion or a deletion."""


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a JSON object on several lines; without indent, on one line."""
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def print_results(results: "Iterable[Result]", *, title: str = "") -> None:
    """Print one score per line, indented if there is a title."""
    if title:
        print(f"{title}:")
    for result in results:
        print(f"  {result}" if title else result)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """Print a table of numbers; the first column holds the names of the rows."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(clean(title)) if title else None, title_justify="left", box=None)
    for number, name in enumerate(head):
        table.add_column(Text(clean(name)), justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    build_console().print(table)


def build_console() -> "Console":
    """Return a console for colours on standard output; what it prints must be clean."""
    from rich.console import Console

    return Console(file=unfiltered(sys.stdout))


def print_evaluation(evaluation: "Evaluation", *, max_rows: int = 10) -> None:
    """Print the scores of a test set, the scores of its groups, and frequent errors."""
    print_results(evaluation.results.values())
    for title, groups in (
        ("By length", evaluation.by_length),
        ("By tag", evaluation.by_tag),
        ("Reference tokens with the most errors (count, % wrong)", evaluation.by_unit[:max_rows]),
    ):
        if groups:
            print(f"\n{title}:")
        for group in groups:
            values = "  ".join(
                f"{name} {result.value:6.2f}" for name, result in group.results.items()
            )
            print(f"  {group.name:<14} {group.count:>6,}  {values}")
    if evaluation.edits:
        print("\nMost frequent errors (reference → output):")
    for edit in evaluation.edits[:max_rows]:
        print(f"  {edit.right or EMPTY} → {edit.written or EMPTY}  {edit.count:,}")


@contextmanager
def output_to(path: Path | None) -> Iterator[None]:
    """Write what the block prints to a file, atomically, and print its path at the end.

    Args:
        path: The file; standard output if not given.
    """
    if path is None:
        yield
        return
    if path.is_dir():
        raise ConfigError(f"`--out` must be a file, but {path} is a folder.")
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        with redirect_stdout(file):
            yield
    print(path)


def stop(how_to_resume: str) -> NoReturn:
    """End a command whose training was interrupted."""
    logger.info("Stopped; nothing is lost. %s", how_to_resume)
    raise typer.Exit(130)
