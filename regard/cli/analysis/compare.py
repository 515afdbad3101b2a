"""`regard compare`: which run is better, is it chance, and where do they part?"""

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
        list[str], Argument(metavar="RUN RUN...", help="Run folders; the first is the base.")
    ],
    as_json: Annotated[str | None, Option("--json", help="A JSON file, or - to print it.")] = None,
    html: Annotated[Path | None, Option(help="A file for the page with the curves.")] = None,
    device: Device = "auto",
) -> None:
    """Compare runs on the test set they share, each against the first."""
    from regard.studies.compare.comparison import compare as measure

    comparison = measure([Path(folder) for folder in run], device=device)
    report(comparison, as_json=as_json, html=html)


def report(comparison: "Comparison", *, as_json: str | None, html: Path | None) -> None:
    """Print a comparison, and write it into the files asked for.

    Args:
        comparison: What was found.
        as_json: A file for JSON; `-` prints it instead of the tables.
        html: A file for the page.
    """
    from rich.console import Console

    from regard.core.files import write_json, write_text
    from regard.studies.compare.rendering import comparison_page, show

    if html is not None:
        write_text(html, comparison_page(comparison))
    if as_json == STANDARD_OUTPUT:
        print_json(comparison.to_dict())
        return
    show(comparison, Console())
    if as_json is not None:
        write_json(Path(as_json), comparison.to_dict())
        print(as_json)
    if html is not None:
        print(html)
