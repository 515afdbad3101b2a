"""`regard compare`: compare runs on one test set, with significance tests."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from regard.cli.options import Device
from regard.cli.output import print_json

if TYPE_CHECKING:
    from regard.studies.compare.comparison import Comparison

STANDARD_OUTPUT = "-"


def compare(
    run: Annotated[
        list[str], Argument(metavar="RUN RUN...", help="Run folders; the first is the baseline.")
    ],
    as_json: Annotated[str | None, Option("--json", help="A JSON file, or - to print it.")] = None,
    html: Annotated[Path | None, Option(help="A file for a page with tables and plots.")] = None,
    device: Device = "auto",
) -> None:
    """Compare runs on their common test set, each with the first."""
    from regard.studies.compare import comparison

    folders = [Path(folder) for folder in run]
    report(comparison.compare(folders, device=device), as_json=as_json, html=html)


def report(comparison: "Comparison", *, as_json: str | None, html: Path | None) -> None:
    """Print a comparison, and write it to the given files.

    Args:
        comparison: The comparison.
        as_json: A file for JSON; `-` prints it instead of the tables.
        html: A file for the page.
    """
    from rich.console import Console

    from regard.core.files import write_json, write_text
    from regard.studies.compare.rendering import comparison_page, print_comparison

    if html is not None:
        write_text(html, comparison_page(comparison))
    if as_json == STANDARD_OUTPUT:
        print_json(comparison.to_dict())
        return
    print_comparison(comparison, Console())
    if as_json is not None:
        write_json(Path(as_json), comparison.to_dict())
        print(as_json)
    if html is not None:
        print(html)
