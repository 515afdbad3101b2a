"""`regard compare`: which run is better, is it chance, and where do they part?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device

if TYPE_CHECKING:
    from regard.studies.compare.comparison import Comparison

STANDARD_OUTPUT = "-"


def compare(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN RUN...", help="Run folders; the first is the base.")
    ],
    as_json: Annotated[
        str | None, typer.Option("--json", help="A file for every number, or - for here.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="A file for the page with the curves.")] = None,
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
    import json

    from rich.console import Console

    from regard.core.files import write_json, write_text
    from regard.studies.compare.rendering import comparison_page, show

    if html is not None:
        write_text(html, comparison_page(comparison))
    if as_json == STANDARD_OUTPUT:
        print(json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2))
        return
    show(comparison, Console())
    if as_json is not None:
        write_json(Path(as_json), comparison.to_dict())
        print(as_json)
    if html is not None:
        print(html)
